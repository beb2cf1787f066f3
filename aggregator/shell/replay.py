"""Counting the archive's reports anew on DuckDB, day by day."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from hashlib import blake2s
from typing import TYPE_CHECKING
from zipfile import BadZipFile

import duckdb
import numpy as np

from aggregator.archive_compare import tally_of_columns
from aggregator.shell.archive import REPORTS, put_in_place
from aggregator.shell.archive_spool import take_lock
from aggregator.shell.store import StoreError
from aggregator.tally import Tally, merge

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

WORK = "replay"
COLUMNS = ("stream", "epoch", "bucket", "code", "n")
# The same query on every engine: integers only, so there is one answer.
QUERY = """
SELECT stream, epoch, slot // bucket_slots AS bucket, code, count(*) AS n
FROM reports JOIN streams USING (stream)
GROUP BY stream, epoch, bucket, code ORDER BY stream, epoch, bucket, code
"""


@dataclass(frozen=True, slots=True)
class Counted:
    """What a replay counted; `resumed`: days whose counts an interrupted replay had left."""

    tally: Tally
    days: int
    resumed: int


def count_archive(
    place: Path,
    bucket_slots: Mapping[int, int],
    *,
    resume: bool = False,
    told: Callable[[int, int], None] = lambda _done, _all: None,
) -> Counted:
    """Return the counts of all reports in the archive's files.

    Each day's counts are kept until the last day is done; with `resume`, those of an interrupted
    replay are taken where the day's files are still the same. `told` hears days done and days in
    all. Raises StoreError for a damaged file, or while another replay runs.
    """
    folders = sorted({path.parent for path in (place / REPORTS).glob("day=*/shard-*.parquet")})
    work = place / WORK
    work.mkdir(exist_ok=True)
    tallies, resumed = [], 0
    lock = take_lock(work / "lock")
    try:
        with _connect(bucket_slots) as db:
            for at, folder in enumerate(folders):
                files = sorted(folder.glob("shard-*.parquet"))
                kept = work / f"{folder.name}.npz"
                mark = _mark(files, bucket_slots)
                columns = _load(kept, mark) if resume else None
                if columns is None:
                    columns = _count_day(db, files)
                    _save(kept, mark, columns)
                else:
                    resumed += 1
                tallies.append(tally_of_columns(columns))
                told(at + 1, len(folders))
        for left in work.glob("day=*"):
            left.unlink()
    finally:
        os.close(lock)
    return Counted(merge(tallies), len(folders), resumed)


def _connect(bucket_slots: Mapping[int, int]) -> duckdb.DuckDBPyConnection:
    db = duckdb.connect()
    db.execute("CREATE TABLE streams (stream UTINYINT, bucket_slots UINTEGER)")
    db.executemany("INSERT INTO streams VALUES (?, ?)", [[*one] for one in bucket_slots.items()])
    return db


def _count_day(db: duckdb.DuckDBPyConnection, files: Sequence[Path]) -> list[Ints]:
    try:
        db.from_parquet([str(path) for path in files]).create_view("reports")
        found = db.execute(QUERY).fetchnumpy()
    except duckdb.Error as exc:
        reason = f"cannot be read ({' '.join(str(exc).split())})"
        raise StoreError(str(files[0].parent), reason, "restore it from a backup") from exc
    return [np.asarray(found[name], np.int64) for name in COLUMNS]


def _mark(files: Sequence[Path], bucket_slots: Mapping[int, int]) -> str:
    """Return what tells whether a day's files, or the question, have changed."""
    stats = [(path, path.stat()) for path in files]
    facts = [(path.name, s.st_size, s.st_mtime_ns, s.st_ino) for path, s in stats]
    asked = json.dumps([QUERY, sorted(bucket_slots.items()), facts])
    return blake2s(asked.encode()).hexdigest()


def _save(path: Path, mark: str, columns: Sequence[Ints]) -> None:
    draft = path.with_suffix(".new.npz")
    np.savez(draft, mark=np.array(mark), columns=np.stack(columns))
    put_in_place(draft, path)


def _load(path: Path, mark: str) -> list[Ints] | None:
    try:
        with np.load(path, allow_pickle=False) as kept:
            return list(kept["columns"]) if str(kept["mark"]) == mark else None
    except (OSError, ValueError, KeyError, EOFError, BadZipFile):
        return None
