#!/bin/sh
# Measure our mechanisms beside the peers'. They live in .venv-peers, made here when the pinned
# requirements change, and never in our own environment. Arguments go to the script: --json, --rounds N.
set -eu
cd "$(dirname "$0")/../.."
venv=.venv-peers
wanted=benchmarks/peers/requirements.txt

if ! cmp -s "$wanted" "$venv/made-of.txt"; then
    rm -rf "$venv"
    "${PYTHON:-python3}" -m venv "$venv"
    echo '*' >"$venv/.gitignore"
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$wanted" >&2
    "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps -e . >&2
    cp "$wanted" "$venv/made-of.txt"
fi
exec "$venv/bin/python" -m benchmarks.peers "$@"
