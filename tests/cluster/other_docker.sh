#!/bin/sh
# Unpack the Docker of another release of Debian, to run the tests with it beside this machine's own:
# other_docker.sh RELEASE FOLDER. Its programs are in FOLDER/bin then; nothing is installed.
set -eu
release=$1
folder=$(mkdir -p "$2" && cd "$2" && pwd)
[ ! -x "$folder/bin/dockerd" ] || exit 0

# From where this machine has its own packages, by the keys that it trusts for them.
from=$(apt-get indextargets --format '$(CODENAME) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
    sed -n "s/^$(. /etc/os-release && echo "$VERSION_CODENAME") main //p" | head -n 1)
apt=$folder/apt
mkdir -p "$apt/lists/partial" "$apt/archives/partial" "$folder/root" "$folder/bin"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $from $release main" >"$apt/sources.list"
: >"$apt/status"
cat >"$apt/apt.conf" <<CONF
Dir::State "$apt";
Dir::State::status "$apt/status";
Dir::Cache "$apt";
Dir::Etc::sourcelist "$apt/sources.list";
Dir::Etc::sourceparts "-";
APT::Sandbox::User "root";
CONF
apt-get -qq -c "$apt/apt.conf" update
(cd "$apt/archives" && apt-get -qq -c "$apt/apt.conf" download docker.io docker-cli containerd)
for package in "$apt"/archives/*.deb; do
    dpkg-deb --extract "$package" "$folder/root"
done
# Not its runc, which may need another libc.
for name in containerd containerd-shim-runc-v2 docker docker-proxy dockerd; do
    for program in "$folder"/root/usr/bin/$name "$folder"/root/usr/sbin/$name; do
        [ ! -f "$program" ] || ln -s "$program" "$folder/bin/$name"
    done
done
"$folder/bin/dockerd" --version
