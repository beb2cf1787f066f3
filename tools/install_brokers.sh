#!/bin/sh
# What the integration tests need from the system: a real MQTT broker. As root it is installed from
# Debian's packages; otherwise it is looked for, and the tests that need it say loudly that they were skipped.
set -eu
PATH="$PATH:/usr/sbin"
command -v mosquitto >/dev/null && command -v openssl >/dev/null && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq
    # RUNLEVEL=1: the package must not start a service on this machine
    DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq --no-install-recommends mosquitto openssl >/dev/null
else
    echo "WARNING: mosquitto (or openssl) is not installed and this is not root: tests against it will be SKIPPED." >&2
    echo "         Remedy: apt-get install mosquitto openssl" >&2
fi
