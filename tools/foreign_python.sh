#!/bin/sh
# tools/foreign_python.sh SUITE ARCH: Debian's Python for another processor, with what the agent needs.
#
# Prints a directory, .foreign/SUITE-ARCH. `qemu-... -L DIR DIR/usr/bin/python3` runs it: no root, no
# chroot, no binfmt_misc. Packages are unpacked, not installed, so nothing is emulated meanwhile:
# 15 seconds and 60 MB, where debootstrap (tools/in_root.sh) takes minutes. DIR/site is the agent's
# dependencies as pip finds them for that processor, in wheels alone. Made again when what it needs changes.
set -eu
[ $# = 2 ] || { sed -n 's/^# \(tools[^:]*\).*/usage: \1/p' "$0" >&2; exit 2; }
here=$(cd "$(dirname "$0")/.." && pwd)
suite=$1 arch=$2
made=$here/.foreign/$suite-$arch
needs=$(cat "$0" "$here/pyproject.toml" "$here/agent/pyproject.toml" "$here/constraints.txt" | sha256sum)

fail() {
    echo "foreign_python: $*" >&2
    exit 1
}

command -v apt-get >/dev/null || fail "no apt-get here"
mkdir -p "$here/.foreign"
exec 8>"$made.lock"
flock 8
[ "$(cat "$made/needs" 2>/dev/null)" != "$needs" ] || { echo "$made"; exit 0; }
new=$made.new apt=$made.apt
rm -rf "$made" "$new" "$apt"
trap 'rm -rf "$new" "$apt"' EXIT
mkdir -p "$new" "$apt/lists/partial" "$apt/archives/partial"

mirror=${DEBIAN_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 'Label: Debian' | head -n 1)}
[ -n "$mirror" ] || fail "no Debian among apt's sources: name a mirror in DEBIAN_MIRROR"
keys=/usr/share/keyrings/debian-archive-keyring.gpg
echo "deb [signed-by=$keys] $mirror $suite main" >"$apt/sources.list"
: >"$apt/status"
foreign() {
    apt-get -qq -o Dir::Etc::SourceList="$apt/sources.list" -o Dir::Etc::SourceParts=- \
        -o Dir::State="$apt" -o Dir::State::Status="$apt/status" -o Dir::Cache="$apt" \
        -o APT::Architecture="$arch" -o APT::Architectures::="$arch" -o APT::Sandbox::User= "$@" >&2
}
foreign update || fail "no packages of $suite for $arch"
foreign install --yes --download-only --no-install-recommends python3-minimal libpython3-stdlib ||
    fail "no Python of $suite for $arch"
for package in "$apt"/archives/*.deb; do
    dpkg-deb --extract "$package" "$new"
done
[ -e "$new/lib" ] || ln -s usr/lib "$new/lib" # where programs look for their loader

case $arch in
    amd64) machine=x86_64 ;;
    arm64) machine=aarch64 ;;
    armhf) machine=armv7l ;;
    *) machine=$arch ;;
esac
platforms=$(for minor in $(seq 17 36); do echo "--platform manylinux_2_${minor}_$machine"; done)
version=$(readlink "$new/usr/bin/python3")
"${PYTHON:-python3}" -m pip install --quiet --disable-pip-version-check --target "$new/site" \
    --only-binary :all: $platforms --python-version "${version#python}" \
    --constraint "$here/constraints.txt" "$here" "$here/agent" >&2 || fail "not all of the agent is in wheels"
for package in agent edge_ldp; do
    rm -r "$new/site/$package" # what is tried is the working tree, not a copy of it
done
echo "$needs" >"$new/needs"
mv "$new" "$made"
echo "$made"
