#!/bin/sh
# Run a program of upstream's in its container, and say meanwhile how many files it has made.
#
# usage: sh tool.sh TARGET TOTAL PROGRAM PLACE... -- COMMAND...
#
# PROGRAM is looked for below each PLACE; the first that has it is where COMMAND runs.
umask 022
target=$1 total=$2 program=$3
shift 3
found=
places=
while [ "$1" != -- ]; do
    places="$places $1"
    [ -n "$found" ] || [ ! -e "$1/$program" ] || found=$1
    shift
done
shift
if [ -z "$found" ]; then
    echo "dlperf problem TOOL-MISSING the image has no $program in$places"
    exit 3
fi
cd "$found" || exit 3

count() {
    files=0
    for file in "$target"/* "$target"/*/*; do
        [ ! -f "$file" ] || files=$((files + 1))
    done
    echo "dlperf progress $files $total $files"
}

"$@" &
tool=$!
while kill -0 "$tool" 2>/dev/null; do
    count
    sleep 2
done
wait "$tool"
status=$?
count
exit "$status"
