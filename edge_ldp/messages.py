"""Topics, receipts and status: what device and aggregator say to each other besides frames.

Topics under edge-ldp/v1/<fleet>/ (DESIGN §8). Nothing here ever holds a reading, a value or a code.
"""

import re
from dataclasses import dataclass, field

from edge_ldp.device.errors import ParameterError
from edge_ldp.strict_json import Fields, MessageError, dumps, loads

PREFIX = "edge-ldp/v1"
VERSION = 1
MAX_GAPS = 64
MAX_STREAMS = 16
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}\Z")
_U32 = (1 << 32) - 1
_COUNT = 1 << 62


def check_name(what: str, name: str) -> str:
    """Return a fleet, device or stream name that is safe in a topic; raises ParameterError."""
    if not _NAME.match(name):
        raise ParameterError(what, "1 to 63 of a-z 0-9 _ -, starting with a letter or digit")
    return name


def topic(fleet: str, kind: str, name: str) -> str:
    """Return the topic of a report, receipt or status (name: device) or of a plan (name: stream).

    `name` may be "+" in a subscription.
    """
    return f"{PREFIX}/{fleet}/{kind}/{name}"


def name_in_topic(fleet: str, kind: str, given: str) -> str | None:
    """Return the device or stream that a topic of this fleet and kind names, or None."""
    head = topic(fleet, kind, "")
    name = given.removeprefix(head)
    return name if given.startswith(head) and _NAME.match(name) else None


@dataclass(frozen=True, slots=True)
class StreamReceipt:
    """What the aggregator holds of one device and stream: batches 1..highest but for the gaps."""

    stream: int
    highest: int
    gaps: tuple[tuple[int, int], ...] = ()

    def covers(self, batch: int) -> bool:
        """Say whether the batch is durably settled: committed, or refused for good."""
        return batch <= self.highest and not any(
            first <= batch <= last for first, last in self.gaps
        )


@dataclass(frozen=True, slots=True)
class Receipt:
    """Durable receipt for one device; a device keeps a batch until a receipt covers it."""

    streams: tuple[StreamReceipt, ...]

    def covers(self, stream: int, batch: int) -> bool:
        """Say whether a batch of a stream is covered."""
        return any(one.stream == stream and one.covers(batch) for one in self.streams)

    def to_json(self) -> bytes:
        """Return the receipt's one encoding."""
        return dumps(
            {
                "v": VERSION,
                "streams": [
                    {"stream": s.stream, "highest": s.highest, "gaps": [list(g) for g in s.gaps]}
                    for s in self.streams
                ],
            }
        )


def parse_receipt(payload: bytes) -> Receipt:
    """Return the receipt in `payload`; raises MessageError."""
    fields = loads(payload)
    fields.integer("v", VERSION, VERSION)
    return Receipt(
        tuple(
            StreamReceipt(s.integer("stream", 0, 255), s.integer("highest", 0, _U32), _gaps(s))
            for s in fields.objects("streams", MAX_STREAMS)
        )
    )


@dataclass(frozen=True, slots=True)
class StreamStatus:
    """A device's own account of one stream; counts are of reports, ever.

    `first`: number of the first batch of this device state; `next`: of the batch it will make next;
    `oldest`: of the oldest batch it still keeps (`next` if none).
    """

    stream: int
    first: int
    next: int
    oldest: int
    created: int
    expired: int
    epoch: int = 0
    plan: str = "-"


@dataclass(frozen=True, slots=True)
class Status:
    """What a device says of itself, retained: depends on transport and clock, never on values."""

    state: str
    software: str
    streams: tuple[StreamStatus, ...] = ()
    ledger: dict[str, int] = field(default_factory=dict)
    refusals: tuple[str, ...] = ()

    def to_json(self) -> bytes:
        """Return the status's one encoding."""
        return dumps(
            {
                "v": VERSION,
                "state": self.state,
                "software": self.software,
                "streams": [
                    {
                        "stream": s.stream,
                        "first": s.first,
                        "next": s.next,
                        "oldest": s.oldest,
                        "created": s.created,
                        "expired": s.expired,
                        "epoch": s.epoch,
                        "plan": s.plan,
                    }
                    for s in self.streams
                ],
                "ledger": dict(sorted(self.ledger.items())),
                "refusals": list(self.refusals),
            }
        )


def parse_status(payload: bytes) -> Status:
    """Return the status in `payload`; raises MessageError. The ledger's figures are not read."""
    fields = loads(payload)
    fields.integer("v", VERSION, VERSION)
    state = fields.text("state")
    if state not in ("online", "offline"):
        raise MessageError("value", "state", "online or offline")
    return Status(
        state=state,
        software=fields.text("software"),
        streams=tuple(_stream_status(s) for s in fields.objects("streams", MAX_STREAMS)),
    )


def _stream_status(s: Fields) -> StreamStatus:
    first = s.integer("first", 1, _U32)
    following = s.integer("next", first, _U32)
    return StreamStatus(
        stream=s.integer("stream", 0, 255),
        first=first,
        next=following,
        oldest=s.integer("oldest", first, following),
        created=s.integer("created", 0, _COUNT),
        expired=s.integer("expired", 0, _COUNT),
        epoch=s.integer("epoch", 0, _U32),
        plan=s.text("plan"),
    )


def _gaps(fields: Fields) -> tuple[tuple[int, int], ...]:
    gaps = []
    for pair in fields.items("gaps", MAX_GAPS + 1):
        if (
            not isinstance(pair, list)
            or len(pair) != 2  # noqa: PLR2004 (first, last)
            or any(type(number) is not int for number in pair)
            or not 0 <= pair[0] <= pair[1] <= _U32
        ):
            raise MessageError("value", "gaps", "pairs [first, last]")
        gaps.append((pair[0], pair[1]))
    return tuple(gaps)
