#!/bin/sh
# Make the folder in which a data set comes to be, or find it begun: of several nodes that see one
# file system, one does the work.
#
# usage: sh begin.sh PARTIAL DATASET NODE NONCE WAY
#
# NONCE is the same on all nodes of a run and new for each. What was begun in another WAY is thrown
# away. In PARTIAL there are then: set/, what becomes the data set; notes/, ours.
umask 022
partial=$1 dataset=$2 node=$3 nonce=$4 way=$5
notes=$partial/notes
mkdir -p "$notes" || exit 1
if ! (set -C; printf '%s\n' "$node" >"$notes/claim.$nonce") 2>/dev/null; then
    # Another node may have made the file and not yet written into it.
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        owner=$(cat "$notes/claim.$nonce" 2>/dev/null)
        [ -z "$owner" ] || break
        sleep 0.2
    done
    [ -n "$owner" ] || { echo "no claim can be written in $notes" >&2; exit 1; }
    if [ "$owner" != "$node" ]; then
        echo "shared $owner"
        exit 0
    fi
fi
for claim in "$notes"/claim.*; do
    [ "$claim" = "$notes/claim.$nonce" ] || rm -f "$claim"
done
printf '%s\n' "$dataset" >"$notes/dataset" || exit 1
if [ "$way" != 'as it is' ]; then
    if [ "$(cat "$notes/way" 2>/dev/null)" != "$way" ]; then
        rm -rf "$partial/set" || exit 1
    fi
    printf '%s\n' "$way" >"$notes/way" || exit 1
fi
mkdir -p "$partial/set" || exit 1
echo own
