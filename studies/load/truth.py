"""What the counts must be: kept by whoever makes the frames, with no code of the aggregator's."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

CODES = 1 << 16
KEPT = 1 << 20  # reports that wait to be added up


@dataclass(frozen=True, slots=True)
class Wrong:
    """A cell whose count is not what was sent."""

    stream: int
    epoch: int
    bucket: int
    code: int
    expected: int
    counted: int


class ExpectedCounts:
    """Reports that must be counted, and messages and reports that must be refused, by reason."""

    def __init__(self) -> None:
        self.refused: Counter[str] = Counter()
        self.refused_reports: Counter[str] = Counter()
        self.reports = 0
        self.gone = 0  # reports that were made and lost with their device's state
        self._cells: dict[tuple[int, int], tuple[Ints, Ints]] = {}
        self._waiting: dict[tuple[int, int], list[Ints]] = {}

    def count(self, stream: int, epoch: int, buckets: Ints, codes: Ints) -> None:
        """Add reports that must be counted."""
        waiting = self._waiting.setdefault((stream, epoch), [])
        waiting.append(buckets * CODES + codes)
        self.reports += len(codes)
        if sum(map(len, waiting)) >= KEPT:
            self._add_up((stream, epoch))

    def refuse(self, reason: str, reports: int) -> None:
        """Add a message that must be refused."""
        self.refused[reason] += 1
        self.refused_reports[reason] += reports

    def wrong(self, stream: int, epoch: Ints, cells: tuple[Ints, Ints, Ints]) -> Iterator[Wrong]:
        """Yield the cells of a stream that were counted otherwise than sent.

        `epoch` and `cells` (bucket, code, count) are columns of what was counted.
        """
        bucket, code, count = cells
        mine = {at for of, at in {*self._waiting, *self._cells} if of == stream}
        for at in sorted(mine | set(epoch.tolist())):
            chosen = epoch == at
            counted = bucket[chosen] * CODES + code[chosen]
            sent, times = self._add_up((stream, at))
            union = np.unique(np.concatenate([sent, counted]))
            expected, found = np.zeros((2, len(union)), np.int64)
            np.add.at(expected, np.searchsorted(union, sent), times)
            np.add.at(found, np.searchsorted(union, counted), count[chosen])
            for here in np.flatnonzero(expected != found).tolist():
                place = divmod(int(union[here]), CODES)
                yield Wrong(stream, at, *place, int(expected[here]), int(found[here]))

    def _add_up(self, key: tuple[int, int]) -> tuple[Ints, Ints]:
        none = np.zeros(0, np.int64)
        cells, counts = self._cells.get(key, (none, none))
        new = np.concatenate([none, *self._waiting.pop(key, [])])
        found, where = np.unique(np.concatenate([cells, new]), return_inverse=True)
        weights = np.concatenate([counts, np.ones(len(new), np.int64)])
        summed = np.zeros(len(found), np.int64)
        np.add.at(summed, where, weights)
        self._cells[key] = (found, summed)
        return self._cells[key]
