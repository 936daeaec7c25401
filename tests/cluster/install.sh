#!/bin/sh
# Install what the virtual cluster is made of: for root on Debian. Elsewhere it says what is
# missing, and the tests that need it are skipped by name. More may be asked for:
# install.sh [PROGRAM PACKAGE]...
set -eu

missing=""
need() { # PROGRAM PACKAGE
    PATH="$PATH:/usr/sbin:/sbin" command -v "$1" >/dev/null || missing="$missing $2"
}

need dockerd docker.io
need containerd containerd
need docker-registry docker-registry
need sshd openssh-server
need ssh openssh-client
need ip iproute2
need iptables iptables
need mmdebstrap mmdebstrap
need tini tini
need runc runc
need git git
need nsenter util-linux
need perl perl-base
need slurmctld slurmctld
need slurmd slurmd
need srun slurm-client
need munged munge
need zsh zsh # where completion is tried, and a login shell of nodes, as the next two
need fish fish
need tcsh tcsh
need tmux tmux
need locale-gen locales # a node that writes 1,5
while [ $# -gt 0 ]; do
    need "$1" "$2"
    shift 2
done

[ -n "$missing" ] || exit 0
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "The virtual cluster needs$missing: its tests will be skipped." >&2
    exit 0
fi
# Their daemons are not wanted: every node starts its own.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
    trap 'rm -f "$policy"' EXIT
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086 # the names are words of their own
apt-get install -y -qq --no-install-recommends $missing
