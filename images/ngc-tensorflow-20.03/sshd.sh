#!/bin/sh
# Make an image ready for the sshd that MPI starts programs through: sshd.sh
# Keys of a package's installation would be the same in every container and known to everyone who
# has the image: a gang brings its own.
set -eu

etc=${ETC_SSH:-/etc/ssh}
run=${RUN_SSHD:-/run/sshd}
PATH=$PATH:/usr/sbin:/sbin
for program in sshd ssh; do
    command -v "$program" >/dev/null || {
        echo "SSHD: $program is not there; needed openssh-server and openssh-client" >&2
        exit 1
    }
done
rm -f "$etc"/ssh_host_*
mkdir -p "$run"
chmod 755 "$run"
