"""What batches hold, as one item for each code, value or sum that left. Pure."""

from collections.abc import Iterator
from typing import NamedTuple

from agent.claims.batches import Key
from edge_ldp.device.errors import WireError
from edge_ldp.device.frame import decode
from edge_ldp.device.sums_frame import decode_sums
from edge_ldp.protocol.released import FIRST_KEY, FIRST_SUMS_KEY, decode_released

DAY_SECONDS = 86_400
CODE, VALUE, SUM = "code", "value", "sum"


class Left(NamedTuple):
    """A batch that was made, of slots that are so long; whether it arrived."""

    key: Key
    slot_seconds: int
    payload: bytes
    came: bool = False


class LeftItem(NamedTuple):
    """One report: of what time it is; a code with its plan's epoch, a value with the ε it paid."""

    kind: str
    stream: int
    from_s: int
    to_s: int
    epoch: int = 0
    code: int = 0
    paid: float = 0.0


def items_of(one: Left) -> Iterator[LeftItem]:
    """Yield what a batch holds; nothing of one that cannot be read."""
    seconds, stream = one.slot_seconds, one.key.stream
    try:
        if stream < FIRST_KEY:
            frame = decode(one.payload)
            for slot, code in zip(frame.slots, frame.codes, strict=True):
                begins = slot * seconds
                yield LeftItem(CODE, stream, begins, begins + seconds, frame.epoch, code)
        elif stream < FIRST_SUMS_KEY:
            released = decode_released(one.payload)
            num, den = released.design.paid
            for slot in released.slots:
                begins = slot * seconds
                yield LeftItem(VALUE, stream, begins, begins + seconds, paid=num / den)
        else:
            sums = decode_sums(one.payload)
            begins = sums.period * sums.days * DAY_SECONDS + sums.offset_s
            yield LeftItem(SUM, stream, begins, begins + sums.days * DAY_SECONDS)
    except WireError:
        return
