"""Homes' sums in the archive: one Parquet file of a month's periods and shard, as they came.

A release is one per device, stream and begin of its period, so the same part twice changes nothing.
"""

from collections.abc import Container, Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from aggregator.archive.columns import shard_of
from aggregator.archive.directory import replacing
from aggregator.archive.parquet import damaged
from aggregator.archive.spool import sync_directory
from aggregator.counting.records import KeptSums
from edge_ldp.protocol.utc import utc

RELEASES = "releases"
_SCHEMA = pa.schema(
    {
        "device": pa.string(),
        "name": pa.string(),
        "first_s": pa.int64(),
        "end_s": pa.int64(),
        "grp": pa.int64(),
        "payload": pa.binary(),
    }
)


def put_releases(place: Path, kept: Iterable[KeptSums], shards: int) -> int:
    """Unite releases with the files that they belong in, durably; return how many were new.

    Of two of a device, stream and begin the one that was there stands. Raises OSError, StoreError.
    """
    files: dict[Path, list[KeptSums]] = {}
    for one in kept:
        month = f"month={utc(one.first_s):%Y-%m}"
        path = place / RELEASES / month / f"shard-{shard_of(one.device, shards):03}.parquet"
        files.setdefault(path, []).append(one)
    return sum(_merge(path, files[path]) for path in sorted(files))


def read_releases(place: Path) -> Iterator[KeptSums]:
    """Yield every release in the archive's files; raises StoreError for a damaged one."""
    for path in sorted((place / RELEASES).glob("month=*/shard-*.parquet")):
        yield from _read(path)


def erase_releases(place: Path, devices: Container[str]) -> None:
    """Replace the files that have releases of these devices; raises OSError, StoreError."""
    for path in sorted((place / RELEASES).glob("month=*/shard-*.parquet")):
        kept = _read(path)
        left = [one for one in kept if one.device not in devices]
        if len(left) < len(kept):
            _put(path, left)


def _merge(path: Path, kept: Iterable[KeptSums]) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    for folder in (path.parent.parent.parent, path.parent.parent):
        sync_directory(folder)
    united = {one[:3]: one for one in (_read(path) if path.exists() else ())}
    before = len(united)
    for one in kept:
        united.setdefault(one[:3], one)
    if len(united) == before:
        return 0
    _put(path, [one._replace(held=False) for _, one in sorted(united.items())])
    return len(united) - before


def _put(path: Path, rows: Sequence[KeptSums]) -> None:
    """Put a file of these in its place, durably."""
    columns = [[row[at] for row in rows] for at in (0, 1, 2, 3, 4, 6)]
    table = pa.table([*map(pa.array, columns)], names=_SCHEMA.names).cast(_SCHEMA)
    with replacing(path) as draft:
        pq.write_table(table, draft, compression="zstd")


def _read(path: Path) -> list[KeptSums]:
    try:
        with pq.ParquetFile(path) as file:
            columns = [file.read().column(name).to_pylist() for name in _SCHEMA.names]
    except (pa.ArrowException, OSError, KeyError) as exc:
        raise damaged(path, exc) from exc
    return [
        KeptSums(device, name, first_s, end_s, group, held=False, payload=payload)
        for device, name, first_s, end_s, group, payload in zip(*columns, strict=True)
    ]
