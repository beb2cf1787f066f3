"""What a group of homes used in the last month that is closed, for its own homes to see.

Retained on `group/<group>` and public to the fleet's devices. It is not signed: nothing a device
does depends on it, so a forged one shows a wrong number, which is said beside it. Why it is as it
is: docs/adr/0036-a-groups-month.md.
"""

from typing import NamedTuple

from edge_ldp.protocol.messages import MAX_STREAMS, VERSION
from edge_ldp.protocol.strict_json import MessageError, dumps, loads

MOST_BYTES = 4096
MONTH_S = 31 * 86_400
STALE_S = 4 * MONTH_S  # after its end: by then there are two newer ones
_VALUE = 1 << 40


class GroupMean(NamedTuple):
    """A stream's mean over `homes` homes, in its unit: `mean` give or take `within` (95 %)."""

    stream: str
    unit: str
    mean: int
    within: int
    homes: int


class GroupMonth(NamedTuple):
    """A group's means of the time [from_s, to_s), seconds UTC."""

    group: str
    from_s: int
    to_s: int
    streams: tuple[GroupMean, ...]

    def to_json(self) -> bytes:
        """Return the message's one encoding."""
        streams = [one._asdict() for one in self.streams]
        return dumps({"v": VERSION, **self._asdict(), "streams": streams})


def parse_group_month(payload: bytes) -> GroupMonth:
    """Return the month in `payload`; raises MessageError. Unknown fields are ignored."""
    if len(payload) > MOST_BYTES:
        raise MessageError("size", "group", f"at most {MOST_BYTES} bytes")
    fields = loads(payload)
    fields.integer("v", VERSION, VERSION)
    from_s = fields.integer("from_s", 0, _VALUE)
    streams = tuple(
        GroupMean(
            one.text("stream"),
            one.text("unit"),
            one.integer("mean", -_VALUE, _VALUE),
            one.integer("within", 0, _VALUE),
            one.integer("homes", 1, _VALUE),
        )
        for one in fields.objects("streams", MAX_STREAMS)
    )
    to_s = fields.integer("to_s", from_s + 1, from_s + MONTH_S)
    return GroupMonth(fields.text("group"), from_s, to_s, streams)


def fresh_month(payload: bytes, group: str, now_s: float) -> GroupMonth | None:
    """Return the month of this group in `payload`, None for one that is to be shown to nobody.

    Not what is no such message, another group's, not over yet, or long ago: an aggregator that is
    gone leaves what it retained.
    """
    try:
        found = parse_group_month(payload)
    except MessageError:
        return None
    is_shown = found.group == group and found.to_s <= now_s < found.to_s + STALE_S
    return found if is_shown else None
