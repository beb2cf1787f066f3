"""Frames to and from arrays: the same bytes and the same refusals as `edge_ldp.device.frame`."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

from edge_ldp.device import frame

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

_FIELDS = frame.Header._fields
_HEAD = np.dtype(
    {
        "names": ["magic", "version", "flags", *_FIELDS],
        "formats": ["S2", "u1", "u1", "u1", "<u4", "<u4", "<u4", "<u2"],
    }
)
_U32 = (1 << 32) - 1


def decode_frames(payloads: Sequence[bytes]) -> list[tuple[frame.Header, Ints, Ints] | None]:
    """Return (header, slots, codes) of each payload, or None where `frame.decode` raises.

    All at once: a tenth of the time of one after the other for frames of 50 reports.
    """
    sizes = np.array([len(payload) for payload in payloads], np.int64)
    counts, rest = np.divmod(sizes - frame.HEAD_BYTES, frame.PAIR_BYTES)
    fits = ((counts > 0) & (counts <= frame.MAX_REPORTS) & (rest == 0)).tolist()
    if not all(fits):
        others = iter(decode_frames([p for p, fit in zip(payloads, fits, strict=True) if fit]))
        return [next(others) if fit else None for fit in fits]
    return _decode_sized(payloads, counts) if payloads else []


def _decode_sized(
    payloads: Sequence[bytes], counts: Ints
) -> list[tuple[frame.Header, Ints, Ints] | None]:
    """Return the same of payloads that are as long as frames of so many pairs."""
    heads = np.frombuffer(b"".join([p[: frame.HEAD_BYTES] for p in payloads]), _HEAD)
    pairs = np.frombuffer(b"".join([p[frame.HEAD_BYTES :] for p in payloads]), "<u2")
    offsets, codes = pairs[::2].astype(np.int64), pairs[1::2].astype(np.int64)
    slots = offsets + np.repeat(heads["first_slot"].astype(np.int64), counts)
    ends = np.cumsum(counts)
    starts = ends - counts
    rises = np.append(True, offsets[1:] > offsets[:-1])
    rises[starts] = offsets[starts] == 0
    whole = (
        (heads["magic"] == frame.MAGIC)
        & (heads["version"] == frame.VERSION)
        & (heads["flags"] == 0)
        & (heads["count"] == counts)
        & (counts <= frame.MAX_REPORTS)
        & (slots[ends - 1] <= _U32)
        & np.logical_and.reduceat(rises, starts)
    )
    headers = map(frame.Header._make, zip(*(heads[name].tolist() for name in _FIELDS), strict=True))
    rows = zip(headers, starts.tolist(), ends.tolist(), whole.tolist(), strict=True)
    return [
        (head, slots[start:end], codes[start:end]) if ok else None for head, start, end, ok in rows
    ]


def encode_frame(stream: int, batch: int, epoch: int, slots: Ints, codes: Ints) -> bytes:
    """Return the bytes that `frame.encode` gives for the same batch, or raise what it raises."""
    if not 1 <= len(slots) <= frame.MAX_REPORTS or len(codes) != len(slots) or slots[-1] >> 32:
        return frame.encode(stream, batch, epoch, slots.tolist(), codes.tolist())  # raises
    pairs = np.stack([slots - slots[0], codes], axis=1)
    if pairs.min() < 0 or pairs.max() > frame.MAX_OFFSET or (np.diff(slots) <= 0).any():
        return frame.encode(stream, batch, epoch, slots.tolist(), codes.tolist())  # raises
    first = (int(slots[0]), int(codes[0]))
    head = frame.encode(stream, batch, epoch, first[:1], first[1:])[: frame.HEAD_BYTES - 2]
    return head + struct.pack("<H", len(slots)) + pairs.astype("<u2").tobytes()
