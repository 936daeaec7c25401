#!/bin/sh
# Run a command in a root of its own, where folders also lie elsewhere, such as at /data:
# unshare --mount sh room.sh EMPTY_FOLDER SOURCE=TARGET... -- COMMAND [ARGUMENT...]
# Programs have some paths written into them; the machine itself gets no new folder.
set -eu

root=$1
shift
mount -t tmpfs room "$root"
for entry in /*; do
    if [ -L "$entry" ]; then
        cp -P "$entry" "$root$entry"
    elif [ -d "$entry" ]; then
        mkdir "$root$entry"
        mount --rbind "$entry" "$root$entry"
    fi
done
while [ "$1" != -- ]; do
    top=${1#*=/}
    top=/${top%%/*}
    if [ -e "$top" ] && [ ! -e "$root${1#*=}" ]; then # not to be made in the machine's own folder
        mount -t tmpfs room "$root$top"
    fi
    mkdir -p "$root${1#*=}"
    mount --bind "${1%%=*}" "$root${1#*=}"
    shift
done
shift
exec chroot "$root" env --chdir="$PWD" "$@"
