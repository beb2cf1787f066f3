"""One Parquet file of the archive: read, united with new reports, and replaced whole.

A file is sorted by device, stream and slot, so new reports are united with it row group by row
group: what memory that takes does not grow with the file.
"""

from bisect import bisect_left
from collections.abc import Container, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from aggregator.archive.columns import TYPES, Reports, United, make_reports, unite, without
from aggregator.archive.directory import replacing
from aggregator.archive.spool import sync_directory
from aggregator.errors import StoreError

ROW_GROUP = 1 << 18
_KINDS = {name: pa.from_numpy_dtype(kind) for name, kind in TYPES.items()}
_SCHEMA = pa.schema({**_KINDS, "device": pa.dictionary(_KINDS["device"], pa.string())})


class Merged(NamedTuple):
    """What uniting did: reports that were there, those of them in conflict, files written."""

    repeats: int
    conflicts: int
    files: int


def merge_into(path: Path, reports: Reports) -> Merged:
    """Unite sorted reports with those of a file; replace it, durably and whole, if any is new.

    Of those that disagree the file's stands. Raises OSError, and StoreError for a damaged file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for folder in (path.parent.parent.parent, path.parent.parent):
        sync_directory(folder)
    repeats = conflicts = 0
    with replacing(path) as draft:
        with pq.ParquetWriter(draft, _SCHEMA, compression="zstd") as writer:
            for united in _united(path, reports):
                writer.write_table(_table_of(united.reports), row_group_size=ROW_GROUP)
                repeats, conflicts = repeats + united.repeats, conflicts + united.conflicts
        if path.exists() and repeats == len(reports):
            draft.unlink()
            return Merged(repeats, conflicts, 0)  # nothing new: the file stays
    return Merged(repeats, conflicts, 1)


def erase_from(path: Path, devices: Container[str]) -> int:
    """Replace a file, durably and whole, by one without these devices; return their reports."""
    gone = 0
    with replacing(path) as draft:
        with pq.ParquetWriter(draft, _SCHEMA, compression="zstd") as writer:
            for group in _groups(path):
                left = without(group, devices)
                gone += len(group) - len(left)
                writer.write_table(_table_of(left), row_group_size=ROW_GROUP)
        if not gone:
            draft.unlink()
    return gone


def _united(path: Path, reports: Reports) -> Iterator[United]:
    """Yield the file's reports and the new ones, in order; all of one device in one part.

    The last device of a row group may go on in the next one, so its reports are carried over.
    """
    if not path.exists():
        yield United(reports, 0, 0)
        return
    carried: list[Reports] = []
    begin = 0
    for group in _groups(path):
        last = group.names[group.device[-1]]
        end = bisect_left(reports.names, last)
        united = unite([*carried, group, _of_devices(reports, begin, end)])
        is_last = united.reports.device == bisect_left(united.reports.names, last)
        carried, begin = [united.reports.take(is_last)], end
        yield United(united.reports.take(~is_last), united.repeats, united.conflicts)
    yield unite([*carried, _of_devices(reports, begin, len(reports.names))])


def _groups(path: Path) -> Iterator[Reports]:
    """Yield the row groups of a file that have reports."""
    try:
        with pq.ParquetFile(path) as file:
            for at in range(file.num_row_groups):
                group = _reports_of(file.read_row_group(at))
                if len(group):
                    yield group
    except (pa.ArrowException, OSError, KeyError) as exc:
        raise damaged(path, exc) from exc


def _of_devices(reports: Reports, begin: int, end: int) -> Reports:
    """Return the reports of the devices begin … end-1; they are sorted by device."""
    return reports.take(np.arange(*np.searchsorted(reports.device, (begin, end))))


def _reports_of(table: pa.Table) -> Reports:
    table = table.combine_chunks()
    device = table.column("device").combine_chunks().dictionary_encode()
    columns = {
        name: table.column(name).to_numpy().astype(kind)
        for name, kind in TYPES.items()
        if name in table.column_names and name != "device"
    }
    columns["device"] = np.asarray(device.indices)
    return make_reports(device.dictionary.to_pylist(), columns)


def _table_of(reports: Reports) -> pa.Table:
    columns = {name: pa.array(column) for name, column in reports.columns().items()}
    names = pa.array(reports.names, pa.string())
    columns["device"] = pa.DictionaryArray.from_arrays(columns["device"], names)
    return pa.table(columns, _SCHEMA)


def damaged(path: Path, exc: Exception) -> StoreError:
    """Return the error of a file that cannot be read."""
    return StoreError(str(path), f"is damaged ({exc})", "restore it from a backup")
