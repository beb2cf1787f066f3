"""What runs, in a file of its own: a copy of it opens one state, never two.

On a disk (a curator's chunks, and sums where their owner said so) or in memory
(`agent.state.place.running_path`), where no copy of the disk has it.

A state is sealed under a key of its own and written into the area that is not in use; then the
file's first sector is overwritten, in one write, with where it is and that key. The sector is the
commit point: before it the earlier state opens, after it the new one, and the key of the other is
gone. No log of earlier bytes is kept (docs/adr/0028-one-state-on-the-disk.md).

The sector: magic, area, length, key, check; all else is zeros. An area: the record under the
stream cipher SHAKE-128(key ‖ "seal"), each key once.
"""

import errno
import os
from contextlib import suppress
from hashlib import shake_128
from pathlib import Path
from struct import Struct

from agent.errors import StorageError
from edge_ldp.device.errors import EntropyError
from edge_ldp.entropy import ReportDraw, StuckEntropyError
from edge_ldp.service.files import make_closed

ENDING, SUMS_ENDING = "-running", "-sums"
SECTOR = 512  # what a disk writes whole; a torn one fails its check and opens nothing
AREA = 1 << 18  # 16 streams' states and 1,024 released values take less
_HEAD = Struct("<8sII32s16s")
_MAGIC = b"ldp-run1"
_CHECK_BYTES = 16
_PASSING = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.ENOENT}


class RunningFile:
    """The file at `path`; made with the first `write`.

    Raises StorageError for what the disk refuses; `passes` when nothing was written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._area = 0

    def read(self) -> bytes | None:
        """Return the record that opens, or None when there is none."""
        try:
            body = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as exc:
            raise self._error(exc) from exc
        if len(body) < SECTOR:
            return None
        magic, area, size, key, check = _HEAD.unpack_from(body)
        at = SECTOR + area * AREA
        sealed = body[at : at + size]
        if magic != _MAGIC or check != _check(key, sealed):
            return None
        self._area = area
        return _sealed(key, sealed)

    def write(self, record: bytes) -> None:
        """Put a record in the place of the one before, all or nothing, durable on return."""
        if len(record) > AREA:
            raise StorageError(str(self.path), f"a state of {len(record)} bytes", "fewer streams")
        key = self._fresh_key()
        sealed, area = _sealed(key, record), 1 - self._area
        head = _HEAD.pack(_MAGIC, area, len(sealed), key, _check(key, sealed))
        self._put((SECTOR + area * AREA, sealed), (0, head.ljust(SECTOR, b"\0")))
        self._area = area

    def wipe(self) -> None:
        """Overwrite the key: what the areas hold opens no more."""
        if self.path.exists():
            self._put((0, bytes(SECTOR)))

    def unlink(self) -> None:
        """Overwrite the key, and take the file away."""
        self.wipe()
        try:
            self.path.unlink(missing_ok=True)
        except OSError as exc:
            raise self._error(exc) from exc

    def _fresh_key(self) -> bytes:
        draw = ReportDraw().below
        try:
            return b"".join(draw(1 << 64).to_bytes(8, "little") for _ in range(4))
        except StuckEntropyError:
            raise
        except EntropyError as exc:
            raise StorageError(str(self.path), str(exc), passes=True) from exc

    def _put(self, *parts: tuple[int, bytes]) -> None:
        """Write (place, bytes) in this order, each durable before the next is begun."""
        try:
            self.path.parent.mkdir(mode=0o700, exist_ok=True)  # a logout takes a user's away
            is_new = not self.path.exists()
            make_closed(self.path, 0o600)
            handle = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
            try:
                for at, body in parts:
                    if os.pwrite(handle, body, at) != len(body):
                        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                    os.fdatasync(handle)
            finally:
                os.close(handle)
            if is_new:
                _sync_entries(self.path.parent)
        except OSError as exc:
            raise self._error(exc) from exc

    def _error(self, exc: OSError) -> StorageError:
        reason, passes = exc.strerror or "", exc.errno in _PASSING
        return StorageError(str(self.path), reason, "check the disk and the rights", passes=passes)


def _sealed(key: bytes, record: bytes) -> bytes:
    """Return a record under its key, or what it was: the same again takes it off."""
    pad = shake_128(key + b"seal").digest(len(record))
    mixed = int.from_bytes(record, "little") ^ int.from_bytes(pad, "little")
    return mixed.to_bytes(len(record), "little")


def _check(key: bytes, sealed: bytes) -> bytes:
    return shake_128(key + b"check" + sealed).digest(_CHECK_BYTES)


def _sync_entries(path: Path) -> None:
    """Make a directory's entries durable, where its file system can."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # some sync no directory
            os.fsync(handle)
    finally:
        os.close(handle)
