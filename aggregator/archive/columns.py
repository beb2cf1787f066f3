"""Accepted reports as columns, and where each is kept: by the day of its slot and a device shard.

A report is one per (device, stream, slot), whatever came how often, so uniting parts is idempotent:
the same part twice changes nothing. Source: docs/design.md, Growth.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from hashlib import blake2s
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edge_ldp.device.errors import ParameterError

Ints = NDArray[np.int64]
Column = NDArray[Any]

DAY_S = 86_400
TYPES: dict[str, np.dtype[Any]] = {
    "device": np.dtype("<u4"),
    "stream": np.dtype("u1"),
    "epoch": np.dtype("<u4"),
    "slot": np.dtype("<u4"),
    "code": np.dtype("<u2"),
    "batch": np.dtype("<u4"),
    "digest": np.dtype("<u8"),
    "grp": np.dtype("<u4"),
    "cls": np.dtype("<u2"),
}
_STREAM_BIT, _DEVICE_BIT = 32, 40
MAX_DEVICES = 1 << 23  # of one part, so that a key is one integer


@dataclass(frozen=True, slots=True, eq=False)
class Reports:
    """Columns of equal length, of the types in TYPES; `names` rise, `device` is an index of them.

    `digest`: the first 8 bytes of the frame's digest, little-endian; `grp`, `cls`: the device's
    group and class (counting.classes) when the report was counted.
    """

    names: tuple[str, ...]
    device: Column
    stream: Column
    epoch: Column
    slot: Column
    code: Column
    batch: Column
    digest: Column
    grp: Column
    cls: Column

    def __len__(self) -> int:
        """Return the number of reports."""
        return len(self.slot)

    def columns(self) -> dict[str, Column]:
        """Return the columns by name, without the names of devices."""
        return {one.name: getattr(self, one.name) for one in fields(self) if one.name != "names"}

    def take(self, chosen: NDArray[np.bool_] | Ints) -> "Reports":
        """Return the chosen reports, with the names that they use."""
        picked = {name: column[chosen] for name, column in self.columns().items()}
        used, picked["device"] = np.unique(picked["device"], return_inverse=True)
        names = tuple(self.names[at] for at in used.tolist())
        return make_reports(names, picked)


@dataclass(frozen=True, slots=True, eq=False)
class United:
    """Reports sorted by device, stream and slot, one of each.

    `repeats`: reports that were there before; `conflicts`: those of them that say something else.
    """

    reports: Reports
    repeats: int
    conflicts: int


def make_reports(names: Sequence[str], columns: Mapping[str, Column]) -> Reports:
    """Return reports with columns of the right types; without groups or classes all are of 0."""
    none = np.zeros(len(columns["slot"]))
    columns = {"grp": none, "cls": none, **columns}
    typed = {name: np.asarray(columns[name], kind) for name, kind in TYPES.items()}
    return Reports(names=tuple(names), **typed)


def without(reports: Reports, devices: Container[str]) -> Reports:
    """Return the reports of other devices."""
    gone = [at for at, name in enumerate(reports.names) if name in devices]
    return reports.take(~np.isin(reports.device, gone)) if gone else reports


def unite(parts: Sequence[Reports]) -> United:
    """Return all reports of the parts, each once; of those that disagree the earliest part's.

    Cost: one sort. Raises ParameterError for more than MAX_DEVICES names together.
    """
    names = sorted({name for part in parts for name in part.names})
    place = {name: at for at, name in enumerate(names)}
    if len(names) > MAX_DEVICES:
        raise ParameterError("parts", f"at most {MAX_DEVICES} devices together: use more shards")
    maps = [np.array([place[name] for name in part.names], np.int64) for part in parts]
    columns: dict[str, Column] = {
        name: np.concatenate([np.zeros(0, kind), *(getattr(part, name) for part in parts)])
        for name, kind in TYPES.items()
    }
    remapped = [index[part.device] for index, part in zip(maps, parts, strict=True)]
    device = np.concatenate([np.zeros(0, np.int64), *remapped])
    columns["device"] = device
    key = (
        device << _DEVICE_BIT
        | columns["stream"].astype(np.int64) << _STREAM_BIT
        | columns["slot"].astype(np.int64)
    )
    order = np.argsort(key, kind="stable")
    key = key[order]
    first = np.ones(len(key), dtype=bool)
    first[1:] = key[1:] != key[:-1]
    reports = make_reports(names, {name: c[order][first] for name, c in columns.items()})
    kept = order[first][np.cumsum(first) - 1]
    other = np.zeros(len(key), dtype=bool)
    for name in ("epoch", "code", "grp"):
        other |= columns[name][order] != columns[name][kept]
    return United(reports, int((~first).sum()), int(other.sum()))


def shard_of(device: str, shards: int) -> int:
    """Return the shard that a device's reports are in, the same everywhere and always."""
    return int.from_bytes(blake2s(device.encode(), digest_size=4).digest(), "little") % shards


def partition(
    reports: Reports, slot_seconds: Mapping[int, int], shards: int
) -> Iterator[tuple[tuple[int, int], Reports]]:
    """Yield ((day since 1970, shard), its reports), rising.

    `slot_seconds`: of every stream in the reports. Raises KeyError for another stream.
    """
    if not len(reports):
        return
    length = np.zeros(1 << 8, np.int64)
    for stream in np.unique(reports.stream).tolist():
        length[stream] = slot_seconds[stream]
    day = reports.slot.astype(np.int64) * length[reports.stream] // DAY_S
    shard = np.array([shard_of(name, shards) for name in reports.names], np.int64)
    place = day * shards + shard[reports.device]
    for one in np.unique(place).tolist():
        yield divmod(one, shards), reports.take(place == one)
