"""Whether one device sends codes more often than any honest device could, whatever it measures.

An honest device's reports fall into a set of codes with at most the probability that
`poisoning_sets` gives, so its counts lie below binomial ones, and a count beyond their tail marks
the device. The false-alarm rate is shared out (Bonferroni) over sets and devices, and over looks: a
device is looked at when its reports have doubled, look k at rate/(k·(k + 1)). The rate holds
whatever values the device has, also if they change.

Kept per device: a count for each tail, and a Misra–Gries summary of single codes. Its counts are
never too high (no false mark) and too low by at most (reports − all kept)/(KEPT + 1): a code that
makes up a share s of the reports is known with at least (17·s − 1)/16 of them (16 codes kept).
Sources: docs/design.md, The aggregator; Misra, Gries 1982; whole frames at once: Agarwal et al.,
PODS 2012 (mergeable summaries).
"""

from __future__ import annotations

import struct
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from edge_ldp.checks import a, inner_chance, integer_in, ints, row, taking
from edge_ldp.device.errors import ParameterError
from edge_ldp.errors import CountsError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from edge_ldp.poisoning.code_sets import Watch

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

KEPT = 16  # single codes counted at a time
FIRST_LOOK = 16  # reports; no look earlier, the next ones when they have doubled
HEAD = 3  # numbers before the tails
_WORD_BYTES = 4


_WATCH = a("edge_ldp.poisoning.code_sets.Watch")
_STATE = a("edge_ldp.poisoning.device_bound.WatchState")


@dataclass(frozen=True, slots=True)
class WatchState:
    """What is kept of one device, stream and law; at most 16 `codes` (code, count), rising.

    `tails`: reports in each tail, none before the first report; `due`: the next look.
    """

    reports: int = 0
    looks: int = 0
    due: int = FIRST_LOOK
    tails: tuple[int, ...] = ()
    codes: tuple[tuple[int, int], ...] = ()

    def to_bytes(self, tails: int | None = None) -> bytes:
        """Return 4 bytes for each of reports, looks, due, the tails, and 16 codes and counts.

        `tails`: how many, where nothing was reported yet.
        """
        counted = self.tails or (0,) * (tails or 0)
        none = ((0, 0),) * (KEPT - len(self.codes))
        codes, counts = zip(*(self.codes + none), strict=True)
        numbers = (self.reports, self.looks, self.due, *counted, *codes, *counts)
        return struct.pack(f"<{len(numbers)}I", *numbers)


@dataclass(frozen=True, slots=True)
class Mark:
    """A count that no honest device's should reach: `seen` of `reports` in a set of codes.

    `bound`: the set's largest honest probability; `chance`: of as many, at that probability.
    """

    name: str
    seen: int
    reports: int
    bound: float
    chance: float


@taking(watch=_WATCH, state=_STATE, codes=row(ints))
def observe(watch: Watch, state: WatchState, codes: Ints) -> WatchState:
    """Return what is kept after a frame's codes, which the guard let pass. Cost: O(reports).

    Raises ParameterError for what is no code of the watched mechanism's.
    """
    if len(codes) and not 0 <= codes.min() <= codes.max() < len(watch.highest):
        raise ParameterError("codes", f"0..{len(watch.highest) - 1}")
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


@taking(watch=_WATCH, state=_STATE, rate=inner_chance, devices=integer_in(least=1))
def look(
    watch: Watch, state: WatchState, *, rate: float, devices: int
) -> tuple[WatchState, tuple[Mark, ...]]:
    """Return what is kept and the marks, none unless a look is due.

    `rate`: probability that any honest one of `devices` (as many device, stream and law triples as
    are ever watched) is ever marked.
    """
    if state.reports < state.due:
        return state, ()
    turn = state.looks + 1
    level = rate / (devices * watch.sets * turn * (turn + 1))
    names = [f"code {code}" for code, _ in state.codes] + list(watch.names)
    observed = np.array([count for _, count in state.codes] + list(state.tails))
    bounds = np.concatenate([watch.codes[[code for code, _ in state.codes]], watch.tails])
    chance = upper_tail(observed, state.reports, bounds)
    marks = tuple(
        Mark(names[k], int(observed[k]), state.reports, float(bounds[k]), float(chance[k]))
        for k in np.flatnonzero(chance <= level).tolist()
    )
    return replace(state, looks=turn, due=2 * state.reports), marks


@taking(state=_STATE)
def begin_again(state: WatchState) -> WatchState:
    """Return an empty start that spends no rate again: for a new month, or after a mark.

    Without it a long honest past would hide a device that was taken over lately.
    """
    return replace(WatchState(), looks=state.looks)


def from_bytes(given: bytes) -> WatchState:
    """Return what `to_bytes` wrote; raises CountsError for anything else."""
    size, rest = divmod(len(given), _WORD_BYTES)
    if rest or size < HEAD + 2 * KEPT:
        raise CountsError("not what is kept of a device")
    numbers = struct.unpack(f"<{size}I", given)
    pairs = zip(numbers[-2 * KEPT : -KEPT], numbers[-KEPT:], strict=True)
    tails = numbers[HEAD : -2 * KEPT]
    entries = tuple((code, count) for code, count in pairs if count)
    reports, looks, due = numbers[:HEAD]
    return WatchState(reports, looks, due, tails if reports else (), entries)


def upper_tail(observed: ArrayLike, reports: int, bounds: ArrayLike) -> Floats:
    """Return P(X ≥ seen) for X binomial of `reports` and `bounds`, entry by entry."""
    import scipy  # noqa: PLC0415 (time: who only answers needs none of it)

    k = np.asarray(observed)
    return np.where(k > 0, scipy.special.bdtrc(np.maximum(k - 1, 0), reports, bounds), 1.0)


def _summarised(kept: tuple[tuple[int, int], ...], codes: Ints) -> tuple[tuple[int, int], ...]:
    """Return the summary of what was kept and of `codes`: at most KEPT of them."""
    found, times = np.unique(codes, return_counts=True)
    merged = Counter(dict(kept))
    merged.update(dict(zip(found.tolist(), times.tolist(), strict=True)))
    cut = sorted(merged.values(), reverse=True)[KEPT] if len(merged) > KEPT else 0
    return tuple(sorted((code, count - cut) for code, count in merged.items() if count > cut))
