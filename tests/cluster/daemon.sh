#!/bin/sh
# Becomes one of a node's daemons: sh daemon.sh sshd|containerd|dockerd|slurmd [RUN_FOLDER]
set -eu
echo $$ >"/run/testbed/$1.pid"
case $1 in
sshd) exec setsid /usr/sbin/sshd -D -e -f /etc/ssh/sshd_config ;;
containerd) exec setsid containerd --config /etc/testbed/containerd.toml ;;
dockerd)
    rm -f /run/docker.pid
    for _ in $(seq 600); do
        [ -S /run/containerd/containerd.sock ] && break
        sleep 0.05
    done
    exec setsid dockerd --config-file /etc/docker/daemon.json
    ;;
slurmd)
    # Groups of its own: else all nodes would keep their steps in one.
    name=$(hostname)
    for kind in freezer memory; do
        own=/sys/fs/cgroup/$kind/dlperf-$VIRTUAL_CLUSTER/$name
        mkdir -p "$own"
        echo $$ >"$own/cgroup.procs"
    done
    export SLURM_CONF="$2/shared/slurm/slurm.conf"
    exec setsid unshare --cgroup --mount sh -c '
        mount -t tmpfs cgroup /sys/fs/cgroup && cd /sys/fs/cgroup && mkdir freezer memory &&
            mount -t cgroup -o freezer freezer freezer &&
            mount -t cgroup -o memory memory memory && cd / && exec slurmd -D -N "$0"
    ' "$name"
    ;;
*) echo "daemon.sh: $1?" >&2; exit 2 ;;
esac
