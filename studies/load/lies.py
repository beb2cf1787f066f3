"""What liars send, and what must become of it: each frame is refused for one known reason.

Liars send an honest frame in every even round and lie in the odd ones. A lie that settles its batch
takes the batch's place; after one that does not, the honest frame follows in the next round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from edge_ldp.device.frame import V1_HEAD_BYTES
from edge_ldp.vectorized import encode_frame

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edge_ldp.protocol.plan import Plan

    Ints = NDArray[np.int64]

FAR_S = 3650 * 86_400
NO_EPOCH, NO_STREAM = 0xFFFF_FFF0, 255


@dataclass(frozen=True, slots=True)
class HonestFrame:
    """An honest frame before its bytes: one batch of a device and stream."""

    plan: Plan
    batch: int
    slots: Ints
    codes: Ints

    @property
    def payload(self) -> bytes:
        """The frame's bytes."""
        plan = self.plan
        return encode_frame(plan.stream_id, self.batch, plan.epoch, self.slots, self.codes)


@dataclass(frozen=True, slots=True)
class Lie:
    """Bytes instead of or beside an honest frame, and the reason that they must be refused for.

    `settles`: the honest frame is never sent; `after`: the honest frame goes first.
    """

    payload: bytes
    reason: str
    settles: bool = False
    after: bool = False


def tell(kind: int, frame: HonestFrame, window_s: int, back: int) -> Lie:
    """Return the lie of a kind (0 to LIES − 1) about a frame; `window_s`: the re-send window.

    `back`: to slots that were counted before, of buckets that are still open.
    """
    length, codes = frame.plan.slot_seconds, frame.codes
    reports, code_count = len(codes), frame.plan.reporter().code_count
    closed = window_s // length + 2 * reports + (1 << 16)  # a bucket is at most 2**16 slots
    lies = (
        Lie(_encode(frame, last=code_count), "range", settles=True),
        Lie(_encode(frame, epoch=NO_EPOCH), "foreign"),  # of a plan of no store here: left open
        Lie(_encode(frame, shift=-closed), "clock"),  # older than its plan: left open
        # batch numbers go on, slots do not: what an honest device can never send
        Lie(_encode(frame, shift=-back), "slots", settles=True),
        Lie(_encode(frame, shift=FAR_S // length), "early"),
        Lie(_encode(frame, stream=NO_STREAM), "stream"),
        Lie(frame.payload[: V1_HEAD_BYTES + 2], "frame"),
        Lie(_encode(frame, last=(int(codes[-1]) + 1) % code_count), "conflict", after=True),
    )
    return lies[kind]


LIES = 8


def _encode(
    frame: HonestFrame,
    *,
    stream: int | None = None,
    epoch: int | None = None,
    shift: int = 0,
    last: int | None = None,
) -> bytes:
    """Return a frame's bytes with another stream, epoch, time or last code."""
    plan, codes = frame.plan, frame.codes
    return encode_frame(
        plan.stream_id if stream is None else stream,
        frame.batch,
        plan.epoch if epoch is None else epoch,
        frame.slots + shift,
        codes if last is None else np.append(codes[:-1], last),
    )
