"""What a flush shows of watched devices: which send codes more often than honest ones could.

An honest device's reports fall into a set of codes with at most the probability that `code_sets`
gives, so its counts lie below binomial ones, and a count beyond their tail marks the device. The
false-alarm rate is shared out (Bonferroni) over sets and devices, and over looks: a device is
looked at when its reports have doubled, look k at rate/(k·(k + 1)). The rate holds whatever values
the device has, also if they change.

Kept per device: a count for each tail, and a Misra–Gries summary of single codes. Its counts are
never too high (no false mark) and too low by at most (reports − all kept)/(KEPT + 1): a code that
makes up a share s of the reports is known with at least (17·s − 1)/16 of them (16 codes kept).

All devices of a flush at once, by arrays: frame by frame the bookkeeping costs as much as settling;
of 200 devices some microseconds a frame. Reports of one device are taken together, as if they had
come in one frame. A device that was looked at after AGAIN reports begins anew (its looks still
counted), so that a long honest past does not hide that it was taken over. Sources: docs/design.md,
The aggregator; docs/poisoning.md; Misra, Gries 1982; whole frames at once: Agarwal et al., PODS
2012 (mergeable summaries).
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aggregator.counting.code_sets import Watch
from aggregator.counting.frames import FrameBatch
from aggregator.counting.records import Key, Marked, WatchKey
from aggregator.counting.refusals import MARK_RATE, StreamRules
from edge_ldp.arrays import Floats, Ints
from edge_ldp.errors import CountsError

KEPT = 16  # single codes counted at a time
FIRST_LOOK = 16  # reports; no look earlier, the next ones when they have doubled
HEAD = 3  # numbers before the tails
AGAIN = 4096
CODE_BITS = 16
WEIGHT_BITS = 32
_MOST = (1 << WEIGHT_BITS) - 1
_NO_CODE = 1 << CODE_BITS + WEIGHT_BITS  # above all, and of no weight
_WORD, _WORD_BYTES = "<u4", 4
_REPORTS, _LOOKS, _DUE = range(HEAD)


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


def look_at(
    frames: FrameBatch,
    streams: Mapping[int, StreamRules],
    kept: Mapping[WatchKey, bytes],
    triples: int,
) -> tuple[dict[WatchKey, bytes], dict[Key, Marked]]:
    """Return what is kept of the devices after these frames, and the marks of those beyond bounds.

    `kept`: until now; `triples`: device, stream and law triples that are ever watched, at most.
    """
    plans, of = frames.plans
    laws: dict[tuple[int, str], tuple[Watch, list[int]]] = {}
    for at, (stream, epoch) in enumerate(plans):
        watch = streams[stream].plans[epoch].watch
        if watch is not None:
            laws.setdefault((stream, watch.law), (watch, []))[1].append(at)
    after: dict[WatchKey, bytes] = {}
    marked: dict[Key, Marked] = {}
    for (stream, name), (watch, mine) in laws.items():
        under = frames.some(np.flatnonzero(np.isin(of, mine)))
        owners, owner = np.unique(under.owner, return_inverse=True)
        keys = [(under.names[at], stream, name) for at in owners.tolist()]
        found, marks = observe_flush(
            watch,
            [kept.get(key) for key in keys],
            np.repeat(owner.ravel(), under.counts),
            under.codes,
            rate=MARK_RATE,
            devices=triples,
        )
        after.update(zip(keys, found, strict=True))
        for at, of_device in marks.items():
            marked[keys[at][:2]] = min(of_device, key=lambda mark: mark.chance)
    return after, marked


def observe_flush(  # noqa: PLR0913 (two of them by name)
    watch: Watch,
    before: Sequence[bytes | None],
    owners: Ints,
    codes: Ints,
    *,
    rate: float,
    devices: int,
) -> tuple[list[bytes], dict[int, tuple[Marked, ...]]]:
    """Return what is kept of each device after its reports, and the marks of those marked.

    `before`: what was kept of each, None at first; report k, of code `codes[k]`, is of device
    `owners[k]`, an index into it; they rise. `rate`, `devices`: as for `look`. Raises
    CountsError.
    """
    rows = _rows(watch, before)
    rows[:, _REPORTS] += np.bincount(owners, minlength=len(rows))
    _add_tails(watch, rows, owners, codes)
    _add_codes(rows, owners, codes)
    due = np.flatnonzero(rows[:, _REPORTS] >= rows[:, _DUE])
    marks = {}
    for at in due[_are_suspect(watch, rows[due], rate)].tolist():
        kept = from_bytes(rows[at].astype(_WORD).tobytes())
        _, found = look(watch, kept, rate=rate, devices=devices)
        if found:
            marks[at] = found
    _note_looks(rows, due)
    words, size = rows.astype(_WORD).tobytes(), rows.shape[1] * _WORD_BYTES
    return [words[at : at + size] for at in range(0, len(words), size)], marks


def look(
    watch: Watch, state: WatchState, *, rate: float, devices: int
) -> tuple[WatchState, tuple[Marked, ...]]:
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
        Marked(names[k], int(observed[k]), state.reports, float(bounds[k]), float(chance[k]))
        for k in np.flatnonzero(chance <= level).tolist()
    )
    return replace(state, looks=turn, due=2 * state.reports), marks


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


def _rows(watch: Watch, before: Sequence[bytes | None]) -> Ints:
    """Return what was kept as integers, one row a device: head, tails, codes, their counts."""
    blank = WatchState().to_bytes(len(watch.tails))
    given = [blank if one is None else one for one in before]
    if any(len(one) != len(blank) for one in given):
        raise CountsError("not what is kept of a device under these plans")
    words = np.frombuffer(b"".join(given), _WORD).astype(np.int64)
    return words.reshape(len(given), -1)


def _are_suspect(watch: Watch, rows: Ints, rate: float) -> NDArray[np.bool_]:
    """Say which devices a look may mark: those with a count whose chance is at most `rate`.

    `look` asks for less than that. A count up to its mean has a chance of a half: a binomial's
    median is not below its mean, rounded down.
    """
    reports = rows[:, :1]
    observed = np.concatenate([rows[:, -KEPT:], rows[:, HEAD : -2 * KEPT]], axis=1)
    bounds = np.broadcast_to(watch.tails, (len(rows), len(watch.tails)))
    bounds = np.concatenate([watch.codes[rows[:, -2 * KEPT : -KEPT]], bounds], axis=1)
    device, which = np.nonzero(observed > reports * bounds)
    chance = upper_tail(observed[device, which], rows[device, _REPORTS], bounds[device, which])
    suspect = np.zeros(len(rows), bool)
    suspect[device[chance <= rate]] = True
    return suspect


def _note_looks(rows: Ints, due: Ints) -> None:
    """Count the looks; a device with many reports begins anew after its look."""
    rows[due, _LOOKS] += 1
    rows[due, _DUE] = 2 * rows[due, _REPORTS]
    again = due[rows[due, _REPORTS] >= AGAIN]
    looks = rows[again, _LOOKS]
    rows[again] = 0
    rows[again, _LOOKS], rows[again, _DUE] = looks, FIRST_LOOK


def _add_tails(watch: Watch, rows: Ints, owners: Ints, codes: Ints) -> None:
    size = len(watch.tails)
    into = np.bincount(owners * size + watch.highest[codes], minlength=len(rows) * size)
    into += np.bincount(owners * size + watch.lowest[codes], minlength=len(rows) * size)
    table = into.reshape(len(rows), size)
    for first, stop in watch.rows:
        np.cumsum(table[:, first:stop], axis=1, out=table[:, first:stop])
    rows[:, HEAD : HEAD + size] += table


def _add_codes(rows: Ints, owners: Ints, codes: Ints) -> None:
    """Merge the summaries with the new codes: sums, less the 17th largest of each device.

    In tables of devices whose reports are as many but for a factor of two.
    """
    counts = np.bincount(owners, minlength=len(rows))
    places = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
    alike = np.log2(np.maximum(counts, 1)).astype(np.int64)
    for size in np.unique(alike[counts > 0]).tolist():
        mine, reports = np.flatnonzero(alike == size), np.flatnonzero(alike[owners] == size)
        new = np.full((len(mine), counts[mine].max()), _NO_CODE)
        device = np.searchsorted(mine, owners[reports])
        new[device, places[reports]] = codes[reports] << WEIGHT_BITS | 1
        rows[mine, -2 * KEPT :] = _merged(rows[mine, -2 * KEPT :], new)


def _merged(kept: Ints, new: Ints) -> Ints:
    """Return summaries with codes added; `new`: a code above a weight of 1 in each place, or none.

    A row a device. NumPy sorts numbers faster than it finds orders, and short rows much faster.
    """
    codes, counts = kept[:, :KEPT], kept[:, KEPT:]
    table = np.append(np.where(counts, codes << WEIGHT_BITS | counts, _NO_CODE), new, axis=1)
    table.sort(axis=1)
    weights = np.cumsum(table & _MOST)
    table >>= WEIGHT_BITS
    ends = np.ones(table.shape, bool)  # of a code's entries
    ends[:, :-1] = table[:, 1:] != table[:, :-1]
    at = np.flatnonzero(ends)
    sums = np.zeros(table.shape, np.int64)
    sums.ravel()[at] = np.diff(weights[at], prepend=0)
    ordered = sums.copy()
    ordered.partition(-KEPT - 1, axis=1)
    sums -= ordered[:, -KEPT - 1, None]
    left = np.where(sums > 0, table << WEIGHT_BITS | sums, _NO_CODE)
    left.sort(axis=1)
    left = left[:, :KEPT]
    left[left == _NO_CODE] = 0
    return np.append(left >> WEIGHT_BITS, left & _MOST, axis=1)
