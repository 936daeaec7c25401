#!/bin/sh
# Put ready-made files into their place: by a hard link where that can be, else by a copy that is
# compared with its source byte by byte.
#
# usage: sh place.sh PARTIAL SOURCE (FOLDER PATTERN)...
#
# Files of SOURCE, or one folder below it, whose whole name matches PATTERN go to FOLDER of the set.
umask 022
export LC_ALL=C
partial=$1 source=$2
set=$partial/set notes=$partial/notes
shift 2

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 143' HUP INT TERM

refuse() { # CODE WORDS
    echo "dlperf problem $1 $2"
    exit 3
}

exec 9>"$notes/lock"
flock -n 9 || refuse BUSY "another preparation works in $partial"
: >"$work/files"
while [ $# -ge 2 ]; do
    find -L "$source" -mindepth 1 -maxdepth 2 -type f -regextype posix-extended \
        -regex ".*/($2)" -printf "${1:-.} %f %p\n" >>"$work/files" 2>"$work/why" ||
        refuse SOURCE-DAMAGED "$source: $(head -n 1 "$work/why")"
    shift 2
done
sort -o "$work/files" "$work/files"
twice=$(cut -d ' ' -f 1,2 "$work/files" | uniq -d | head -n 1)
[ -z "$twice" ] || refuse SOURCE-ODD "$source holds ${twice#* } in several folders"
total=$(wc -l <"$work/files")
[ "$total" -gt 0 ] || refuse SOURCE-ODD "$source holds none of the files any more"
touch "$notes/placed"
finished=0

place() { # FROM TO
    rm -f "$2"
    if ln -L -- "$1" "$2" 2>/dev/null && [ -r "$2" ]; then return; fi
    rm -f "$2" "$partial/new"
    cp -- "$1" "$partial/new" 2>"$work/why" || {
        grep -q 'No space left on device\|Disk quota exceeded' "$work/why" &&
            refuse DISK-FULL "$partial: $(head -n 1 "$work/why")"
        refuse SOURCE-DAMAGED "$(head -n 1 "$work/why")"
    }
    cmp -s -- "$1" "$partial/new" || refuse SOURCE-DAMAGED "$1 and its copy differ"
    mv -- "$partial/new" "$2" || refuse DISK-FULL "$2 cannot be made"
}

while read -r folder name path; do
    to=$set/$folder/$name
    now=$(stat -L -c '%s %y' "$path") || refuse SOURCE-DAMAGED "$path is gone"
    if [ ! -f "$to" ] || ! grep -qxF "$folder/$name $now" "$notes/placed"; then
        mkdir -p "$set/$folder" && place "$path" "$to" || refuse DISK-FULL "$to cannot be made"
        printf '%s\n' "$folder/$name $now" >>"$notes/placed" ||
            refuse DISK-FULL "$notes/placed"
    fi
    finished=$((finished + 1))
    echo "dlperf progress $finished $total $finished"
done <"$work/files"
