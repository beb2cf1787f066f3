"""A state moved to another place: one agent's ledger goes on, and no two ever have it.

The state loses its name before it gets another, so that whoever starts meanwhile finds none, and is
silent for a window. What a crash leaves half done, a second call does. Source: docs/faults.md,
AGT-31.
"""

import errno
import os
import shutil
from contextlib import ExitStack
from pathlib import Path

from agent.errors import StateGoneError, StorageError, storing
from agent.state.journal import Journal
from agent.state.place import beside_state, left_path
from agent.state.state_file import Hold

_ENDINGS = ("-running", "-sums", "")  # what runs goes first: without it a series or sum ends
_SECTOR = 512


def is_movable(source: Path, target: Path) -> bool:
    """Say whether there is a state to move; raises StorageError where it must not be.

    Another state at the target is another history of this device, and nothing joins the two.
    StateGoneError("damaged" or "lost"): there is nothing that a ledger could go on from.
    """
    if source.absolute() == target.absolute():
        return False
    try:
        Journal(source, create=False).close()
    except StateGoneError as exc:
        if not beside_state(source, ".moving").exists():
            if exc.state == "absent" or target.exists():  # nothing began, or it was moved before
                return False
            raise
    if any(beside_state(target, ending).exists() for ending in (*_ENDINGS, "-wal")):
        reason = f"another state is there, and {source} is of the same device"
        remedy = "move the one away that is not to go on, with the agent stopped"
        raise StorageError(str(target), reason, remedy)
    return True


def move_state(source: Path, target: Path) -> None:
    """Move a state that no agent has open; raises StorageError, and StateGoneError as above."""
    if not is_movable(source, target):
        return
    if source.exists():
        Journal(source).close()  # its log is in the file now
    with ExitStack() as stack:
        old = Hold(source)
        stack.callback(old.release)
        new = Hold(target)
        stack.callback(new.release)
        if _size(beside_state(source, "-wal")):
            raise StorageError(str(source), "it is being read", "try again")
        with storing(target, "check the directory; setup again goes on with it"):
            for ending in _ENDINGS:
                if (file := beside_state(source, ending)).exists():
                    file.rename(beside_state(source, ending + ".moving"))
            _sync(source.parent)
            for ending in _ENDINGS:
                if (file := beside_state(source, ending + ".moving")).exists():
                    _carry(file, beside_state(target, ending))
            _sync(target.parent)
            if left_path(source).exists():  # for the eye alone: whatever is there goes
                _carry(left_path(source), left_path(target))
        new.note(old.commits)


def _carry(source: Path, target: Path) -> None:
    """Bring a file to its new name, for the owner of the directory; all of it, or none."""
    try:
        source.rename(target)
    except OSError as exc:
        if exc.errno != errno.EXDEV:
            raise
        arriving = beside_state(target, ".arriving")
        arriving.unlink(missing_ok=True)
        handle = os.open(arriving, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as copy, source.open("rb") as kept:
            shutil.copyfileobj(kept, copy)
            copy.flush()
            os.fsync(copy.fileno())
        arriving.rename(target)
        _sync(target.parent)
        with source.open("r+b") as spent:  # a curator's key is there
            spent.write(bytes(_SECTOR))
            spent.flush()
            os.fsync(spent.fileno())
        source.unlink()
    if os.geteuid() == 0:
        owner = target.parent.stat()
        for file in (target, beside_state(target, ".lock")):
            if file.exists():
                os.chown(file, owner.st_uid, owner.st_gid)


def _sync(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
