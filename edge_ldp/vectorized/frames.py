"""Frames to and from arrays: the same bytes and the same refusals as `edge_ldp.device.frame`."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

from edge_ldp.checks import BYTES, every, exact_integer, ints, row, taking
from edge_ldp.device import frame

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

_FIELDS = frame.Header._fields
_V1 = np.dtype(
    {
        "names": ["magic", "version", "flags", "stream", "batch", "epoch", "first_slot", "count"],
        "formats": ["S2", *["u1"] * 3, *["<u4"] * 3, "<u2"],
    }
)
_V2 = np.dtype(
    {
        "names": [
            *("magic", "version", "flags", "stream", "series", "batch", "epoch", "tag"),
            *("first_slot", "count"),
        ],
        "formats": ["S2", *["u1"] * 3, *["<u4"] * 5, "<u2"],
    }
)
_U32 = (1 << 32) - 1
_SECOND = bytes((frame.VERSION,))

Decoded = tuple[frame.Header, "Ints", "Ints"] | None


@taking(payloads=every(BYTES))
def decode_frames(payloads: Sequence[bytes]) -> list[Decoded]:
    """Return (header, slots, codes) of each payload, or None where `frame.decode` raises.

    All at once: a tenth of the time of one after the other for frames of 50 reports.
    """
    is_second = [payload[2:3] == _SECOND for payload in payloads]
    if all(is_second) or not any(is_second):
        return _decode_version(payloads, second=all(is_second))
    parts = {
        second: iter(
            _decode_version(
                [one for one, is_one in zip(payloads, is_second, strict=True) if is_one is second],
                second=second,
            )
        )
        for second in (False, True)
    }
    return [next(parts[second]) for second in is_second]


def _decode_version(payloads: Sequence[bytes], *, second: bool) -> list[Decoded]:
    """Return the same of payloads that say that they are of version 2, or of none that does."""
    sizes = np.array([len(payload) for payload in payloads], np.int64)
    size = (_V2 if second else _V1).itemsize
    counts, rest = np.divmod(sizes - size, frame.PAIR_BYTES)
    fits = ((counts > 0) & (counts <= frame.MAX_REPORTS) & (rest == 0)).tolist()
    if not all(fits):
        sized = [one for one, fit in zip(payloads, fits, strict=True) if fit]
        others = iter(_decode_version(sized, second=second))
        return [next(others) if fit else None for fit in fits]
    return _decode_sized(payloads, counts, second=second) if payloads else []


def _decode_sized(payloads: Sequence[bytes], counts: Ints, *, second: bool) -> list[Decoded]:
    """Return the same of payloads that are as long as frames of so many pairs."""
    layout = _V2 if second else _V1
    size = layout.itemsize
    heads = np.frombuffer(b"".join([p[:size] for p in payloads]), layout)
    pairs = np.frombuffer(b"".join([p[size:] for p in payloads]), "<u2")
    offsets, codes = pairs[::2].astype(np.int64), pairs[1::2].astype(np.int64)
    slots = offsets + np.repeat(heads["first_slot"].astype(np.int64), counts)
    ends = np.cumsum(counts)
    starts = ends - counts
    rises = np.append(True, offsets[1:] > offsets[:-1])
    rises[starts] = offsets[starts] == 0
    whole = (
        (heads["magic"] == frame.MAGIC)
        & (heads["version"] == (frame.VERSION if second else 1))
        & (heads["flags"] == 0)
        & (heads["count"] == counts)
        & (slots[ends - 1] <= _U32)
        & np.logical_and.reduceat(rises, starts)
    )
    if second:
        whole &= heads["series"] > 0
    named = set(layout.names or ())
    nothing = [0] * len(payloads)
    columns = (heads[name].tolist() if name in named else nothing for name in _FIELDS)
    headers = map(frame.Header._make, zip(*columns, strict=True))
    rows = zip(headers, starts.tolist(), ends.tolist(), whole.tolist(), strict=True)
    return [
        (head, slots[start:end], codes[start:end]) if ok else None for head, start, end, ok in rows
    ]


@taking(
    stream=exact_integer,
    batch=exact_integer,
    epoch=exact_integer,
    slots=row(ints),
    codes=row(ints),
    series=exact_integer,
    tag=exact_integer,
)
def encode_frame(  # noqa: PLR0913, PLR0917 (the fields of a frame)
    stream: int, batch: int, epoch: int, slots: Ints, codes: Ints, series: int = 0, tag: int = 0
) -> bytes:
    """Return the bytes that `frame.encode` gives for the same batch, or raise what it raises."""
    numbers = (series, tag)
    if not 1 <= len(slots) <= frame.MAX_REPORTS or len(codes) != len(slots) or slots[-1] >> 32:
        return frame.encode(
            stream, batch, epoch, slots.tolist(), codes.tolist(), *numbers
        )  # raises
    pairs = np.stack([slots - slots[0], codes], axis=1)
    if pairs.min() < 0 or pairs.max() > frame.MAX_OFFSET or (np.diff(slots) <= 0).any():
        return frame.encode(
            stream, batch, epoch, slots.tolist(), codes.tolist(), *numbers
        )  # raises
    one = frame.encode(stream, batch, epoch, (int(slots[0]),), (int(codes[0]),), *numbers)
    head = one[: -2 - frame.PAIR_BYTES]
    return head + struct.pack("<H", len(slots)) + pairs.astype("<u2").tobytes()
