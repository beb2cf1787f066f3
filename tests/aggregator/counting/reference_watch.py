"""What watching keeps of one device, frame by frame: what whole flushes are compared with."""

from collections import Counter
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from aggregator.counting.code_sets import Watch
from aggregator.counting.watching import KEPT, WatchState

Ints = NDArray[np.int64]


def observe(watch: Watch, state: WatchState, codes: Ints) -> WatchState:
    """Return what is kept after a frame's codes, which the guard let pass. Cost: O(reports)."""
    size = len(watch.tails)
    into = np.bincount(watch.highest[codes], minlength=size)
    into += np.bincount(watch.lowest[codes], minlength=size)
    for first, stop in watch.rows:
        np.cumsum(into[first:stop], out=into[first:stop])
    before = state.tails or (0,) * size
    return replace(
        state,
        reports=state.reports + len(codes),
        tails=tuple(a + b for a, b in zip(before, into.tolist(), strict=True)),
        codes=_summarised(state.codes, codes),
    )


def begin_again(state: WatchState) -> WatchState:
    """Return an empty start that spends no rate again: for a new month, or after a mark.

    Without it a long honest past would hide a device that was taken over lately.
    """
    return replace(WatchState(), looks=state.looks)


def _summarised(kept: tuple[tuple[int, int], ...], codes: Ints) -> tuple[tuple[int, int], ...]:
    """Return the summary of what was kept and of `codes`: at most KEPT of them."""
    found, times = np.unique(codes, return_counts=True)
    merged = Counter(dict(kept))
    merged.update(dict(zip(found.tolist(), times.tolist(), strict=True)))
    cut = sorted(merged.values(), reverse=True)[KEPT] if len(merged) > KEPT else 0
    return tuple(sorted((code, count - cut) for code, count in merged.items() if count > cut))
