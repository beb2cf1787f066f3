"""How a device's status and a bucket's counts lie in a row, the same in every store.

Of records: `aggregator.counting.record_rows`. Blobs of counts are little-endian.
"""

import numpy as np

from aggregator.counting.classes import class_of
from aggregator.counting.tally import saturated
from edge_ldp.arrays import Ints
from edge_ldp.errors import RowError
from edge_ldp.protocol.messages import Status
from edge_ldp.protocol.strict_json import dumps

_CODE_BYTES = 2
_WIDTHS = (1, 2, 4, 8)  # bytes of one count; the form's number says which
_SUM = {1: np.uint32, 2: np.uint32, 4: np.int64}  # holds _AT_ONCE of that width
_DENSE = 0x10  # every code from 0 on has a count, and none is written
_ALIKE = (_DENSE, _DENSE | 1, _DENSE | 2)  # dense forms of counts that can be added up at once
_AT_ONCE = 64  # histograms of one form and length, added up in a core's cache


def status_row(status: Status) -> tuple[str, str, str, str, str, int]:
    """Return state, software, refusals, health, ages and class as both stores keep them.

    Refusals with their numbers where the device tells them; they are printable, so no line end is
    in them.
    """
    texts = {words.partition(": ")[0]: words for words in status.refused}
    refusals = "\n".join(texts.get(reason, reason) for reason in status.refusals)
    ages = dumps(status.ages).decode() if status.ages else ""
    cls = class_of(status.chance, status.effect)
    return status.state, status.software, refusals, status.health, ages, cls


def unpack_refusals(text: str) -> tuple[str, ...]:
    """Return packed reasons."""
    return tuple(text.split("\n")) if text else ()


def pack_pairs(codes: Ints, counts: Ints) -> bytes:
    """Return a bucket's histogram as stored: its form, codes (u16, rising), counts.

    Counts take 1, 2, 4 or 8 bytes each, as the largest needs; where that is shorter, zeros are
    written too and codes are not.
    """
    at = sum(int(counts.max(initial=0)) >> 8 * width > 0 for width in _WIDTHS)
    width = _WIDTHS[at]
    size = int(codes[-1]) + 1 if len(codes) else 0
    if size * width < len(codes) * (_CODE_BYTES + width):
        every = np.zeros(size, f"<u{width}")
        every[codes] = counts
        return bytes([_DENSE | at]) + every.tobytes()
    return bytes([at]) + codes.astype("<u2").tobytes() + counts.astype(f"<u{width}").tobytes()


def unpack_pairs(blob: bytes) -> tuple[Ints, Ints]:
    """Return (codes, counts) of a stored histogram; raises RowError when it is damaged."""
    form = blob[0] if blob else 0
    is_dense, at = form & _DENSE, form & ~_DENSE
    if not blob or at >= len(_WIDTHS):
        raise RowError("a bucket's counts are of no known form")
    width = _WIDTHS[at]
    size, rest = divmod(len(blob) - 1, width if is_dense else width + _CODE_BYTES)
    if rest:
        raise RowError("a bucket's counts do not parse")
    counts = np.frombuffer(blob, f"<u{width}", size, len(blob) - size * width).astype(np.int64)
    if is_dense:
        codes = np.flatnonzero(counts)
        return codes, counts[codes]
    codes = np.frombuffer(blob, "<u2", size, 1).astype(np.int64)
    if (np.diff(codes) <= 0).any() or (counts <= 0).any():
        raise RowError("a bucket's counts do not parse")
    return codes, counts


class PairSum:
    """Stored histograms added up; those alike in form and length as one matrix."""

    def __init__(self) -> None:
        self._sums: Ints = np.zeros(0, np.int64)
        self._alike: dict[tuple[bytes, int], list[bytes]] = {}

    def add(self, blob: bytes) -> None:
        """Add a histogram; raises RowError when one so far is damaged."""
        these = self._alike.setdefault((blob[:1], len(blob)), [])
        these.append(blob)
        if len(these) == _AT_ONCE:
            self._fold(these)

    def pairs(self) -> tuple[Ints, Ints]:
        """Return (codes, counts); raises RowError when a histogram is damaged."""
        for these in self._alike.values():
            self._fold(these)
        codes = np.flatnonzero(self._sums)
        return codes, self._sums[codes]

    def _fold(self, these: list[bytes]) -> None:
        if len(these) > 1 and these[0] and these[0][0] in _ALIKE:
            unpack_pairs(these[0])  # as damaged as the others, which have its form and length
            rows = np.frombuffer(b"".join(these), np.uint8).reshape(len(these), -1)[:, 1:]
            width = _WIDTHS[these[0][0] & ~_DENSE]
            counts = rows.copy().view(f"<u{width}").sum(axis=0, dtype=_SUM[width]).astype(np.int64)
            self._put(np.arange(len(counts)), counts)
        else:
            for blob in these:
                self._put(*unpack_pairs(blob))
        these.clear()

    def _put(self, codes: Ints, counts: Ints) -> None:
        size = int(codes[-1]) + 1 if len(codes) else 0
        if len(self._sums) < size:
            self._sums = np.pad(self._sums, (0, size - len(self._sums)))
        self._sums[codes] = saturated(self._sums[codes], counts)


def repack_pairs(blob: bytes) -> bytes:
    """Return a histogram of the first form, codes (u16) and counts (u64), in that of now."""
    size, rest = divmod(len(blob), 10)
    if rest:
        raise RowError("a bucket's counts do not parse")
    codes = np.frombuffer(blob, "<u2", size).astype(np.int64)
    return pack_pairs(codes, np.frombuffer(blob, "<u8", size, 2 * size).astype(np.int64))
