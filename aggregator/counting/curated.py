"""Curated streams coming in: frames of released values judged and settled beside the reports.

A device's curated stream is its own: its values are stored as they came and never added to a
fleet's counts. Batches are numbered, receipted and accounted for as those of reports (receipts.py),
under keys from 256. A frame is taken or refused whole. Source: docs/design.md, Messages, The
aggregator, The central mode.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2s

from aggregator.counting.records import Changes, Key, Known, ReleasedArrival
from aggregator.counting.refusals import Reason, Rules
from aggregator.counting.seen_batches import DIGEST_BYTES, ArrivedBatch
from aggregator.counting.settlement import NO_STREAM, Settlement
from edge_ldp.continual import Shape
from edge_ldp.device.errors import ParameterError
from edge_ldp.protocol.messages import Status
from edge_ldp.protocol.released import FIRST_KEY, PublicDesign, ReleasedFrame, decode_released


def read_released(device: str, payload: bytes) -> ReleasedArrival:
    """Return a frame as an arrival; raises WireError."""
    frame = decode_released(payload)  # first: hashing 10 MB of anything else takes 20 ms (REP-12)
    return ReleasedArrival(device, frame, blake2s(payload, digest_size=DIGEST_BYTES).digest())


def wanted_released(arrivals: Iterable[ReleasedArrival]) -> frozenset[Key]:
    """Return the keys of the records that `settle_released` will look at, beside the statuses'."""
    return frozenset(one.key for one in arrivals)


def settle_released(
    arrivals: Sequence[ReleasedArrival],
    statuses: Mapping[str, Status],
    known: Known,
    rules: Rules,
    changes: Changes,
) -> Changes:
    """Return the flush's changes with its curated streams settled too, each in batch order.

    `changes`: what `settle` made of the same flush; its enrolments hold.
    """
    if not arrivals and not any(
        s.stream >= FIRST_KEY for t in statuses.values() for s in t.streams
    ):
        return changes
    work = Settlement(known, rules, changes)
    ordered = sorted(arrivals, key=_order)
    released = tuple(one for one in ordered if _settle_values(one, rules, work))
    for device, status in changes.statuses.items():
        for one in status.streams:
            if one.stream >= FIRST_KEY:
                work.apply_status(device, one)
    return replace(
        changes,
        records=work.records,
        refused=work.refused,
        enrolled=work.enrolled,
        settled=work.settled,
        gapped=work.gapped,
        released=released,
    )


def judge_released(frame: ReleasedFrame, rules: Rules) -> Reason | None:
    """Return why an enrolled device's frame may not count, or None."""
    try:
        shape_of(frame.design)
    except ParameterError:
        return Reason.RANGE
    seconds = frame.design.slot_seconds
    if frame.slots[-1] * seconds > rules.now_s + rules.tolerance_s:
        return Reason.EARLY
    closes_s = (frame.slots[0] + 1) * seconds + rules.window_s
    if closes_s < rules.now_s:
        return Reason.LATE
    return Reason.CLOCK if closes_s < rules.closing_s else None


def shape_of(design: PublicDesign) -> Shape:
    """Return the noise's structure; raises ParameterError for one that cannot be."""
    return Shape(design.kind, design.fanout, design.chunk, design.pruned)


def _order(arrival: ReleasedArrival) -> tuple[str, int, int, int]:
    frame = arrival.frame
    return *arrival.key, frame.slots[0] if frame.numbering else 0, frame.batch


def _settle_values(arrival: ReleasedArrival, rules: Rules, work: Settlement) -> bool:
    """Settle one frame and say whether its values are to be stored."""
    frame = arrival.frame
    count = len(frame.slots)
    if not work.enrols(arrival.device):
        work.refuse(Reason.DEVICE, NO_STREAM, count)
        return False
    reason = judge_released(frame, rules)
    if reason is not None and not reason.is_final:
        work.refuse(reason, frame.key, count)
        return False
    first, last = frame.slots[0], frame.slots[-1]
    batch = ArrivedBatch(frame.batch, first, last, arrival.digest, reason is None, frame.numbering)
    return work.place(arrival.key, batch, count, reason) is not None
