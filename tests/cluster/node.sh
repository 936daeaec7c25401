#!/bin/sh
# The first moments of a node, in fresh mount, UTS, IPC and PID namespaces: builds a root of its
# own, moves into it and starts its daemons.
#
# usage: sh node.sh RUN_FOLDER NAME
set -eu
run=$1 name=$2
own=$run/nodes/$name
root=$own/system

mount --make-rprivate /
hostname "$name"
mkdir -p "$root"
mount -t tmpfs -o mode=755 root "$root"
cd "$root"
mkdir -p proc sys dev run usr opt mnt media srv
# What programs are made of is the machine's, and nobody writes there.
for part in usr opt; do
    mount --bind "/$part" "$part"
    mount -o remount,bind,ro "$part"
done
for part in bin sbin lib lib32 lib64 libx32; do
    if [ -h "/$part" ]; then
        cp -P "/$part" "$part"
    elif [ -d "/$part" ]; then
        mkdir "$part"
        mount --bind "/$part" "$part"
        mount -o remount,bind,ro "$part"
    fi
done
for part in etc var root home tmp data; do
    mkdir -p "$part"
    mount --bind "$own/$part" "$part"
done
# Folders that every node sees at one path, as on a shared file system: where the run has Slurm.
daemons="sshd containerd dockerd"
if [ -e "$run/mounts" ]; then
    daemons="$daemons slurmd"
    while read -r path; do
        mkdir -p "$root$path"
        mount --bind "$path" "$root$path"
    done <"$run/mounts"
fi
mount -t tmpfs -o mode=755 run run
mkdir -p run/testbed/stubs run/sshd run/lock
mount --bind "$run/stubs" run/testbed/stubs
mount -t proc proc proc
if [ -e "$own/boot_id" ]; then mount --bind "$own/boot_id" proc/sys/kernel/random/boot_id; fi
mount -t sysfs sysfs sys
mount --rbind /sys/fs/cgroup sys/fs/cgroup
mount -t tmpfs -o mode=755 dev dev
mkdir dev/pts dev/shm dev/infiniband
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts dev/pts
mount -t tmpfs -o mode=1777 shm dev/shm
mknod -m 666 dev/null c 1 3
mknod -m 666 dev/zero c 1 5
mknod -m 666 dev/full c 1 7
mknod -m 666 dev/random c 1 8
mknod -m 666 dev/urandom c 1 9
mknod -m 666 dev/tty c 5 0
mknod -m 666 dev/infiniband/uverbs0 c 1 3 # STUB: the null device in the place of an HCA's
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
ln -s /proc/self/fd/0 dev/stdin
ln -s /proc/self/fd/1 dev/stdout
ln -s /proc/self/fd/2 dev/stderr

mkdir run/old
pivot_root . run/old
cd /
umount -l /run/old
rmdir /run/old

for daemon in $daemons; do
    sh /etc/testbed/daemon.sh "$daemon" "$run" </dev/null >>"/var/log/$daemon.log" 2>&1 &
done
exec sleep infinity </dev/null >/dev/null 2>&1
