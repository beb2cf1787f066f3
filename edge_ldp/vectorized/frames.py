"""Frames to and from arrays: the same bytes and the same refusals as `edge_ldp.device.frame`."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

from edge_ldp.device import frame
from edge_ldp.device.errors import WireError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


def frame_arrays(payload: bytes) -> tuple[frame.Header, Ints, Ints]:
    """Return (header, slots, codes) of a frame; raises WireError as `frame.decode` does."""
    head = frame.decode_header(payload)
    pairs = np.frombuffer(payload, "<u2", offset=frame.HEAD_BYTES).reshape(-1, 2).astype(np.int64)
    offsets = pairs[:, 0]
    slots = offsets + head.first_slot
    if offsets[0] or (np.diff(offsets) <= 0).any() or slots[-1] >= 1 << 32:
        frame.decode(payload)  # raises, naming the byte
        raise WireError("order", frame.HEAD_BYTES)
    return head, slots, pairs[:, 1]


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
