#!/bin/sh
# Files out of a tar, whatever folder of it they lie in.
#
# usage: sh unpack.sh PARTIAL SOURCE TAR PATTERN
umask 022
export LC_ALL=C
partial=$1 source=$2/$3 pattern=$4
set=$partial/set notes=$partial/notes new=$partial/new

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 143' HUP INT TERM

refuse() { # CODE WORDS
    echo "dlperf problem $1 $2"
    exit 3
}

exec 9>"$notes/lock"
flock -n 9 || refuse BUSY "another preparation works in $partial"
rm -rf "$new" "$set" && mkdir -p "$new" "$set" || refuse DISK-FULL "$partial: no new folder"
tar -xf "$source" -C "$new" --no-same-owner --no-same-permissions 2>"$work/why" || {
    why=$(sed '/^tar: Exiting with failure/d; /^tar: Child returned/d' "$work/why" | head -n 1)
    grep -q 'No space left on device\|Disk quota exceeded' "$work/why" &&
        refuse DISK-FULL "$partial: $why"
    refuse SOURCE-DAMAGED "$source: ${why:-it cannot be read}"
}
find "$new" -type f -regextype posix-extended -regex ".*/($pattern)" >"$work/files"
total=$(wc -l <"$work/files")
[ "$total" -gt 0 ] || refuse SOURCE-ODD "$source holds no file of the set"
finished=0
while read -r path; do
    [ ! -e "$set/${path##*/}" ] || refuse SOURCE-ODD "$source holds ${path##*/} twice"
    mv -- "$path" "$set/" || refuse DISK-FULL "$set/${path##*/} cannot be made"
    finished=$((finished + 1))
    echo "dlperf progress $finished $total $finished"
done <"$work/files"
rm -rf "$new"
