#!/bin/sh
# Give a finished data set its name: settle.sh TARGET PARTIAL
# One rename, which replaces nothing but an empty folder.
target=$1 partial=$2
if [ -e "$target" ] && { [ ! -d "$target" ] || [ -n "$(ls -A "$target")" ]; }; then
    echo "$target has come to be meanwhile, and is not replaced" >&2
    exit 1
fi
find "$partial/set" -type d -empty -delete
chmod 755 "$partial/set" && sync -f "$partial/set" 2>/dev/null
mv -T -- "$partial/set" "$target" && rm -rf -- "$partial"
