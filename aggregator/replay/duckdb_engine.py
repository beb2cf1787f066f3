"""Counting the archive's files on DuckDB: one machine, one process."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from aggregator.errors import StoreError
from aggregator.replay.statement import COLUMNS, DUCKDB, Selection
from edge_ldp.arrays import Ints


class DuckdbEngine:
    """Counts one day after the other."""

    days_at_once = 1

    def __init__(self, db: duckdb.DuckDBPyConnection, selection: Selection) -> None:
        self._db = db
        self._query = selection.text(DUCKDB)
        db.register("streams", streams_table(selection))
        db.register("excluded", excluded_table(selection))

    def count(self, files: Sequence[Path], progress: Callable[[float], None]) -> list[Ints]:
        """Return COLUMNS of the reports in the files; raises StoreError for a damaged one."""
        try:
            reports = self._db.from_parquet([str(path) for path in files], union_by_name=True)
            for name in ("grp", "cls"):
                if name not in reports.columns:  # all of them are older
                    reports = reports.project(f"*, NULL AS {name}")
            reports.create_view("reports")
            found = self._db.execute(self._query).fetchnumpy()
        except duckdb.Error as exc:
            raise unreadable(files, exc) from exc
        progress(1.0)
        return [np.asarray(found[name], np.int64) for name in COLUMNS]


@contextmanager
def open_duckdb(selection: Selection) -> Iterator[DuckdbEngine]:
    """Give the engine."""
    with closing(duckdb.connect()) as db:
        yield DuckdbEngine(db, selection)


def streams_table(selection: Selection) -> pa.Table:
    """Return what the query joins for the length of buckets."""
    columns = {
        "stream": [*selection.bucket_slots],
        "bucket_slots": [*selection.bucket_slots.values()],
    }
    return pa.table({name: pa.array(column, pa.int64()) for name, column in columns.items()})


def excluded_table(selection: Selection) -> pa.Table:
    """Return what the query joins to tell devices apart."""
    return pa.table({"name": pa.array(sorted(selection.without), pa.string())})


def unreadable(files: Sequence[Path], reason: Exception) -> StoreError:
    """Return the error of files that an engine cannot read."""
    text = " ".join(str(reason).split())[:500]
    remedy = "restore it from a backup"
    return StoreError(str(files[0].parent), f"cannot be read ({text})", remedy)
