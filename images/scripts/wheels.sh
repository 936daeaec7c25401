#!/bin/sh
# Install wheels that were downloaded: wheels.sh PYTHON FOLDER NAMES
# NAMES is one word with blanks between the file names. No index is asked: a wheel comes as its
# bytes are, and without what it depends on. What it depends on must be there already.
set -eu

python=$1
folder=$2
names=$3

refuse() {
    echo "WHEEL: $1" >&2
    exit 1
}

# Unquoted: file names hold letters, digits and -_.+ only.
for name in $names; do
    "$python" -m pip install --no-index --no-deps --no-cache-dir "$folder/$name" ||
        refuse "pip does not install $name; needed a wheel for $("$python" --version 2>&1)"
done
for name in $names; do
    # Else the first training would say it. pip writes a project's name with -, _ or a dot.
    project=$(echo "${name%%-*}" | sed 's/[-_.][-_.]*/[-_.]/g')
    lacks=$("$python" -m pip check 2>/dev/null | grep -i "^$project ") || continue
    refuse "$(echo "$lacks" | tr '\n' ' ')needed it in pip: of image.yaml"
done
