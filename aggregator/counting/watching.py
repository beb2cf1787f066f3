"""What one flush shows of watched devices: each one's codes, and whether it exceeds a bound.

It is kept and looked at as `edge_ldp.poisoning.observe` and `look` do, by arrays: frame by frame
the bookkeeping costs as much as settling; of 200 devices at once some microseconds a frame. Reports
of one device are taken together, as if they had come in one frame. A device that was looked at
after AGAIN reports begins anew (its looks still counted), so that a long honest past does not hide
that it was taken over. Source: docs/design.md, The aggregator; docs/poisoning.md.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np

from aggregator.counting.records import Marked
from aggregator.counting.refusals import MARK_RATE
from edge_ldp.errors import CountsError
from edge_ldp.poisoning.device_bound import (
    FIRST_LOOK,
    HEAD,
    KEPT,
    WatchState,
    from_bytes,
    look,
    upper_tail,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from aggregator.counting.records import Arrival, Key, WatchKey
    from edge_ldp.poisoning.code_sets import Watch
    from edge_ldp.poisoning.device_bound import Mark

    Ints = NDArray[np.int64]

AGAIN = 4096
CODE_BITS = 16
WEIGHT_BITS = 32
_MOST = (1 << WEIGHT_BITS) - 1
_WORD = "<u4"
_REPORTS, _LOOKS, _DUE = range(HEAD)


class WatchedFrames:
    """Frames that count, gathered by stream and law and then looked at together."""

    def __init__(self) -> None:
        self._laws: dict[tuple[int, str], _Law] = {}

    def add(self, arrival: Arrival, watch: Watch) -> None:
        """Take a frame's codes."""
        key = (arrival.head.stream, watch.law)
        if key not in self._laws:
            self._laws[key] = _Law(watch)
        law = self._laws[key]
        law.owners.append(law.devices.setdefault(arrival.device, len(law.devices)))
        law.codes.append(arrival.codes)

    def look(
        self, kept: Mapping[WatchKey, bytes], triples: int
    ) -> tuple[dict[WatchKey, bytes], dict[Key, Marked]]:
        """Return what is kept of the devices from now on, and the marks of those beyond bounds.

        `kept`: until now; `triples`: device, stream and law triples that are ever watched, at most.
        """
        after: dict[WatchKey, bytes] = {}
        marked: dict[Key, Marked] = {}
        for (stream, name), law in self._laws.items():
            keys = [(device, stream, name) for device in law.devices]
            found, marks = observe_flush(
                law.watch,
                [kept.get(key) for key in keys],
                np.repeat(law.owners, [len(codes) for codes in law.codes]),
                np.concatenate(law.codes),
                rate=MARK_RATE,
                devices=triples,
            )
            after.update(zip(keys, found, strict=True))
            for at, of_device in marks.items():
                worst = min(of_device, key=lambda mark: mark.chance)
                marked[keys[at][:2]] = Marked(**asdict(worst))
        return after, marked


class _Law:
    """Codes under one law, and whose they are: an index of `devices`."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.devices: dict[str, int] = {}
        self.owners: list[int] = []
        self.codes: list[Ints] = []


def observe_flush(  # noqa: PLR0913 (two of them by name)
    watch: Watch,
    before: Sequence[bytes | None],
    owners: Ints,
    codes: Ints,
    *,
    rate: float,
    devices: int,
) -> tuple[list[bytes], dict[int, tuple[Mark, ...]]]:
    """Return what is kept of each device after its reports, and the marks of those marked.

    `before`: what was kept of each, None at first; report k, of code `codes[k]`, is of device
    `owners[k]`, an index into it, below 2**15. `rate`, `devices`: as for `look`. Raises
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
    words, size = rows.astype(_WORD).tobytes(), rows.shape[1] * 4
    return [words[at : at + size] for at in range(0, len(words), size)], marks


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
    """Merge the summaries with the new codes: sums, less the 17th largest of each device."""
    kept_codes, kept_counts = rows[:, -2 * KEPT : -KEPT], rows[:, -KEPT:]
    device, slot = np.nonzero(kept_counts)
    held = _packed(device << CODE_BITS | kept_codes[device, slot], kept_counts[device, slot])
    new = _packed(owners << CODE_BITS | codes, 1)
    keys, weights = _unpacked(np.sort(np.concatenate([held, new])))
    starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    keys, counts = keys[starts], np.add.reduceat(weights, starts)
    of = keys >> CODE_BITS
    first = np.searchsorted(of, np.arange(len(rows) + 1))
    full = np.flatnonzero(np.diff(first) > KEPT)
    _, falling = _unpacked(np.sort(_packed(of, _MOST - counts)))
    cut = np.zeros(len(rows), np.int64)
    cut[full] = _MOST - falling[first[full] + KEPT]
    left = counts - cut[of]
    stays = left > 0
    of, keys, left = of[stays], keys[stays], left[stays]
    place = np.arange(len(of)) - np.searchsorted(of, np.arange(len(rows)))[of]
    kept_codes[:], kept_counts[:] = 0, 0
    kept_codes[of, place] = keys & ((1 << CODE_BITS) - 1)
    kept_counts[of, place] = left


def _packed(keys: Ints, weights: Ints | int) -> Ints:
    """Return numbers that sort by key, then weight: NumPy sorts them faster than it finds orders.

    Keys below 2**31, weights below 2**32: they are kept in words of 4 bytes.
    """
    return keys << WEIGHT_BITS | weights


def _unpacked(numbers: Ints) -> tuple[Ints, Ints]:
    return numbers >> WEIGHT_BITS, numbers & _MOST
