"""Frames to and from arrays: the same bytes and the same refusals as `edge_ldp.device.frame`."""

import struct
from collections.abc import Sequence
from itertools import compress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edge_ldp.arrays import Ints
from edge_ldp.checks import BYTES, every, exact_integer, ints, row, taking
from edge_ldp.device import frame

_FIELDS = frame.Header._fields
_FIRST, _COUNT, _SERIES = (_FIELDS.index(name) for name in ("first_slot", "count", "series"))
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


class FrameColumns(NamedTuple):
    """Frames of many payloads, in their order, those left out that are none.

    `whole`: which payloads are frames; `heads`: a row for each field of a Header; `slots`, `codes`:
    of all reports, frame after frame.
    """

    whole: NDArray[np.bool_]
    heads: Ints
    slots: Ints
    codes: Ints


@taking(payloads=every(BYTES))
def decode_frames(payloads: Sequence[bytes]) -> list[Decoded]:
    """Return (header, slots, codes) of each payload, or None where `frame.decode` raises.

    All at once: a tenth of the time of one after the other for frames of 50 reports.
    """
    whole, heads, *reports = decode_columns(payloads)
    ends = np.cumsum(heads[_COUNT])[:-1]
    parts = (np.split(one, ends) for one in reports)
    found = zip(map(frame.Header._make, heads.T.tolist()), *parts, strict=False)
    return [next(found) if is_whole else None for is_whole in whole.tolist()]


@taking(payloads=every(BYTES))
def decode_columns(payloads: Sequence[bytes]) -> FrameColumns:
    """Return the same as columns: half the time for frames of a few reports."""
    sizes = np.array([len(payload) for payload in payloads], np.int64)
    is_second = np.array([payload[2:3] == _SECOND for payload in payloads], bool)
    starts = np.where(is_second, _V2.itemsize, _V1.itemsize)
    counts, rest = np.divmod(sizes - starts, frame.PAIR_BYTES)
    whole = (counts > 0) & (counts <= frame.MAX_REPORTS) & (rest == 0)
    if not whole.any():
        nothing = np.zeros(0, np.int64)
        return FrameColumns(whole, np.zeros((len(_FIELDS), 0), np.int64), nothing, nothing)
    if not whole.all():
        found = decode_columns(list(compress(payloads, whole.tolist())))
        whole[whole] = found.whole
        return found._replace(whole=whole)
    heads = np.zeros((len(_FIELDS), len(payloads)), np.int64)
    for version, layout in enumerate((_V1, _V2), 1):
        mine = np.flatnonzero(is_second == (version == frame.VERSION))
        parts = [payloads[at][: layout.itemsize] for at in mine.tolist()]
        raw = np.frombuffer(b"".join(parts), layout)
        for at, name in enumerate(_FIELDS):
            if name in (layout.names or ()):
                heads[at, mine] = raw[name]
        is_known = (raw["magic"] == frame.MAGIC) & (raw["version"] == version)
        whole[mine] = is_known & (raw["flags"] == 0)
    whole &= (heads[_COUNT] == counts) & (is_second <= (heads[_SERIES] > 0))
    parts = [one[start:] for one, start in zip(payloads, starts.tolist(), strict=True)]
    pairs = np.frombuffer(b"".join(parts), "<u2")
    offsets, codes = pairs[::2].astype(np.int64), pairs[1::2].astype(np.int64)
    slots = offsets + np.repeat(heads[_FIRST], counts)
    ends = np.cumsum(counts)
    begins = ends - counts
    rises = np.append(True, offsets[1:] > offsets[:-1])
    rises[begins] = offsets[begins] == 0
    whole &= (slots[ends - 1] <= _U32) & np.logical_and.reduceat(rises, begins)
    if whole.all():
        return FrameColumns(whole, heads, slots, codes)
    stays = np.repeat(whole, counts)
    return FrameColumns(whole, heads[:, whole], slots[stays], codes[stays])


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
