#!/bin/sh
# Add the line of the published runs after torch.cuda.set_device: patch_main.sh FILE
# It changes what the log's PARAMETER line says of the GPU ("gpu : 8"), and nothing in training.
# The place is found by what the line says, since its number moved with the years; a file that has
# the line already stays as it is.
set -eu

file=$1
if [ ! -f "$file" ]; then
    echo "PATCH: $file is not there; needed ConvNets' main.py" >&2
    exit 1
fi
patched=$(mktemp)
trap 'rm -f "$patched"' EXIT
# [ \t] and no class by name: Ubuntu 18.04's mawk knows none.
awk -v file="$file" '
    function is_call(line) {
        return line ~ /^[ \t]*torch\.cuda\.set_device\(args\.gpu\)[ \t\r]*(#.*)?$/
    }
    function is_ours(line) {
        return line ~ /^[ \t]*args\.gpu = torch\.cuda\.device_count\(\)[ \t\r]*(#.*)?$/
    }
    pending && !is_ours($0) { print indent "args.gpu = torch.cuda.device_count()" }
    { pending = 0; print }
    is_call($0) {
        calls++
        pending = 1
        indent = $0
        sub(/torch.*/, "", indent)
    }
    END {
        if (pending) print indent "args.gpu = torch.cuda.device_count()"
        if (calls == 1) exit 0
        print "PATCH: " file ": torch.cuda.set_device(args.gpu) is there " calls + 0 \
            " times; needed it once" | "cat >&2"
        exit 1
    }
' "$file" >"$patched"
# Written into, not replaced: owner and mode stay.
cat "$patched" >"$file"
