"""Topics, receipts and status: what device and aggregator say to each other besides frames.

Topics under edge-ldp/v1/<fleet>/ (docs/design.md, Messages). Nothing here ever holds a reading, a
value or a code. Streams of released values (edge_ldp.protocol.released) have keys from 256 on, and
those of a period's sums from 512 on; on the wire each kind stands in a list of its own, "released"
and "sums", numbered from 0, which is left out when it is empty.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from fractions import Fraction
from typing import Any, NamedTuple

from edge_ldp.device.errors import ParameterError
from edge_ldp.lean_class import lean_class
from edge_ldp.protocol.ledger import Window
from edge_ldp.protocol.released import FIRST_KEY, FIRST_SUMS_KEY, MAX_STREAM
from edge_ldp.protocol.schedule import design_effect
from edge_ldp.protocol.strict_json import Fields, MessageError, dumps, loads

PREFIX = "edge-ldp/v1"
VERSION = 1
WITH_SERIES = 2  # the version of a receipt that says whose it is, and which series it is of
OLD_SERIES = 3  # of a stream, before the present one, that an aggregator still knows
MAX_GAPS = 64
MAX_STREAMS = 16
MAX_REFUSALS = 8
LONGEST_WORDS = 300
AGES = ("telegram_s", "commit_s", "receipt_s", "link_s")
_OWN_KEYS = {"released": FIRST_KEY, "sums": FIRST_SUMS_KEY}  # lists of a home's own streams
_IDENTITY = re.compile(r"[0-9a-f]{16}\Z")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}\Z")
_U32 = (1 << 32) - 1
_COUNT = 1 << 62
_TIME = 1 << 40
_SHORT_S = 6 * 3600  # a period below it is in every part of a day


def check_name(what: str, name: str) -> str:
    """Return a fleet, device or stream name that is safe in a topic; raises ParameterError."""
    if not _NAME.match(name):
        raise ParameterError(what, "1 to 63 of a-z 0-9 _ -, starting with a letter or digit")
    return name


def topic(fleet: str, kind: str, name: str) -> str:
    """Return a topic: report, stream, receipt, status (name: device), plan, sum (stream), group.

    `name` may be "+" in a subscription.
    """
    return f"{PREFIX}/{fleet}/{kind}/{name}"


def name_in_topic(fleet: str, kind: str, given: str) -> str | None:
    """Return the device or stream that a topic of this fleet and kind names, or None."""
    head, _, name = given.rpartition("/")
    return name if head == f"{PREFIX}/{fleet}/{kind}" and _NAME.match(name) else None


class StreamReceipt(NamedTuple):
    """What the aggregator holds of one device's stream and series: 1..highest but for the gaps.

    `series` 0: of frames v1. `last`: the last slot counted of the stream, -1 where none is told.
    """

    stream: int
    highest: int
    gaps: tuple[tuple[int, int], ...] = ()
    series: int = 0
    last: int = -1

    def covers(self, batch: int) -> bool:
        """Say whether the batch is durably settled: committed, or refused for good."""
        return batch <= self.highest and not any(
            first <= batch <= last for first, last in self.gaps
        )

    def lacks(self, batch: int) -> bool:
        """Say whether later batches came, and this one did not."""
        return batch <= self.highest and not self.covers(batch)


class Receipt(NamedTuple):
    """Durable receipt for one device; a device keeps a batch until a receipt covers it.

    `store`: the identity of the store that holds the reports, 16 hexadecimal digits, `at_s`: the
    aggregator's time, seconds UTC, `device`: whose receipt it is, `refused`: how many of its
    reports, ever, were settled and are counted nowhere. Without a store it is version 1, which
    tells none of these and no series (docs/adr/0027-series.md).
    """

    streams: tuple[StreamReceipt, ...]
    store: str = ""
    at_s: int = 0
    device: str = ""
    refused: int = 0

    def covers(self, stream: int, batch: int, series: int = 0) -> bool:
        """Say whether a batch of a stream and series is covered."""
        return any(
            (one.stream, one.series) == (stream, series) and one.covers(batch)
            for one in self.streams
        )

    def lacks(self, stream: int, batch: int, series: int = 0) -> bool:
        """Say whether later batches of a stream and series came, and this one did not."""
        return any(
            (one.stream, one.series) == (stream, series) and one.lacks(batch)
            for one in self.streams
        )

    def to_json(self) -> bytes:
        """Return the receipt's one encoding."""
        if not self.store:
            old = (one for one in self.streams if not one.series)
            return dumps({"v": VERSION, **_parted(map(_covered, old))})
        whose = {"store": self.store, "at_s": self.at_s, "device": self.device}
        told = {"refused": self.refused} if self.refused else {}
        rows = (
            _covered(one) | {"series": one.series} | ({"last": one.last} if one.last >= 0 else {})
            for one in self.streams
        )
        return dumps({"v": WITH_SERIES, **whose, **told, **_parted(rows)})


