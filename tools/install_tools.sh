#!/bin/sh
# What the tests need from outside of pip: a real MQTT broker; PostgreSQL; systemd's
# own judge of units; a C compiler; the Cortex-M cross compiler, its C library and QEMU; Node and the MicroPython
# build that runs under it; a browser and its judge of accessibility; a provider of OpenID Connect; Prometheus; a proxy; what fuzzes an API
# by its description, apart from our own packages, as it brings two dozen more.
# With "slow", also what only the slow tests need: Java for Spark, clean Debian roots, QEMU's user mode for
# the agent on ARM.
# Only what is missing is fetched. System packages need root and apt; without them this script says
# what to install and goes on, and the tests concerned say loudly that they were skipped (where CI
# is set they fail).
set -eu
cd "$(dirname "$0")/.."
PATH="$PATH:/usr/sbin"
MICROPYTHON=@micropython/micropython-webassembly-pyscript
MICROPYTHON_VERSION=1.27.0
AXE_VERSION=4.14.1
OIDC_VERSION=9.13.3
SCHEMATHESIS_VERSION=4.32.5

slow=""
[ "${1:-}" != slow ] || slow='default-jre-headless command -v java
qemu-user-static command -v qemu-arm-static || command -v qemu-arm
debootstrap command -v debootstrap'

headers() { echo '#include <stdio.h>' | "$@" -x c -fsyntax-only -; }

# Prints each package whose check fails.
missing() {
    while read -r package check; do
        eval "$check" </dev/null >/dev/null 2>&1 || echo "$package"
    done <<END
mosquitto command -v mosquitto
ser2net command -v ser2net
postgresql ls /usr/lib/postgresql/*/bin/initdb || command -v initdb
openssl command -v openssl
systemd command -v systemd-analyze
gcc command -v cc
libc6-dev headers cc
gcc-arm-none-eabi command -v arm-none-eabi-gcc
picolibc-arm-none-eabi headers arm-none-eabi-gcc --specs=picolibc.specs
libnewlib-arm-none-eabi headers arm-none-eabi-gcc
qemu-system-arm command -v qemu-system-arm
nodejs command -v node
npm command -v npm
chromium-headless-shell command -v chromium-headless-shell || command -v chromium
prometheus command -v promtool
prometheus-alertmanager command -v amtool
nginx-light command -v nginx
$slow
END
}

# RUNLEVEL=1: the broker's package must not start a service on this machine
install() {
    DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
        apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

warn() {
    echo "WARNING: $1: the tests that need it will be SKIPPED (where CI is set, they will FAIL)." >&2
    echo "         Remedy: $2" >&2
}

wanted=$(missing)
left=$wanted
if [ -n "$wanted" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing what the tests need:" $wanted
    apt-get update -qq || true # one source out of reach does not spoil the others
    if ! install $wanted; then # nor does one package that this distribution does not offer
        for package in $wanted; do install "$package" || true; done
    fi
    left=$(missing)
fi
[ -z "$left" ] || warn "not installed: $(echo $left)" \
    "as root: apt-get install --no-install-recommends $(echo $left), or their like"

# all at once: npm takes away what it is not told of
packages="$MICROPYTHON@$MICROPYTHON_VERSION axe-core@$AXE_VERSION oidc-provider@$OIDC_VERSION"
for package in $packages; do
    manifest=".node/node_modules/${package%@*}/package.json"
    grep -qs "\"version\": *\"${package##*@}\"" "$manifest" && continue
    npm="npm install --prefix .node --no-save --no-audit --no-fund $packages"
    echo "installing $packages in .node"
    if ! command -v npm >/dev/null || ! $npm >/dev/null; then
        warn "not in .node: $packages" "$npm"
    fi
    break
done

if ! .schemathesis/bin/schemathesis --version 2>/dev/null | grep -q "$SCHEMATHESIS_VERSION"; then
    pip="python3 -m venv .schemathesis && .schemathesis/bin/pip install -q schemathesis==$SCHEMATHESIS_VERSION"
    echo "installing schemathesis in .schemathesis"
    if ! sh -c "$pip" >/dev/null; then
        warn "schemathesis is not in .schemathesis" "$pip"
    fi
fi
