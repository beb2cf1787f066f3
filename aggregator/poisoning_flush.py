"""The bound per device for a whole flush at once: what `observe` and `look` keep, by arrays.

Frame by frame the bookkeeping costs as much as settling; of 200 devices at once some microseconds a
frame. Reports of one device are taken together, as if they had come in one frame. A device that was
looked at after AGAIN reports begins anew (its looks still counted), so that a long honest past does
not hide that it was taken over. Sources: as `poisoning_device`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from aggregator.errors import CountsError
from aggregator.poisoning_device import HEAD, KEPT, Kept, begin_again, from_bytes, look

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from aggregator.poisoning_device import Mark
    from aggregator.poisoning_sets import Watch

    Ints = NDArray[np.int64]

AGAIN = 4096
CODE_BITS = 16
_WORD = "<u4"
_REPORTS, _DUE = 0, 2


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
    `owners[k]`, an index into it. `rate`, `devices`: as for `look`. Raises CountsError.
    """
    rows = _rows(watch, before)
    rows[:, _REPORTS] += np.bincount(owners, minlength=len(rows))
    _add_tails(watch, rows, owners, codes)
    _add_codes(rows, owners, codes)
    marks = {}
    after = [row.tobytes() for row in rows.astype(_WORD)]
    for at in np.flatnonzero(rows[:, _REPORTS] >= rows[:, _DUE]).tolist():
        kept, found = look(watch, from_bytes(after[at]), rate=rate, devices=devices)
        if kept.reports >= AGAIN:
            kept = begin_again(kept)
        after[at] = kept.to_bytes(len(watch.tails))
        if found:
            marks[at] = found
    return after, marks


def _rows(watch: Watch, before: Sequence[bytes | None]) -> Ints:
    """Return what was kept as integers, one row a device: head, tails, codes, their counts."""
    blank = Kept().to_bytes(len(watch.tails))
    given = [blank if one is None else one for one in before]
    if any(len(one) != len(blank) for one in given):
        raise CountsError("not what is kept of a device under these plans")
    words = np.frombuffer(b"".join(given), _WORD).astype(np.int64)
    return words.reshape(len(given), -1)


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
    keys = np.concatenate(
        [device << CODE_BITS | kept_codes[device, slot], owners << CODE_BITS | codes]
    )
    weights = np.concatenate([kept_counts[device, slot], np.ones(len(codes), np.int64)])
    order = np.argsort(keys, kind="stable")
    keys, weights = keys[order], weights[order]
    starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    keys, counts = keys[starts], np.add.reduceat(weights, starts)
    of = keys >> CODE_BITS
    ranked = np.lexsort((-counts, of))
    first = np.searchsorted(of, np.arange(len(rows)))
    full = np.append(first[1:], len(of)) - first > KEPT
    cut = np.zeros(len(rows), np.int64)
    cut[full] = counts[ranked[first[full] + KEPT]]
    left = counts - cut[of]
    stays = left > 0
    of, keys, left = of[stays], keys[stays], left[stays]
    place = np.arange(len(of)) - np.searchsorted(of, np.arange(len(rows)))[of]
    kept_codes[:], kept_counts[:] = 0, 0
    kept_codes[of, place] = keys & ((1 << CODE_BITS) - 1)
    kept_counts[of, place] = left
