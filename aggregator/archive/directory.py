"""The archive's directory: what it is about, its spool, and whose word ends a doubt.

archive.json    fleet, shards, and whether it began with the store
spool/          what was counted since it was last brought into files (archive_spool); of each of
                several workers in a directory of its name
reports/        day=YYYY-MM-DD/shard-NNN.parquet (archive_files, archive_parquet)
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from aggregator.archive.spool import MODE, SEGMENT_BYTES, Spool, sync_directory
from aggregator.config import AggregatorConfig
from aggregator.counting.records import Doubt
from aggregator.errors import StoreError

ABOUT, SPOOL, REPORTS = "archive.json", "spool", "reports"
FORMAT = 1


class Committed(Protocol):
    """What a store tells the archive: whether it ever committed, and which flushes."""

    def last_commit_s(self) -> int | None:
        """Return when a flush was last committed (seconds UTC), or None."""

    def committed(self, doubt: Doubt) -> bool:
        """Say whether a flush was committed."""


@dataclass(frozen=True, slots=True)
class About:
    """What an archive holds. `complete`: it began with the store, so it can hold every report."""

    format: int
    fleet: str
    shards: int
    complete: bool


def read_about(place: Path) -> About:
    """Return what an archive is about; raises StoreError when it is none that we can read."""
    try:
        about = About(**json.loads((place / ABOUT).read_bytes()))
    except OSError as exc:
        remedy = "name the archive in [archive] and start `edge-ldp aggregator run`"
        raise StoreError(str(place), f"is no archive ({exc.strerror})", remedy) from exc
    except (TypeError, ValueError) as exc:
        reason = "is damaged or of another version"
        raise StoreError(str(place / ABOUT), reason, "put it back from a backup") from exc
    if about.format != FORMAT:
        reason = f"is of format {about.format}, this version reads {FORMAT}"
        raise StoreError(str(place / ABOUT), reason, "use the version that wrote it")
    return about


def open_spool(
    config: AggregatorConfig,
    store: Committed,
    worker: str = "",
    *,
    segment_bytes: int = SEGMENT_BYTES,
) -> Spool | None:
    """Return a worker's spool as [archive] asks for it, or None; raises StoreError."""
    if config.archive is None:
        return None
    place = Path(config.archive.path)
    complete = store.last_commit_s() is None
    asked = About(FORMAT, config.fleet, config.archive.shards, complete)
    try:
        place.mkdir(0o750, parents=True, exist_ok=True)
        if not (place / ABOUT).exists():
            # suppressed: another worker was as quick
            with suppress(FileNotFoundError), replacing(place / ABOUT) as draft:
                draft.write_text(json.dumps(asdict(asked)))
    except OSError as exc:
        remedy = "its directory must exist and be writable for the service's user"
        raise StoreError(str(place), exc.strerror or str(exc), remedy) from exc
    about = read_about(place)
    if (about.fleet, about.shards) != (asked.fleet, asked.shards):
        reason = f"was made for fleet {about.fleet} in {about.shards} shards"
        raise StoreError(str(place), reason, "put that back, or name a new archive")
    return Spool.open(place / SPOOL / worker, store.committed, segment_bytes=segment_bytes)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a draft: what is written there takes the place of a file, durably and whole.

    Where an error is raised, or no draft is left at the end, the file stays as it was.
    """
    draft = path.with_name(path.name + ".new")
    os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, MODE))
    try:
        yield draft
        if draft.exists():
            make_durable(draft)
            put_in_place(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def make_durable(draft: Path) -> None:
    """Write a file's bytes through to the disk."""
    handle = os.open(draft, os.O_RDWR)
    try:
        os.fchmod(handle, MODE)
        os.fsync(handle)
    finally:
        os.close(handle)


def put_in_place(draft: Path, path: Path) -> None:
    """Let a durable draft take the place of a file, durably."""
    draft.replace(path)
    sync_directory(path.parent)