def parse_receipt(payload: bytes) -> Receipt:
    """Return the receipt in `payload`, of either version; raises MessageError."""
    fields = loads(payload)
    if fields.integer("v", VERSION, WITH_SERIES) == VERSION:
        return Receipt(tuple(_stream_receipt(key, s) for key, s in _keyed(fields)))
    return Receipt(
        tuple(
            _stream_receipt(key, s)._replace(
                series=s.integer("series", 0, _U32),
                last=s.integer("last", 0, _U32) if "last" in s.raw() else -1,
            )
            for key, s in _keyed(fields, 1 + OLD_SERIES)
        ),
        store=read_identity(fields),
        at_s=fields.integer("at_s", 0, _TIME),
        device=fields.text("device"),
        refused=fields.integer("refused", 0, _TIME) if "refused" in fields.raw() else 0,
    )


def read_name(fields: Fields, name: str) -> str:
    """Return a fleet, device or stream name that stands in a message; raises MessageError."""
    try:
        return check_name(name, fields.text(name))
    except ParameterError as exc:
        raise MessageError("value", name, exc.expected) from exc


def read_identity(fields: Fields, name: str = "store") -> str:
    """Return the identity of a store or process that stands in a message; raises MessageError."""
    text = fields.text(name)
    if not _IDENTITY.match(text):
        raise MessageError("value", name, "16 hexadecimal digits")
    return text


def _covered(one: StreamReceipt) -> dict[str, Any]:
    return {"stream": one.stream, "highest": one.highest, "gaps": [list(g) for g in one.gaps]}


def _stream_receipt(key: int, s: Fields) -> StreamReceipt:
    return StreamReceipt(key, s.integer("highest", 0, _U32), _gaps(s))


class StreamStatus(NamedTuple):
    """A device's own account of one stream; counts are of reports, ever.

    `first`: number of the first batch of its present series; `next`: of the batch it will make
    next; `oldest`: of the oldest batch of this series that it still keeps (`next` if none).
    `series` 0: it numbers frames v1, from a slot on. `since`: the slot in which this account began
    (0: not told; with v1 it is `first`).
    """

    stream: int
    first: int
    next: int
    oldest: int
    created: int
    expired: int
    epoch: int = 0
    plan: str = "-"
    series: int = 0
    since: int = 0

    @property
    def begun(self) -> int:
        """The slot in which the account of this device state began."""
        return self.since or self.first


@lean_class(frozen=True, slots=True)
class Status:
    """What a device says of itself, retained: depends on transport and clock, never on values.

    `refusals`: why it refused plans since it started, the last MAX_REFUSALS reasons; `refused`: the
    same with what was asked and what is allowed. `health`: "ok", or what is wrong. `ages`: seconds
    since the last telegram, commit, receipt and the link came, those that there are of AGES.
    `manifest` is what it measures and who may see what, as its configuration has it; `chance`: how
    likely a slot of a stream that is heard reports, as the manifest of a status that was read has
    it, and `effect`: the design effect of its schedule, where that is above 1 (protocol.schedule).
    Who was before there were `refused`, `health` and `ages` reads past them, and leaves them out.
    """

    state: str
    software: str
    streams: tuple[StreamStatus, ...] = ()
    ledger: dict[str, int] = field(default_factory=dict)
    refusals: tuple[str, ...] = ()
    manifest: Mapping[str, object] = field(default_factory=dict)
    refused: tuple[str, ...] = ()
    health: str = ""
    ages: Mapping[str, int] = field(default_factory=dict)
    chance: Fraction | None = None
    effect: float = 1.0

    def to_json(self) -> bytes:
        """Return the status's one encoding."""
        fields: dict[str, object] = {
            "v": VERSION,
            "state": self.state,
            "software": self.software,
            **_parted(map(_account, self.streams)),
            "ledger": dict(sorted(self.ledger.items())),
            "refusals": list(self.refusals),
        }
        more = {
            "refused": [words[:LONGEST_WORDS] for words in self.refused],
            "health": self.health[:LONGEST_WORDS],
            "ages": {name: self.ages[name] for name in AGES if name in self.ages},
            "manifest": dict(self.manifest),
        }
        fields |= {name: value for name, value in more.items() if value}
        return dumps(fields)


