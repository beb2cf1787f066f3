"""What a file system makes of a state: some forget it with the next boot, or with a container.

For a ledger that is a fault: nobody knows what was spent, and each start costs a window of silence
(docs/faults.md, AGT-32). For what a running sum or chunk adds up it is what is wanted: no copy of
the disk has it (PRV-25).
"""

import os
import re
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from agent.errors import StorageError, storing

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


def beside_state(state: Path, ending: str) -> Path:
    """Return the file that lies beside a state under this ending."""
    return state.with_name(state.name + ending)


def left_path(state: Path) -> Path:
    """Return where what left is kept for the household's page, beside a state (agent.page)."""
    return beside_state(state, ".left")


def forget_left(state: Path) -> None:
    """Delete what was kept for a page that is there no more."""
    with suppress(OSError):
        left_path(state).unlink(missing_ok=True)


def running_path(state: Path, ending: str, keep: str) -> Path:
    """Return where what runs is kept for a state: beside it ("disk"), or in memory ("run").

    In systemd's directory of this service, the user's, or one of its own in shared memory. Raises
    StorageError where that is on a disk after all, or others may write there.
    """
    if keep == "disk":
        return beside_state(state, ending)
    given = os.environ.get("RUNTIME_DIRECTORY", "").partition(":")[0]
    users = os.environ.get("XDG_RUNTIME_DIR")
    own = Path(users, "edge-ldp") if users else Path(f"/dev/shm/edge-ldp-{os.geteuid()}")  # noqa: S108 (made closed, and looked at)
    place = Path(given) if given else own
    remedy = "RuntimeDirectory= of its unit, or [device] keep = 'disk' (docs/curator.md)"
    with storing(place, remedy):
        place.mkdir(mode=0o700, exist_ok=True)
        about = place.lstat()
        mounts = _MOUNTS.read_text(errors="replace")
    if file_system(str(place.resolve()), mounts) not in ("tmpfs", "ramfs"):
        raise StorageError(str(place), "it is not in memory, and running sums must be", remedy)
    if about.st_uid != os.geteuid() or about.st_mode & 0o022:
        raise StorageError(str(place), "others may write there", remedy)
    name = sha256(os.fsencode(state.resolve())).hexdigest()[:16]
    return place / f"{name}{ending}"


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
