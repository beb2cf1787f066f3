"""From the spool to Parquet: one sorted file for each day and shard (archive_parquet).

A segment is deleted after every file that it belongs in is durable; killed in between, the same
reports are united with the files again, which changes nothing.
"""

import os
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import astuple, dataclass
from pathlib import Path

from aggregator.archive.columns import DAY_S, Reports, partition, unite, without
from aggregator.archive.directory import REPORTS, SPOOL, read_about
from aggregator.archive.parquet import erase_from, merge_into
from aggregator.archive.releases import erase_releases, put_releases
from aggregator.archive.spool import DAMAGED, OPEN, SEALED, IsCommitted, take_lock
from aggregator.archive.spool_record import (
    RecordError,
    decode_record,
    doubt_of,
    find_records,
    releases_of,
)
from aggregator.counting.records import KeptSums
from aggregator.errors import StoreError
from edge_ldp.device.errors import ParameterError
from edge_ldp.protocol.utc import utc

ROUND_BYTES = 16 << 20  # of segments that are brought into files together


@dataclass(frozen=True, slots=True)
class Compacted:
    """What a compaction did: reports taken from the spool, those already there, files written.

    `conflicts`: reports that say something else than the file, which stays as it is; `releases`:
    homes' sums of a period that were new.
    """

    reports: int = 0
    repeats: int = 0
    conflicts: int = 0
    files: int = 0
    releases: int = 0

    def __add__(self, other: "Compacted") -> "Compacted":
        """Return both together."""
        return Compacted(*map(sum, zip(astuple(self), astuple(other), strict=True)))


def compact(
    place: Path,
    slot_seconds: Mapping[int, int],
    is_committed: IsCommitted,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
    *,
    erased: Container[str] = (),
) -> Compacted:
    """Bring the spool into files, also while the aggregator writes to it.

    What is of `erased` devices is left behind: a segment that is open has it until it is sealed.
    `slot_seconds`: of every stream; `progress` hears bytes done, and bytes in all. Raises
    StoreError.
    """
    shards = read_about(place).shards
    lock = take_lock(place / "compaction.lock")
    compacted = Compacted()
    try:
        rounds = list(_rounds(place / SPOOL))
        size, total = 0, sum(path.stat().st_size for paths in rounds for path in paths)
        for paths in rounds:
            bodies = [one for path in paths for one in _read_segment(path, is_committed)]
            part = unite([without(reports, erased) for reports, _ in bodies])
            releases = [one for _, kept in bodies for one in kept if one.device not in erased]
            compacted += Compacted(releases=put_releases(place, releases, shards))
            compacted += Compacted(len(part.reports), part.repeats, part.conflicts)
            for (day, shard), reports in partition(part.reports, slot_seconds, shards):
                compacted += Compacted(0, *merge_into(file_of(place, day, shard), reports))
            size += sum(path.stat().st_size for path in paths)
            for path in paths:
                if path.suffix == SEALED:
                    path.unlink()
            progress(size, total)
    except KeyError as exc:
        reason = f"holds reports of stream {exc.args[0]}, which is not configured"
        raise StoreError(str(place), reason, "put the stream back into [[streams]]") from exc
    except ParameterError as exc:
        raise StoreError(str(place), str(exc), "begin a new archive") from exc
    except OSError as exc:
        remedy = "nothing is lost: do it again when it works"
        raise StoreError(str(place), exc.strerror or str(exc), remedy) from exc
    finally:
        os.close(lock)
    return compacted


def erase_archived(place: Path, devices: Container[str]) -> int:
    """Take devices out of the files, once the spool was brought there; return their reports.

    Raises StoreError; killed in between, what is left goes when it is done again.
    """
    lock = take_lock(place / "compaction.lock")
    try:
        erase_releases(place, devices)
        files = sorted((place / REPORTS).glob("day=*/shard-*.parquet"))
        return sum(erase_from(path, devices) for path in files)
    except OSError as exc:
        remedy = "erase them again when it works"
        raise StoreError(str(place), exc.strerror or str(exc), remedy) from exc
    finally:
        os.close(lock)


def file_of(place: Path, day: int, shard: int) -> Path:
    """Return the file of a day (since 1970) and shard."""
    date = utc(day * DAY_S).date().isoformat()
    return place / REPORTS / f"day={date}" / f"shard-{shard:03}.parquet"


def _rounds(spool: Path) -> Iterator[list[Path]]:
    """Yield segments, oldest first, as many at a time as fit into memory."""
    paths: list[Path] = []
    size = 0
    found = [path for end in (SEALED, OPEN) for path in spool.rglob(f"*{end}")]
    for path in sorted(found, key=lambda path: path.name):  # of all workers together
        paths.append(path)
        size += path.stat().st_size
        if size >= ROUND_BYTES:
            yield paths
            paths, size = [], 0
    if paths:
        yield paths


def _read_segment(
    path: Path, is_committed: IsCommitted
) -> list[tuple[Reports, tuple[KeptSums, ...]]]:
    """Return the committed reports and sums of a segment, one part for each flush."""
    content = path.read_bytes()
    try:
        found = find_records(content)
        bodies = list(found.bodies)
        if path.suffix == OPEN and bodies and not _is_committed(path, content, is_committed):
            del bodies[-1]
        parts = [(decode_record(body), releases_of(body)) for body in bodies]
    except RecordError as exc:
        raise StoreError(str(path), f"is {exc}", DAMAGED) from exc
    if path.suffix == SEALED and found.end != len(content):
        raise StoreError(str(path), f"is damaged at byte {found.end}", DAMAGED)
    return parts


def _is_committed(path: Path, content: bytes, is_committed: IsCommitted) -> bool:
    """Say whether the last record of a segment that is being written was committed.

    The store is asked first and the bytes are read again: had another flush been written in its
    place meanwhile, they would differ.
    """
    found = find_records(content)
    is_done = is_committed(doubt_of(found.bodies[-1]))
    after = path if path.exists() else path.with_suffix(SEALED)
    with after.open("rb") as file:
        file.seek(found.last)
        return is_done and file.read(found.end - found.last) == content[found.last : found.end]
