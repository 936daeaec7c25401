#!/bin/sh
# Install packages of CentOS 7: packages.sh MIRROR PACKAGES
# MIRROR may be empty, or the address of a release, such as http://mirror.example/centos/7.9.2009.
# PACKAGES is one word with blanks between the names; with none in it, yum is not asked.
# Where yum looks for archives, and its keys, is read from $YUM_REPOS and $RPM_KEYS, if they are set.
set -eu

mirror=$1
packages=$2
repos=${YUM_REPOS:-/etc/yum.repos.d}
keys=${RPM_KEYS:-/etc/pki/rpm-gpg}

if [ -z "$packages" ]; then
    echo "packages.sh: nothing to install"
    exit 0
fi
if [ -n "$mirror" ]; then
    ours=$repos/dlperf.repo
    trap 'rm -f "$ours"' EXIT
    for part in os updates; do
        # $basearch is yum's own word.
        printf '[dlperf-%s]\nname=%s of the mirror\nbaseurl=%s/%s/$basearch/\ngpgcheck=1\ngpgkey=file://%s\n' \
            "$part" "$part" "${mirror%/}" "$part" "$keys/RPM-GPG-KEY-CentOS-7"
    done >"$ours"
    # Unquoted: the names are words of their own, and hold nothing that a shell takes for more.
    yum install -y --disablerepo='*' --enablerepo='dlperf-*' $packages
    exit 0
fi
yum install -y $packages || {
    echo "packages.sh: yum installs none of $packages; needed apt.mirror in image.yaml, such as" \
        "http://HOST/centos/7.9.2009, since CentOS 7's own mirrors are no more" >&2
    exit 1
}
