"""Files that a service makes: closed to others, whatever the umask of who started it."""

import os
from contextlib import suppress
from pathlib import Path

MODE = 0o640  # the group may read: an operator's, or a monitor's
_OTHERS = 0o007


def make_closed(path: Path, mode: int = MODE) -> None:
    """Make a file of this mode if there is none; take one that is there from all but its group.

    To be called before the file is opened: SQLite loses its locks when another handle is closed.
    Raises OSError when it cannot be made.
    """
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    except FileExistsError:
        found = path.stat().st_mode & 0o777
        if found & _OTHERS:
            with suppress(PermissionError):  # another user's: he decides
                path.chmod(found & ~_OTHERS)
        return
    try:
        os.fchmod(handle, mode)
    finally:
        os.close(handle)