def parse_status(payload: bytes) -> Status:
    """Return the status in `payload`; raises MessageError.

    The ledger is not read, and of the manifest only how often the device may report.
    """
    fields = loads(payload)
    fields.integer("v", VERSION, VERSION)
    state = fields.text("state")
    if state not in ("online", "offline"):
        raise MessageError("value", "state", "online or offline")
    chance, effect = _sampling(fields)
    return Status(
        state=state,
        software=fields.text("software"),
        streams=tuple(_stream_status(key, s) for key, s in _keyed(fields)),
        refusals=_texts(fields, "refusals", 64),
        refused=_texts(fields, "refused", LONGEST_WORDS),
        health=fields.text("health", LONGEST_WORDS) if "health" in fields.raw() else "",
        ages=_ages(fields.table("ages")) if "ages" in fields.raw() else {},
        chance=chance,
        effect=effect,
    )


def _account(one: StreamStatus) -> dict[str, Any]:
    """Return a stream's fields in their order; of frames v1 no series is told."""
    told = one._asdict()
    if not one.series:
        del told["series"], told["since"]
    return told


def _sampling(fields: Fields) -> tuple[Fraction | None, float]:
    """Return what a manifest's window and streams come to, None where it has no such window.

    And its schedule's design effect; of a period of few hours, which any day has often, 1.
    """
    try:
        manifest = fields.table("manifest")
        given = manifest.table("window")
        reports, slots = (given.integer(name, 1, _U32) for name in ("reports", "slots"))
        period = given.integer("period", 1, _U32) if "period" in given.raw() else 0
        measures = manifest.items("measures", MAX_STREAMS)
        window = Window(reports, slots, len(measures), period)
        first = measures[0]
        length = first.get("slot_seconds") if isinstance(first, dict) else None
    except (MessageError, ParameterError):
        return None, 1.0  # older devices tell none, and curators have none
    if type(length) is not int or window.period * length < _SHORT_S:
        return window.heard, 1.0
    effect = design_effect(window.period, length, reports=reports, streams=window.streams)
    return window.heard, max(1.0, float(effect))


def _texts(fields: Fields, name: str, limit: int) -> tuple[str, ...]:
    """Return the reasons in a status; texts that may stand on an operator's terminal."""
    if name not in fields.raw():
        return ()
    found = enumerate(fields.items(name, MAX_REFUSALS))
    return tuple(
        Fields({"reason": one}, f"{name}[{at}].").text("reason", limit) for at, one in found
    )


def _ages(table: Fields) -> dict[str, int]:
    return {name: table.integer(name, 0, _U32) for name in AGES if name in table.raw()}


def _parted(streams: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the lists of a message: streams of reports, then those of a home's own, if any."""
    rows = list(streams)
    parts = {"streams": [s for s in rows if s["stream"] < FIRST_KEY]}
    for name, first in _OWN_KEYS.items():
        own = [s for s in rows if first <= s["stream"] < first + FIRST_KEY]
        if own:
            parts[name] = [{**s, "stream": s["stream"] - first} for s in own]
    return parts


def _keyed(fields: Fields, series: int = 1) -> Iterator[tuple[int, Fields]]:
    """Yield the key and the fields of each stream in all lists, of so many series at most."""
    for s in fields.objects("streams", series * MAX_STREAMS):
        yield s.integer("stream", 0, FIRST_KEY - 1), s
    for name, first in _OWN_KEYS.items():
        if name in fields.raw():
            for s in fields.objects(name, series * (MAX_STREAM + 1)):
                yield first + s.integer("stream", 0, MAX_STREAM), s


def _stream_status(key: int, s: Fields) -> StreamStatus:
    first = s.integer("first", 1, _U32)
    following = s.integer("next", first, _U32)
    return StreamStatus(
        stream=key,
        first=first,
        next=following,
        oldest=s.integer("oldest", first, following),
        created=s.integer("created", 0, _COUNT),
        expired=s.integer("expired", 0, _COUNT),
        epoch=s.integer("epoch", 0, _U32),
        plan=s.text("plan"),
        series=s.integer("series", 0, _U32) if "series" in s.raw() else 0,
        since=s.integer("since", 0, _U32) if "since" in s.raw() else 0,
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
