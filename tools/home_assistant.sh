#!/bin/sh
# tools/home_assistant.sh: Home Assistant with what its MQTT integration needs, in .homeassistant.
#
# Prints the path of its Python, for tools/home_assistant.py. It is the newest that $PYTHON takes (Python
# 3.11: 2024.3.3), from pip alone, with the versions that it names itself. Left out, where it starts without,
# is what its cloud needs: pip tries hundreds of versions of that for minutes. Nothing is fetched while it runs.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
made=$here/.homeassistant
python=$made/bin/python
needs=$(sha256sum <"$0")

exec 8>"$made.lock"
flock 8
[ "$(cat "$made/needs" 2>/dev/null)" != "$needs" ] || { echo "$python"; exit 0; }
rm -rf "$made"
{
    "${PYTHON:-python3}" -m venv "$made"
    pip="$python -m pip install --quiet --disable-pip-version-check"
    $pip --no-deps homeassistant
    # camera, stream: each of the integration's platforms is loaded, also what nobody announces
    "$python" - mqtt http file_upload camera stream >"$made/wanted" <<'END'
import json, sys
from importlib.metadata import distribution
core = distribution("homeassistant")
left_out = ("av==", "nabucasa") if sys.version_info < (3, 12) else ("av==",)
wanted = list(core.requires)
for name in sys.argv[1:]:
    manifest = core.locate_file(f"homeassistant/components/{name}/manifest.json")
    wanted += json.loads(manifest.read_text()).get("requirements", [])
print(*(one for one in wanted if not any(name in one for name in left_out)), sep="\n")
END
    $pip --requirement "$made/wanted" --constraint "$made"/lib/python3*/site-packages/homeassistant/package_constraints.txt
} >&2
echo "$needs" >"$made/needs"
echo "$python"
