"""Where tests write: in memory, if there is room, for a slow disk stops a broker for seconds."""

import os
from pathlib import Path

ROOM_BYTES = 4 << 30
_IN_MEMORY = Path("/dev/shm")  # noqa: S108 (what is made in it has names of its own)


def place() -> Path:
    """Return a directory that all users may enter and programs be started from."""
    try:
        found = os.statvfs(_IN_MEMORY)
    except OSError:
        return Path("/tmp")  # noqa: S108 (same)
    is_fit = not found.f_flag & os.ST_NOEXEC and found.f_bavail * found.f_frsize >= ROOM_BYTES
    return _IN_MEMORY if is_fit else Path("/tmp")  # noqa: S108 (same)
