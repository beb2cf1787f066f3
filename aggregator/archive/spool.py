"""The archive's spool: what a flush counts is durable here before the store commits it.

Only the last record can be in doubt, for the next flush is written where the last committed one
ended. So a record that is followed by another was committed, and after a crash the store tells
whether the last one was: nothing is missing, and nothing is kept that was not counted. Each of
several workers has a spool of its own, in a directory of its name.
"""

import fcntl
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from aggregator.archive import spool_record
from aggregator.counting.frames import CountedFrames
from aggregator.counting.records import Doubt, KeptSums
from aggregator.errors import StoreError, StoreHeldError

IsCommitted = Callable[[Doubt], bool]

SEGMENT_BYTES = 16 << 20
OPEN, SEALED = ".open", ".spool"
MODE = 0o640
DAMAGED = "set the file aside (never delete it): the reports in it cannot be replayed"


class Spool:
    """The one writer of a spool; may be used from any thread, by one at a time."""

    def __init__(self, place: Path, lock: int, segment_bytes: int) -> None:
        self._place = place
        self._lock = lock
        self._limit = segment_bytes
        self._file: int | None = None
        self._path = place
        self._end = 0  # of what is committed
        self._written = 0
        self._doubt: Doubt | None = None

    @classmethod
    def open(
        cls, place: Path, is_committed: IsCommitted, *, segment_bytes: int = SEGMENT_BYTES
    ) -> "Spool":
        """Return the spool in a directory, made if there is none; raises StoreError.

        What a crash left is resolved by `is_committed`, so the store must not have changed since.
        """
        try:
            place.mkdir(parents=True, exist_ok=True)
            sync_directory(place.parent)
            lock = take_lock(place / "lock")
            spool = cls(place, lock, segment_bytes)
            try:
                for path in sorted(place.glob(f"*{OPEN}")):
                    _recover(path, is_committed)
            except BaseException:
                spool.close()
                raise
        except OSError as exc:
            remedy = "its directory must exist and be writable for the service's user"
            raise StoreError(str(place), exc.strerror or str(exc), remedy) from exc
        return spool

    def resolve(self, is_committed: IsCommitted) -> None:
        """Find out whether what was put last was committed, if that is not known.

        To be called before each flush: a commit that failed may have happened all the same.
        """
        if self._doubt is not None and is_committed(self._doubt):
            self.confirm()

    def put(
        self,
        counted: CountedFrames,
        flush: bytes,
        summed: Sequence[KeptSums] = (),
    ) -> None:
        """Make what a flush counts durable, in place of a flush that was not committed.

        `flush`: its id, of 16 bytes; `summed`: homes' sums. Raises StoreHeldError: try again later.
        """
        self._doubt = None
        if not (counted or summed):
            return
        record = spool_record.encode_record(counted, flush, summed)
        try:
            self._append(record)
        except OSError as exc:
            reason = f"cannot be written ({exc.strerror or exc})"
            remedy = "waiting; nothing is acknowledged until it works"
            raise StoreHeldError(str(self._place), reason, remedy) from exc
        self._doubt = spool_record.first_of(counted, flush, summed)
        self._written = self._end + len(record)

    def confirm(self) -> None:
        """Note that the store committed what was put last."""
        if self._doubt is not None:
            self._end, self._doubt = self._written, None

    def close(self) -> None:
        """Let go of the spool; what is not confirmed stays to be resolved at the next start."""
        if self._doubt is None and self._end:
            with suppress(OSError):  # the next start does it
                self._seal()
        if self._file is not None:
            os.close(self._file)
            self._file = None
        os.close(self._lock)

    def _append(self, record: bytes) -> None:
        if self._end >= self._limit:
            self._seal()
        if self._file is None:
            self._file = self._begin()
        os.ftruncate(self._file, self._end)
        _write_all(self._file, record, self._end)
        os.fdatasync(self._file)

    def _begin(self) -> int:
        # a name that no segment ever had: the compaction deletes by name
        self._path = self._place / f"{time.time_ns():020}-{os.urandom(8).hex()}{OPEN}"
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, MODE)
        try:
            sync_directory(self._place)
        except OSError:
            os.close(file)
            raise
        self._end = self._written = 0
        return file

    def _seal(self) -> None:
        if self._file is not None:
            os.ftruncate(self._file, self._end)
            os.fsync(self._file)
            os.close(self._file)
            self._file = None
        self._end = self._written = 0
        self._path.replace(self._path.with_suffix(SEALED))
        sync_directory(self._place)


def take_lock(path: Path) -> int:
    """Return a lock that only one process can hold; raises StoreError while another does."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, MODE)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as exc:
        os.close(lock)
        raise StoreError(str(path), "is in use by another process", "wait for its end") from exc
    return lock


def sync_directory(place: Path) -> None:
    """Make the names in a directory durable."""
    handle = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _recover(path: Path, is_committed: IsCommitted) -> None:
    """Cut what was not committed off a segment, and seal it."""
    try:
        found = spool_record.find_records(path.read_bytes())
    except spool_record.RecordError as exc:
        raise StoreError(str(path), f"is {exc}", DAMAGED) from exc
    end = found.end
    if found.bodies and not is_committed(spool_record.doubt_of(found.bodies[-1])):
        end = found.last
    if not end:
        path.unlink()
    else:
        os.truncate(path, end)
        handle = os.open(path, os.O_RDWR)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
        path.replace(path.with_suffix(SEALED))
    sync_directory(path.parent)


def _write_all(file: int, data: bytes, at: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(file, view, at)
        view, at = view[written:], at + written
