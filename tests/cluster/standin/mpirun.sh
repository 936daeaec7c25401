#!/bin/sh
# Stand-in for mpirun and mpiexec: Debian's own, but it binds ranks to nothing. A node of the virtual
# cluster has fewer processors than ranks, and OpenMPI refuses to bind more than there are.
before=
left=$#
while [ "$left" -gt 0 ]; do
    word=$1
    shift
    case $before/$word in
    --bind-to/socket | -bind-to/socket) word=none ;;
    esac
    set -- "$@" "$word"
    before=$word
    left=$((left - 1))
done
exec /usr/bin/mpirun "$@"
