#!/bin/sh
# Put a folder of a git repository, as it is at one commit, where programs look for it:
# source.sh URL COMMIT PATH TARGET
# PATH may be empty for the whole repository. TARGET is emptied first.
set -eu

url=$1
commit=$2
path=$3
target=$4

refuse() {
    echo "SOURCE: $1" >&2
    exit 1
}

export GIT_TERMINAL_PROMPT=0
command -v git >/dev/null || refuse "git is not there; needed it in apt.packages or in the base"
clone=$(mktemp -d)
git init --quiet "$clone"
# A plain web server, or a git server that hands out no single commit, gives all of it or nothing.
git -C "$clone" fetch --quiet --depth 1 -- "$url" "$commit" 2>/dev/null ||
    git -C "$clone" fetch --quiet -- "$url" '+refs/*:refs/origin/*' ||
    refuse "$url cannot be fetched"
git -C "$clone" -c advice.detachedHead=false checkout --quiet --detach "$commit" 2>/dev/null ||
    refuse "$url has no commit $commit"
seen=$(git -C "$clone" rev-parse HEAD)
if [ "$seen" != "$commit" ]; then refuse "$url gave commit $seen; needed $commit"; fi

if [ ! -d "$clone/${path:-.}" ]; then refuse "commit $commit of $url has no folder $path"; fi
rm -rf "$clone/.git" "$target"
mkdir -p "$(dirname "$target")"
cp -R "$clone/${path:-.}" "$target"
rm -rf "$clone"
