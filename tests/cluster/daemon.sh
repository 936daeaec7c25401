#!/bin/sh
# Becomes one of a node's daemons: sh daemon.sh sshd|containerd|dockerd
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
*) echo "daemon.sh: $1?" >&2; exit 2 ;;
esac
