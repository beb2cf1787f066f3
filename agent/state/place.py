"""What a file system makes of a state: some forget it with the next boot, or with a container.

Then nobody knows what was spent, and each start costs a window of silence (docs/faults.md, AGT-32).
"""

import re
from contextlib import suppress
from pathlib import Path

_MOUNTS = Path("/proc/self/mountinfo")
_FORGETFUL = {
    "tmpfs": "in memory, and gone with a reboot",
    "ramfs": "in memory, and gone with a reboot",
    "overlay": "on an overlay, and gone with its container, or with a reboot if the root is one",
    "aufs": "on an overlay, and gone with its container, or with a reboot if the root is one",
}


def doubt_of_place(state: Path) -> str:
    """Return why a state that is kept there does not last, or ""."""
    with suppress(OSError):
        kind = file_system(str(state.resolve()), _MOUNTS.read_text(errors="replace"))
        if where := _FORGETFUL.get(kind):
            return (
                f"{state} is {where} ({kind}): what was spent is then unknown, and a window of "
                "silence begins; name a place on a disk, or mount a volume there"
            )
    return ""


def file_system(path: str, mounts: str) -> str:
    """Return the kind of file system that a path is on, by proc(5)'s mountinfo; "" if it is none.

    Pure. Of mounts on one point the last one is seen.
    """
    longest, found = 0, ""
    for line in mounts.splitlines():
        fields, _, rest = line.partition(" - ")
        try:
            point, kind = fields.split(" ")[4], rest.split(" ")[0]
        except IndexError:
            continue
        point = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), point).rstrip("/")
        if f"{path}/".startswith(f"{point}/") and len(point) >= longest:
            longest, found = len(point), kind
    return found
