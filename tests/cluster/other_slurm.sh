#!/bin/sh
# Build another Slurm, to run the tests with it beside this machine's own: other_slurm.sh TAG FOLDER,
# with a tag of its code such as slurm-25-11-7-1. For root on Debian; minutes. Its programs are in
# FOLDER/bin and FOLDER/sbin then, where virtual nodes must see them. SLURM_CODE is its git
# repository, if it is not to be taken from the network.
set -eu
tag=$1
folder=$2
[ ! -x "$folder/sbin/slurmctld" ] || exit 0

DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    gcc libc6-dev make libmunge-dev libdbus-1-dev libmariadb-dev pkg-config python3 perl-base
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git clone --quiet --depth 1 --branch "$tag" "${SLURM_CODE:-https://github.com/SchedMD/slurm}" "$work/slurm"
cd "$work/slurm"
# Many slurmd on one machine, as Debian's own: one munged serves all virtual nodes.
CFLAGS="-O1" ./configure --quiet --prefix="$folder" --sysconfdir=/etc/slurm \
    --disable-dependency-tracking --enable-multiple-slurmd
make -s -j "$(nproc)" install >"$work/made" 2>&1 || { tail -n 50 "$work/made" >&2; exit 1; }
"$folder/sbin/slurmctld" -V
