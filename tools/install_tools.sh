#!/bin/sh
# What the tests need from outside of pip: a real MQTT broker; PostgreSQL; Java for Spark; systemd's
# own judge of units; a C compiler; the Cortex-M cross compiler, its C library and QEMU; Node and the MicroPython
# build that runs under it.
# Only what is missing is fetched. System packages need root and apt; without them this script says
# what to install and goes on, and the tests concerned say loudly that they were skipped (where CI
# is set they fail).
set -eu
cd "$(dirname "$0")/.."
PATH="$PATH:/usr/sbin"
MICROPYTHON=@micropython/micropython-webassembly-pyscript
MICROPYTHON_VERSION=1.27.0
missing=""

# need PACKAGE COMMAND...: the package is missing if the command fails
need() {
    package=$1
    shift
    "$@" </dev/null >/dev/null 2>&1 || missing="$missing $package"
}

headers() { echo '#include <stdio.h>' | "$@" -x c -fsyntax-only -; }

need mosquitto command -v mosquitto
need ser2net command -v ser2net
need postgresql test -n "$(ls -d /usr/lib/postgresql/*/bin/initdb 2>/dev/null || command -v initdb)"
need openjdk-17-jre-headless command -v java
need openssl command -v openssl
need systemd command -v systemd-analyze
need gcc command -v cc
need libc6-dev headers cc
need gcc-arm-none-eabi command -v arm-none-eabi-gcc
need picolibc-arm-none-eabi headers arm-none-eabi-gcc --specs=picolibc.specs
need libnewlib-arm-none-eabi headers arm-none-eabi-gcc
need qemu-system-arm command -v qemu-system-arm
need nodejs command -v node
need npm command -v npm

warn() {
    echo "WARNING: $1: the tests that need it will be SKIPPED (where CI is set, they will FAIL)." >&2
    echo "         Remedy: $2" >&2
}

if [ -n "$missing" ]; then
    remedy="apt-get install --no-install-recommends$missing"
    if [ "$(id -u)" != 0 ]; then
        warn "not installed, and this is not root:$missing" "$remedy"
    elif ! command -v apt-get >/dev/null; then
        warn "not installed, and there is no apt-get:$missing" "install these or their like"
    # RUNLEVEL=1: the broker's package must not start a service on this machine
    elif ! { apt-get update -qq && DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
        apt-get install -y -qq --no-install-recommends $missing >/dev/null; }; then
        warn "apt-get could not install:$missing" "$remedy"
    fi
fi

manifest=".node/node_modules/$MICROPYTHON/package.json"
if ! grep -qs "\"version\": *\"$MICROPYTHON_VERSION\"" "$manifest"; then
    install="npm install --prefix .node --no-save --no-audit --no-fund $MICROPYTHON@$MICROPYTHON_VERSION"
    if ! command -v npm >/dev/null || ! $install >/dev/null; then
        warn "MicroPython for Node is not in .node" "$install"
    fi
fi
