"""Homes' sums of a period coming in: judged and settled beside the reports, one report each.

A home sums a stream of the fleet, named in the frame, under a number of its own. Of one home and
stream no two periods overlap, in whatever layouts: a slot's value is in one sum at most. A frame is
taken or refused whole. Source: docs/design.md, Messages, The aggregator; docs/faults.md, REP-15.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2s

from aggregator.counting.period_totals import layout_of, report_of
from aggregator.counting.records import Changes, KeptSums, Key, Known, Member
from aggregator.counting.refusals import Reason, Rules
from aggregator.counting.seen_batches import DIGEST_BYTES, ArrivedBatch
from aggregator.counting.settlement import NO_STREAM, Settlement
from edge_ldp.device.sums_frame import SumsFrame, decode_sums
from edge_ldp.protocol.released import FIRST_SUMS_KEY

MOST_SPANS = 4096  # of R in b: noise beyond it, such as 4,096 slots at ε 1 need, only spoils


@dataclass(frozen=True, slots=True)
class SumsArrival:
    """One well-formed frame, its bytes, and the device that its topic names."""

    device: str
    frame: SumsFrame
    payload: bytes

    @property
    def key(self) -> Key:
        """The device and stream, in records and receipts."""
        return self.device, FIRST_SUMS_KEY + self.frame.stream

    @property
    def slots(self) -> tuple[int, int]:
        """The first and the last slot of the period."""
        layout, period = layout_of(self.frame), self.frame.period
        return layout.first_slot(period), layout.first_slot(period + 1) - 1

    @property
    def span_s(self) -> tuple[int, int]:
        """When the period begins and ends, seconds UTC."""
        first, last = self.slots
        return first * self.frame.slot_seconds, (last + 1) * self.frame.slot_seconds

    def kept(self, group: int, *, held: bool) -> KeptSums:
        """Return what is kept of it."""
        return KeptSums(self.device, self.frame.name, *self.span_s, group, held, self.payload)


def read_sums(device: str, payload: bytes) -> SumsArrival:
    """Return a frame as an arrival; raises WireError."""
    return SumsArrival(device, decode_sums(payload), payload)


def wanted_sums(arrivals: Iterable[SumsArrival]) -> frozenset[Key]:
    """Return the keys of the records that `settle_sums` will look at, beside the statuses'."""
    return frozenset(one.key for one in arrivals)


def settle_sums(
    arrivals: Sequence[SumsArrival],
    known: Known,
    rules: Rules,
    changes: Changes,
) -> Changes:
    """Return the flush's changes with its periods' sums settled too, each in batch order.

    `changes`: what `settle` made of the same flush; its enrolments hold. What statuses tell of
    these streams is applied where that of curated ones is.
    """
    if not arrivals:
        return changes
    work = _Sums(known, rules, changes)
    for arrival in sorted(arrivals, key=_order):
        work.settle(arrival)
    settled = work.settlement
    return replace(
        changes,
        records=settled.records,
        refused=settled.refused,
        enrolled=settled.enrolled,
        settled=settled.settled,
        gapped=settled.gapped,
        summed=tuple(work.kept),
    )


def judge_sums(arrival: SumsArrival, rules: Rules) -> Reason | None:
    """Return why an enrolled device's frame may not count, or None."""
    frame = arrival.frame
    measured = rules.measured.get(frame.name)
    if measured is None or measured.unit != frame.unit:
        return Reason.STREAM
    stream = rules.streams.get(measured.stream)
    if stream is not None and stream.is_retired:
        return Reason.PLAN
    is_within = measured.low <= frame.low and frame.low + frame.span <= measured.ceiling
    if not is_within or frame.scale > MOST_SPANS * frame.span:
        return Reason.SPAN
    if not report_of(frame).is_plausible:
        return Reason.RANGE
    return _judge_time(arrival.span_s[1], rules)


def _judge_time(end_s: int, rules: Rules) -> Reason | None:
    closes_s = end_s + rules.window_s
    if closes_s < rules.now_s:
        return Reason.LATE
    if end_s > rules.now_s + rules.tolerance_s:
        return Reason.EARLY
    return Reason.CLOCK if closes_s < rules.closing_s else None


class _Sums:
    """What a flush's sums change, one after the other."""

    def __init__(self, known: Known, rules: Rules, changes: Changes) -> None:
        self.settlement = Settlement(known, rules, changes)
        self.kept: list[KeptSums] = []
        self._rules = rules.retiring(known.retired) if known.retired else rules
        self._members = known.members
        self._holds = changes.holds
        self._claims: defaultdict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
        for device, name, first_s, end_s in known.claims:
            self._claims[device, name].append((first_s, end_s))

    def settle(self, arrival: SumsArrival) -> None:
        """Settle one frame: keep it, or refuse it."""
        device, frame, work = arrival.device, arrival.frame, self.settlement
        if not work.enrols(device):
            work.refuse(Reason.DEVICE, NO_STREAM, 1)
            return
        reason = judge_sums(arrival, self._rules)
        first_s, end_s = arrival.span_s
        claimed = self._claims[device, frame.name]
        if reason is None and any(first_s < end and begin < end_s for begin, end in claimed):
            reason = Reason.PERIOD
        _, key = arrival.key
        if reason is not None and not reason.is_final:
            work.refuse(reason, NO_STREAM if reason is Reason.STREAM else key, 1)
            return
        digest = blake2s(arrival.payload, digest_size=DIGEST_BYTES).digest()
        first, last = arrival.slots
        batch = ArrivedBatch(frame.batch, first, last, digest, reason is None, frame.series)
        if work.place(arrival.key, batch, 1, reason) is None:
            return
        member = self._members.get(device, Member())
        claimed.append((first_s, end_s))
        held = member.held or device in self._holds
        self.kept.append(arrival.kept(member.group, held=held))


def _order(arrival: SumsArrival) -> tuple[str, int, int, int]:
    return *arrival.key, arrival.slots[0], arrival.frame.batch
