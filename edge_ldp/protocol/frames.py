"""Several batches in one message: whole frames one after the other, each as long as its head says.

Frames are of reports or of a period's sums. Each keeps its bytes and its number; a message of one
batch is its frame. At most MAX_BYTES and
MAX_FRAMES, so that what one message can ask of an aggregator is bounded.
Source: docs/design.md, Messages; docs/adr/0029-back-off.md.
"""

import struct

from edge_ldp.device.errors import WireError, check_wire
from edge_ldp.device.frame import HEAD_BYTES, PAIR_BYTES, V1_HEAD_BYTES
from edge_ldp.device.sums_frame import CELL_BYTES
from edge_ldp.device.sums_frame import HEAD_BYTES as SUMS_HEAD_BYTES
from edge_ldp.device.sums_frame import MAGIC as SUMS

MAX_BYTES = 1 << 16
MAX_FRAMES = 64
_HEADS = {1: V1_HEAD_BYTES, 2: HEAD_BYTES}  # before the pairs, by version; their count at last
_COUNT = struct.Struct("<H")
_CELLS_AT = 23  # of a period's sums


def split_frames(payload: bytes) -> list[bytes]:
    """Return the frames in a message, by their heads alone; raises WireError(reason, offset)."""
    check_wire(len(payload) <= MAX_BYTES, "size", MAX_BYTES)
    frames: list[bytes] = []
    at = 0
    while len(frames) < MAX_FRAMES:
        end = at + _size(payload, at)
        if end == len(payload):
            return [*frames, payload[at:]]
        check_wire(end <= len(payload), "length", at)
        frames.append(payload[at:end])
        at = end
    raise WireError("count", at)


def _size(payload: bytes, at: int) -> int:
    """Return how long the frame that begins here is, by its head."""
    check_wire(len(payload) >= at + 3, "short", at)
    if payload[at : at + 2] == SUMS:
        check_wire(len(payload) >= at + SUMS_HEAD_BYTES, "short", at)
        texts = sum(payload[at + SUMS_HEAD_BYTES - 2 : at + SUMS_HEAD_BYTES])
        return SUMS_HEAD_BYTES + texts + CELL_BYTES * payload[at + _CELLS_AT]
    head = _HEADS.get(payload[at + 2])
    if head is None:
        raise WireError("version", at + 2)
    check_wire(len(payload) >= at + head, "short", at)
    (count,) = _COUNT.unpack_from(payload, at + head - 2)
    return head + PAIR_BYTES * int(count)
