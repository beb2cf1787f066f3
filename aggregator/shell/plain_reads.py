"""What is read alike from every store: one query, in words that SQLite and PostgreSQL share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from aggregator.records import CountRows, Marked
from aggregator.shell.store import DeviceRow, LookRow, MarkRow, PlanRow
from aggregator.tally import CODE_BITS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

_NONE = np.zeros(0, np.int64)


class PlainReads(ABC):
    """The part of a Reader that is the same for all; `_rows` raises StoreError."""

    @abstractmethod
    def _rows(self, query: str, values: tuple[Any, ...] = ()) -> list[Any]:
        """Return all rows of a query."""

    def plans(self) -> list[PlanRow]:
        """Return every plan ever issued, by stream and epoch."""
        rows = self._rows("SELECT stream, epoch, issued_s, payload FROM plans ORDER BY 1, 2")
        return [PlanRow(*row) for row in rows]

    def devices(self) -> list[DeviceRow]:
        """Return every device that has a row, by name."""
        rows = self._rows("SELECT device, state, software, seen_s FROM devices ORDER BY 1")
        return [DeviceRow(*row) for row in rows]

    def looks(self) -> list[LookRow]:
        """Return every look at reports that was kept, by stream and time."""
        rows = self._rows("SELECT stream, at_s, payload FROM looks ORDER BY 1, 2")
        return [LookRow(*row) for row in rows]

    def marks(self) -> list[MarkRow]:
        """Return every device that was marked, by device and stream."""
        rows = self._rows(
            """SELECT device, stream, first_s, last_s, times, name, seen, reports, bound, chance
            FROM marks ORDER BY 1, 2"""
        )
        return [
            MarkRow(device, stream, first_s, last_s, times, Marked(*mark))
            for device, stream, first_s, last_s, times, *mark in rows
        ]


def added_up(parts: Iterable[tuple[int, Ints, Ints]]) -> CountRows:
    """Return (epoch, codes, counts) added up by epoch and code, both rising; all of bucket 0."""
    sums: dict[int, Ints] = {}
    for epoch, codes, counts in parts:
        sums.setdefault(epoch, np.zeros(1 << CODE_BITS, np.int64))[codes] += counts
    found = [(epoch, np.flatnonzero(sums[epoch])) for epoch in sorted(sums)]
    return CountRows(
        np.repeat([epoch for epoch, _ in found], [len(codes) for _, codes in found]),
        np.zeros(sum(len(codes) for _, codes in found), np.int64),
        np.concatenate([_NONE, *(codes for _, codes in found)]),
        np.concatenate([_NONE, *(sums[epoch][codes] for epoch, codes in found)]),
    )
