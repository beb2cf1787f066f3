"""Counting the archive's reports anew, on whichever engine: some days, then the next."""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from hashlib import blake2s
from pathlib import Path
from typing import Protocol
from zipfile import BadZipFile

import numpy as np

from aggregator.archive.directory import REPORTS, put_in_place
from aggregator.archive.spool import take_lock
from aggregator.counting.tally import Tally, merge
from aggregator.replay.comparison import subtract, tally_of_columns
from aggregator.replay.duckdb_engine import open_duckdb
from aggregator.replay.statement import COLUMNS, Selection
from edge_ldp.arrays import Ints

WORK = "replay"


class Engine(Protocol):
    """What counts files: `days_at_once` of them in one query."""

    days_at_once: int

    def count(self, files: Sequence[Path], progress: Callable[[float], None]) -> list[Ints]:
        """Return COLUMNS of all reports in the files; `progress` hears which share is done."""


OpenEngine = Callable[["Selection"], AbstractContextManager[Engine]]


@dataclass(frozen=True, slots=True)
class Counted:
    """What a replay counted; `resumed`: days whose counts an interrupted replay had left.

    `tally`: all reports; `left_out`: those of them that are of excluded devices.
    """

    tally: Tally
    left_out: Tally
    days: int
    resumed: int

    @property
    def kept(self) -> Tally:
        """Return the counts without the excluded devices."""
        return subtract(self.tally, self.left_out)


def count_archive(
    place: Path,
    selection: Selection,
    *,
    engine: OpenEngine = open_duckdb,
    resume: bool = False,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> Counted:
    """Return the counts of all reports in the archive's files.

    Counts are kept until the last day is done; with `resume`, those of an interrupted replay are
    taken where the files are still the same. `progress` hears days done and days in all. Raises
    StoreError for a damaged file, or while another replay runs.
    """
    folders = sorted({path.parent for path in (place / REPORTS).glob("day=*/shard-*.parquet")})
    work = place / WORK
    work.mkdir(exist_ok=True)
    lock = take_lock(work / "lock")
    try:
        with engine(selection) as counting:
            done = list(
                _count_all(counting, selection, folders, work, resume=resume, progress=progress)
            )
        for left in work.glob("day=*"):
            left.unlink()
    finally:
        os.close(lock)
    tallies = [tally_of_columns(columns) for _, columns in done]
    return Counted(
        tally=merge(tally for tally, _ in tallies),
        left_out=merge(tally for _, tally in tallies),
        days=len(folders),
        resumed=sum(days for days, _ in done),
    )


def _count_all(  # noqa: PLR0913 (what counting consists of)
    engine: Engine,
    selection: Selection,
    folders: Sequence[Path],
    work: Path,
    *,
    resume: bool,
    progress: Callable[[int, int], None],
) -> Iterator[tuple[int, list[Ints]]]:
    """Yield (days whose counts were there, columns) of as many days as the engine takes at once."""
    for at in range(0, len(folders), engine.days_at_once):
        chunk = folders[at : at + engine.days_at_once]
        files = [path for folder in chunk for path in sorted(folder.glob("shard-*.parquet"))]
        kept = work / f"{chunk[0].name}.npz"
        mark = _mark(files, selection)
        columns = _load(kept, mark) if resume else None
        resumed = len(chunk)
        if columns is None:
            resumed = 0
            so_far = partial(_tell_share, progress, at, len(chunk), len(folders))
            columns = engine.count(files, so_far)
            _save(kept, mark, columns)
        yield resumed, columns
        progress(at + len(chunk), len(folders))


def _tell_share(
    progress: Callable[[int, int], None], at: int, days: int, total: int, share: float
) -> None:
    if share < 1:  # the end is told when the counts are kept
        progress(at + int(share * days), total)


def _mark(files: Sequence[Path], selection: Selection) -> str:
    """Return what tells whether the files, or the selection, have changed."""
    stats = [(path, path.stat()) for path in files]
    facts = [(path.parent.name, path.name, s.st_size, s.st_mtime_ns, s.st_ino) for path, s in stats]
    asked = [COLUMNS, sorted(selection.bucket_slots.items()), sorted(selection.without), facts]
    return blake2s(json.dumps(asked).encode()).hexdigest()


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
