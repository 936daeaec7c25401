#!/bin/sh
# Install packages of the distribution: packages.sh MIRROR PACKAGES
# MIRROR may be empty. PACKAGES is one word with blanks between the names; with none in it, apt is
# not even asked what there is. $APT_CONFIG names a file that is written, and that apt reads.
# What the image says of itself is read from $ETC_APT and $OS_RELEASE, if they are set.
set -eu

mirror=$1
packages=$2
etc=${ETC_APT:-/etc/apt}

if [ -z "$packages" ]; then
    echo "packages.sh: nothing to install"
    : >"$APT_CONFIG"
    exit 0
fi

own=$(dirname "$APT_CONFIG")/sources
mkdir -p "$own/parts"
if [ -n "$mirror" ]; then
    . "${OS_RELEASE:-/etc/os-release}"
    codename=${VERSION_CODENAME:-${UBUNTU_CODENAME:-}}
    if [ -z "$codename" ]; then
        echo "packages.sh: /etc/os-release names no release; needed one to use apt.mirror" >&2
        exit 1
    fi
    components="main contrib non-free"
    if [ "$ID" = ubuntu ]; then components="main restricted universe multiverse"; fi
    {
        echo "deb $mirror $codename $components"
        echo "deb $mirror $codename-updates $components"
        # Debian keeps its security archive elsewhere; a mirror of the archive has none of it.
        if [ "$ID" = ubuntu ]; then echo "deb $mirror $codename-security $components"; fi
    } >"$own/sources.list"
else
    if [ -f "$etc/sources.list" ]; then cp "$etc/sources.list" "$own/"; else : >"$own/sources.list"; fi
    # NVIDIA's own archives hold nothing that is wanted here, and the key that images of 2020 know
    # them by was withdrawn in 2022: apt-get update fails on them.
    for part in "$etc"/sources.list.d/*.list "$etc"/sources.list.d/*.sources; do
        if [ -f "$part" ] && ! grep -q 'developer\.download\.nvidia' "$part"; then
            cp "$part" "$own/parts/"
        fi
    done
fi
{
    echo "Dir::Etc::SourceList \"$own/sources.list\";"
    echo "Dir::Etc::SourceParts \"$own/parts\";"
    echo 'Acquire::Retries "3";'
} >"$APT_CONFIG"

export DEBIAN_FRONTEND=noninteractive
apt-get update
# Unquoted: the names are words of their own, and hold nothing that a shell takes for more.
apt-get install -y --no-install-recommends $packages
