#!/bin/sh
# Put InfiniBand's user space in: infiniband.sh mlnx_ofed|distribution|none TARBALL VERSION
# There is no HCA while an image is built, so only presence and version are judged here. Whether
# links are up is asked in a container on each node.
set -eu

mode=$1
tarball=$2
version=$3

refuse() {
    echo "OFED-INSTALL: $1" >&2
    exit 1
}

present() {
    for program in "$@"; do
        command -v "$program" >/dev/null || refuse "$program is not there afterwards; needed $*"
    done
}

# The installer's own words on why a package failed, else the end of what it printed.
why() {
    file=$(sed -n "s/^See \(.*\/$1\.debinstall\.log\).*/\1/p" "$log" | tail -n 1)
    if [ -n "$file" ] && [ -f "$file" ]; then tail -n 20 "$file"; else tail -n 20 "$log"; fi
}

install_ofed() {
    work=$(mktemp -d)
    log=$work/mlnxofedinstall.log
    tar -xf "$tarball" -C "$work" --no-same-owner || refuse "$tarball cannot be unpacked"
    installer=$(find "$work" -maxdepth 2 -name mlnxofedinstall -type f | head -n 1)
    if [ -z "$installer" ]; then refuse "$tarball holds no mlnxofedinstall"; fi
    status=0
    (cd "$(dirname "$installer")" &&
        ./mlnxofedinstall --user-space-only --without-fw-update --all --force) >"$log" 2>&1 ||
        status=$?
    cat "$log"
    failed=$(sed -n 's/^Failed to [a-z]* \([^ ]*\) .*/\1/p' "$log")
    for package in $failed; do
        # NEO-Host manages adapters from outside. Verbs do without, and it does not install in
        # containers (seed).
        if [ "$package" = neohost-backend ]; then continue; fi
        why "$package" >&2
        refuse "package $package failed, mlnxofedinstall's exit code is $status"
    done
    if [ "$status" -ne 0 ] && [ -z "$failed" ]; then
        tail -n 20 "$log" >&2
        refuse "mlnxofedinstall's exit code is $status, and it names no package that failed"
    fi
    rm -rf "$work"
}

case $mode in
none) ;;
distribution)
    present ibstat ibv_devinfo
    ;;
mlnx_ofed)
    install_ofed
    present ibstat ibv_devinfo ofed_info
    says=$(ofed_info -s) || refuse "ofed_info -s fails"
    case $says in
    "MLNX_OFED_LINUX-$version" | "MLNX_OFED_LINUX-$version:") ;;
    *) refuse "ofed_info -s says $says; needed MLNX_OFED_LINUX-$version" ;;
    esac
    ;;
*) refuse "got $mode; needed mlnx_ofed, distribution or none" ;;
esac
