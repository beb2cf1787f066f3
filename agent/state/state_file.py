"""One process per state file, and nothing trusted that is damaged or has gone back in time.

Beside the state file lies its lock. It names the process that holds it, and the number of the last
commit: a file that is behind that number has lost its write-ahead log, or is an old copy. Damaged
files are renamed, never deleted; of a lost one an empty file says when it was missed. Source:
docs/faults.md, AGT-07, AGT-14, AGT-32.
"""

import errno
import fcntl
import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from agent.errors import StorageError, storing
from agent.state.place import beside_state
from edge_ldp.service.files import make_closed

_WAL_VERSIONS = b"\2\2"  # bytes 18 and 19 of the file: any other value makes it read-only
_ENVIRONMENT = {
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
}
_ANYBODY, _GROUP = 0o002, 0o020  # may write
_LEAST_BYTES = 1 << 16  # an empty state and what lies beside it
_EARLIER = re.compile(r"\.(damaged|lost)-[0-9]+")
_LOGS = ("-wal", "-journal")  # the second only while a file is made
_PASSING = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}


class Hold:
    """This process's lock on a state file; `commits` is the last commit that any holder noted.

    Raises StorageError naming the holder. The lock ends with `release` or with the process.
    """

    def __init__(self, path: Path) -> None:
        with storing(path, "check the directory"):
            refuse_place(path)
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            for ending in ("", "-shm", *_LOGS):
                if (earlier := beside_state(path, ending)).exists():
                    make_closed(earlier)
            make_closed(beside_state(path, ".lock"), 0o600)
            handle = os.open(f"{path}.lock", os.O_RDWR | os.O_CLOEXEC)
        self._path = path
        self._handle = handle
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            holder, _ = self._read()
            self.release()
            raise StorageError(
                str(path),
                f"process {holder} holds it",
                "stop that agent first, or use its own file",
            ) from exc
        self.note(self._read()[1])

    def note(self, commits: int) -> None:
        """Write down that so many commits are in the file; only after the last one is durable."""
        self.commits = commits
        with storing(self._path, "check the disk"):
            os.pwrite(self._handle, f"{os.getpid():10d} {commits:18d}\n".encode(), 0)

    def release(self) -> None:
        """Let go of the lock; a second call does nothing."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def _read(self) -> tuple[str, int]:
        return _noted(os.pread(self._handle, 64, 0))


def noted_commits(path: Path) -> int:
    """Return how many commits the last holder of a state noted; 0 where no note can be read."""
    try:
        with beside_state(path, ".lock").open("rb") as file:
            return _noted(file.read(64))[1]
    except OSError:
        return 0


def refuse_place(state: Path) -> None:
    """Raise StorageError where no agent may keep its state, or none could; makes nothing.

    `run` and `check` both go by it: what the one refuses the other does not pass.
    """
    try:
        refused = _refused(state)
        is_open = tuple(_open_to_others(state))
    except OSError as exc:
        refused, is_open = {exc.errno or errno.EIO: True}, ()
    for number, is_so in refused.items():
        if is_so:
            remedy = "check the directory, and as which user this is run"
            if number == errno.ENOSPC:
                remedy = f"make room there: {_LEAST_BYTES >> 10} KiB at the least"
            raise StorageError(str(state), os.strerror(number), remedy)
    for path, remedy in is_open:
        raise StorageError(str(state), f"others may write to {path}", remedy)


def earlier_states(state: Path) -> Iterator[tuple[Path, bool, int]]:
    """Yield what is left of each damaged or lost state of this name, oldest first.

    Its file, whether it was lost (then the file is empty), and since when, in seconds since 1970.
    """
    found = [
        (int(path.stat().st_ctime), path, form[1] == "lost")
        for path in state.parent.glob(f"{state.name}.*")
        if (form := _EARLIER.fullmatch(path.name.removeprefix(state.name)))
    ]
    for when_s, path, is_lost in sorted(found):
        yield path, is_lost, when_s


def _refused(state: Path) -> dict[int, bool]:
    """Return what the operating system would refuse, by its number."""
    there = state.parent
    while not there.exists():  # what is missing is made
        there = there.parent
    found = os.statvfs(there)
    free = found.f_bfree if os.geteuid() == 0 else found.f_bavail
    written = [there, *(path for path in (state, beside_state(state, ".lock")) if path.exists())]
    return {
        errno.ENOTDIR: not there.is_dir(),
        errno.EISDIR: state.is_dir(),
        errno.EROFS: bool(found.f_flag & os.ST_RDONLY),
        errno.EACCES: not all(os.access(path, os.W_OK, effective_ids=True) for path in written),
        errno.ENOSPC: not state.exists() and free * found.f_frsize < _LEAST_BYTES,
    }


def _open_to_others(state: Path) -> Iterator[tuple[Path, str]]:
    """Yield where anybody may put another state in the place of this one, and the remedy."""
    own = "put the state into a directory of its own, of mode 0700"
    for path, who, remedy in (
        (state.parent, _ANYBODY, own),  # it may be everybody's, as /tmp: no word of chmod
        (state, _ANYBODY | _GROUP, f"chmod go-w {state}"),
    ):
        if path.exists() and path.stat().st_mode & who:
            yield path, remedy


def looks_damaged(path: Path, commits: int) -> bool:
    """Say whether a file need not be opened: gone, emptied, or with a header SQLite misreads.

    Nothing but a journal beside it says that it was being made when the agent ended: nothing was
    spent, and SQLite forgets that journal by itself.
    """
    head, remedy = b"", "name a file of its own"
    with storing(path, remedy), suppress(FileNotFoundError), path.open("rb") as file:
        head = file.read(20)
    if not head:
        return commits > 0 or beside_state(path, "-wal").exists()
    return head[18:] != _WAL_VERSIONS


def is_environment(exc: Exception) -> bool:
    """Say whether an SQLite error is about disk, rights or locks, not about the file's bytes."""
    code = getattr(exc, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    return code != sqlite3.SQLITE_READONLY_ROLLBACK and code & 0xFF in _ENVIRONMENT


def passes_by_itself(exc: Exception) -> bool:
    """Say whether an SQLite error left everything as it was, and is over when the disk has room.

    A sync that failed is none of these: what is on the disk then is unknown.
    """
    code = getattr(exc, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    return code == sqlite3.SQLITE_IOERR_WRITE or code & 0xFF in _PASSING


def set_aside(path: Path) -> Path | None:
    """Rename a damaged file and its log; return where they went.

    Where nothing is left of one that was there, an empty file says so: `earlier_states`. None:
    there never was one.
    """
    left = [ending for ending in ("", "-shm", *_LOGS) if beside_state(path, ending).exists()]
    if not left and not noted_commits(path):
        return None
    number, kind = 1, "damaged" if left else "lost"
    while list(path.parent.glob(f"{path.name}.{kind}-{number}*")):
        number += 1
    aside = beside_state(path, f".{kind}-{number}")
    with storing(path, "check the directory"):
        for ending in left:
            beside_state(path, ending).rename(beside_state(aside, ending))
        if not left:
            make_closed(aside, 0o600)
    return aside


def _noted(line: bytes) -> tuple[str, int]:
    match = re.match(rb" *([0-9]{1,10}) +([0-9]{1,18})\n", line)
    return (match[1].decode(), int(match[2])) if match else ("unknown", 0)


def reading_options(path: Path) -> str:
    """Return how SQLite must open a state file to read it and touch nothing beside it.

    It makes files beside a database in WAL mode, even to read it, unless it is told that nobody
    writes: which is so when there is no log, for the agent that has it open keeps one. Raises
    OSError when there is no file.
    """
    path.stat()
    log_file = beside_state(path, "-wal")
    in_use = log_file.exists() and log_file.stat().st_size > 0
    return "mode=ro" if in_use else "mode=ro&immutable=1"
