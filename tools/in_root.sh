#!/bin/sh
# tools/in_root.sh SUITE [ARCH [COMMAND...]]: what a newcomer sees on a clean Debian.
#
# Plays commands (as given, else those of README) in a fresh clone of what is committed here, in a
# system of that suite (bookworm, trixie, sid ...) that holds only what README asks for. Prints how
# each ended, and ends as the first that failed. Needs root and debootstrap; for another processor
# also qemu-user-static. The base system is made once, in EDGE_LDP_ROOTS, and never changed: a play
# works on a copy, which goes with it. It ends with all its processes and mounts, whatever happens.
set -eu
[ $# -ge 1 ] || { sed -n 's/^# \(tools.*\)/usage: \1/p' "$0" >&2; exit 2; }
here=$(cd "$(dirname "$0")/.." && pwd)
PATH="$PATH:/usr/sbin:/sbin"
suite=$1
arch=${2:-$(dpkg --print-architecture)}
shift
[ $# -eq 0 ] || shift
cache=${EDGE_LDP_ROOTS:-${XDG_CACHE_HOME:-$HOME/.cache}/edge-ldp-roots}
base=$cache/$suite-$arch
mkdir -p "$cache/plays" "$cache/pip" "$cache/npm"

fail() {
    echo "in_root: $*" >&2
    exit 2
}

[ "$(id -u)" = 0 ] || fail "only root may make and enter a root"
command -v debootstrap >/dev/null || fail "no debootstrap here: apt-get install debootstrap"

# Is there an interpreter for that processor? What the kernel runs by itself needs none.
case "$(uname -m)-$arch" in
    x86_64-amd64 | x86_64-i386 | aarch64-arm64) ;;
    # a Pi 4's cores: newer ones sign each return address, most of an emulator's time
    *-arm64) interpreter=qemu-aarch64 cores=cortex-a72 ;;
    *-armhf | *-armel) interpreter=qemu-arm ;;
    *) interpreter=qemu-$arch ;;
esac
[ -z "${interpreter:-}" ] || grep -qs '^enabled' "/proc/sys/fs/binfmt_misc/$interpreter" ||
    fail "programs for $arch do not run here: apt-get install qemu-user-static binfmt-support;" \
        "mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc; update-binfmts --enable"

# The base: made under another name, so that half a one is never taken for it.
exec 8>"$base.lock"
flock 8
if [ ! -d "$base" ]; then
    mirror=${DEBIAN_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 'Label: Debian' | head -n 1)}
    [ -n "$mirror" ] || fail "no Debian among apt's sources: name a mirror in DEBIAN_MIRROR"
    script=/usr/share/debootstrap/scripts/$suite
    [ -e "$script" ] || script=/usr/share/debootstrap/scripts/sid
    rm -rf --one-file-system "$base.new"
    echo "in_root: making $base ..."
    unshare --mount --pid --fork --kill-child debootstrap --variant=minbase --arch="$arch" \
        --include=ca-certificates,git,make,python3-venv "$suite" "$base.new" \
        "$mirror" "$script" >"$base.log" 2>&1 ||
        fail "debootstrap failed: $(tail -n 3 "$base.log")"
    # a package that is installed starts no service
    printf '#!/bin/sh\nexit 101\n' >"$base.new/usr/sbin/policy-rc.d"
    chmod +x "$base.new/usr/sbin/policy-rc.d"
    mv "$base.new" "$base"
fi
exec 8>&-

# What a play that was killed left has no owner: its lock is free.
for left in "$cache/plays"/*; do
    [ ! -d "$left" ] || flock --nonblock "$left" rm -rf --one-file-system "$left" || true
done
root=$(mktemp -d "$cache/plays/$suite-$arch-XXXXXX")
trap 'rm -rf --one-file-system "$root"' EXIT
trap 'exit 130' INT # TERM and KILL end it at once, and with it the play
exec 9<"$root"
flock 9
cp -a "$base/." "$root"
git clone --quiet --no-hardlinks "$here" "$root/root/edge-ldp"
[ -z "$(git -C "$here" status --porcelain)" ] ||
    echo "in_root: what is not committed here is not played" >&2
[ $# -gt 0 ] || # the block of README that a newcomer copies
    eval "set -- $(sed -n '/^## Two commands/,/^## /s/^\(make [a-z-]*\).*/"\1"/p' "$here/README.md" |
        tr '\n' ' ')"


# The first process of a namespace of its own: it reaps what is orphaned, and all ends with it.
play='
    trap "exit 130" INT
    root=$1 cache=$2 what=$3 failed=0 told=
    shift 3
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    mkdir -p "$root/root/.cache/pip" "$root/root/.npm"
    mount --bind "$cache/pip" "$root/root/.cache/pip"
    mount --bind "$cache/npm" "$root/root/.npm"
    what="$what, Debian $(cat "$root/etc/debian_version"), $(chroot "$root" python3 --version)"
    for command; do
        echo "in_root: $what: $command"
        began=$(date +%s) code=0
        chroot "$root" sh -c "cd ~/edge-ldp && $command" </dev/null || code=$?
        told="$told
in_root: $command: $([ $code = 0 ] && echo passed || echo "FAILED ($code)"), $(($(date +%s) - began)) s"
        [ $failed != 0 ] || failed=$code
    done
    echo "in_root: $what; $(nproc) cores ($(sed -n "s/^model name.*: //p" /proc/cpuinfo | head -n 1))$told"
    exit $failed
'
set -- setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child sh -c "$play" play \
    "$root" "$cache" "$suite $arch, commit $(git -C "$here" rev-parse --short HEAD)" "$@"

# How this machine reaches registries: resolver, apt's settings, certificates, indexes. Addresses
# may hold a password: they go into the environment of the play only.
pip_says() { python3 -m pip config get "global.$1" 2>/dev/null || true; }
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
printf '127.0.0.1 localhost\n::1 localhost\n' >"$root/etc/hosts" # as an installer writes it
apt-config dump | grep -E '^Acquire::(Check|https?)' >"$root/etc/apt/apt.conf.d/99host" || true
trusted=${SSL_CERT_FILE:-${PIP_CERT:-${NODE_EXTRA_CA_CERTS:-$(pip_says cert)}}}
index=${PIP_INDEX_URL:-$(pip_says index-url)}
registry=${npm_config_registry:-$(npm config get registry 2>/dev/null || true)}
if [ -s "$trusted" ]; then
    cp -L "$trusted" "$root/etc/ssl/host.pem"
    for variable in SSL_CERT_FILE PIP_CERT NODE_EXTRA_CA_CERTS; do
        set -- "$variable=/etc/ssl/host.pem" "$@"
    done
fi
env -i LANG=C.UTF-8 HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    ${CI:+"CI=$CI"} ${cores:+"QEMU_CPU=$cores"} ${index:+"PIP_INDEX_URL=$index"} ${registry:+"npm_config_registry=$registry"} "$@"
