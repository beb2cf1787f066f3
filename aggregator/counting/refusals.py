"""Which well-formed frames may count: identity, stream, plan, range and time, one whole frame each.

A frame is taken or refused whole, never in part (REP-13). `plan` (of a retired stream), `range`,
`late`, and of a period's sums `span` and `period`, are refusals for good: the batch is settled as
rejected, receipted, and its device stops sending it. `device`, `stream`, `foreign`, `early` and
`clock` settle nothing: enrolment, a new stream, the store that made the plan or a repaired clock on
either side can still make such a frame good, and no row ever grows by it. So no aggregator receipts
what another one's plan asked for.
Source: docs/faults.md, REP-01..03, REP-06..08, REP-13, PLN-18, NET-27; docs/design.md, The
aggregator.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from aggregator.counting.code_sets import Watch, watch_of
from aggregator.counting.frames import FIRST_SLOT, TAG, FrameBatch
from aggregator.counting.records import Member
from edge_ldp.protocol.plan import AHEAD_S, Plan

MARK_RATE = 1e-4  # probability that any honest device is ever marked
LAWS = 16  # of a stream, ever: plans that differ in θ or in time share one


class Reason(StrEnum):
    """Why a frame does not count."""

    DEVICE = "device"
    STREAM = "stream"
    PLAN = "plan"  # of a stream that is retired
    FOREIGN = "foreign"  # under a plan that this store does not have: another one's, or a lost one
    RANGE = "range"
    EARLY = "early"
    LATE = "late"
    SPAN = "span"  # sums over a wider range than the stream's, or with noise that only spoils
    PERIOD = "period"  # sums of slots that are in a period counted before
    CLOCK = "clock"  # older than its plan, or closed by a time that is yet to come: a clock is off

    @property
    def is_final(self) -> bool:
        """Say whether the batch is settled by the refusal."""
        return self in (
            Reason.PLAN,
            Reason.RANGE,
            Reason.LATE,
            Reason.SPAN,
            Reason.PERIOD,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Codes:
    """What an issued plan allows: `possible[code]`, and slots of the time since `issued_s`.

    `watch`: how often an honest device sends which codes at most, or None: not watched;
    `surveys_from`: the first code of surveys; `tag`: of the plan in frames v2, 0: any will do.
    """

    possible: NDArray[np.bool_]
    issued_s: int
    watch: Watch | None = None
    surveys_from: int = 1 << 16
    tag: int = 0


@dataclass(frozen=True, slots=True)
class StreamRules:
    """Rules of one stream: its plans by epoch, and its slots.

    `added_up`: time buckets below were added up to hours and days, so none of them is open again,
    even if the re-send window was shorter then. `is_retired`: an operator asks no more for it.
    """

    slot_seconds: int
    bucket_slots: int
    plans: Mapping[int, Codes]
    added_up: int = 0
    is_retired: bool = False


@dataclass(frozen=True, slots=True)
class Measured:
    """What a stream measures: its number, unit and range, which homes' sums must be within."""

    stream: int
    unit: str
    low: int
    ceiling: int


@dataclass(frozen=True, slots=True)
class Rules:
    """Everything that refusals and settling need to know; times in seconds UTC.

    `devices`: those enrolled, or None for those with a row in the store; `is_open` gives one to
    anyone up to `max_devices`. `marks_hold`: counts of a device are kept apart once it is marked.
    `closed_s`: the latest time by which buckets were closed before, whatever the clock says now.
    `measured`: the streams by name.
    """

    streams: Mapping[int, StreamRules]
    devices: frozenset[str] | None
    max_devices: int
    window_s: int
    tolerance_s: int
    now_s: float
    is_open: bool = True
    marks_hold: bool = False
    closed_s: float = 0.0
    measured: Mapping[str, Measured] = field(default_factory=dict)

    @property
    def closing_s(self) -> float:
        """The time that buckets are closed by: it never goes back, so none is opened again."""
        return max(self.now_s, self.closed_s)

    @property
    def triples(self) -> int:
        """At most so many device, stream and law triples are ever watched: marks share a rate."""
        devices = self.max_devices if self.devices is None else len(self.devices)
        return max(1, devices) * max(1, len(self.streams)) * LAWS

    def retiring(self, streams: AbstractSet[int]) -> "Rules":
        """Return the rules where no plan of these streams is good: their reports are `plan`."""
        none: dict[int, Codes] = {}
        known = self.streams.keys() & streams
        gone = {one: replace(self.streams[one], plans=none, is_retired=True) for one in known}
        return replace(self, streams={**self.streams, **gone})

    def enrols(self, device: str, known: int) -> bool:
        """Say whether a device that has no row yet may get one, next to `known` others."""
        if self.devices is not None:
            return device in self.devices
        return self.is_open and known < self.max_devices

    def hears(self, device: str, member: Member | None) -> bool:
        """Say whether a device that has a row may report; revoking it stands above any list."""
        if member is not None and member.revoked:
            return False
        return self.devices is None or device in self.devices


def allowed_codes(plan: Plan) -> Codes:
    """Return which codes a device can send under the plan: no branch with a coin of 0 gives any."""
    num, den = plan.share
    parts = [
        np.full(wave.code_count, coin > 0 and allowed, dtype=bool)
        for mechanism, allowed in (
            (plan.stream_mechanism, num < den),
            (plan.survey_mechanism, num > 0),
        )
        for coin, _, wave in mechanism.branches
    ]
    surveys_from = plan.stream_mechanism.code_count
    return Codes(np.concatenate(parts), plan.issued_s, watch_of(plan), surveys_from)


def judge_all(frames: FrameBatch, rules: Rules) -> list[Reason | None]:
    """Return why each frame of enrolled devices may not count, or None. Cost: O(reports)."""
    reasons: list[Reason | None] = [None] * len(frames)
    plans, of = frames.plans
    for at, (stream_id, epoch) in enumerate(plans):
        places = np.flatnonzero(of == at)
        stream = rules.streams.get(stream_id)
        plan = None if stream is None else stream.plans.get(epoch)
        if stream is None:
            wrong = dict.fromkeys(range(len(places)), Reason.STREAM)
        elif plan is None:
            lacks = Reason.PLAN if stream.is_retired else Reason.FOREIGN
            wrong = dict.fromkeys(range(len(places)), lacks)
        else:
            wrong = _judge_plan(frames.some(places), stream, plan, rules)
        for one, reason in wrong.items():
            reasons[places[one]] = reason
    return reasons


def dated(plans: Mapping[int, Codes]) -> dict[int, Codes]:
    """Return the same by epoch, each from when it can have been in force: clocks may be wrong."""
    begun = earliest({epoch: codes.issued_s for epoch, codes in plans.items()})
    return {
        epoch: codes if codes.issued_s == begun[epoch] else replace(codes, issued_s=begun[epoch])
        for epoch, codes in plans.items()
    }


def _judge_plan(
    frames: FrameBatch, stream: StreamRules, plan: Codes, rules: Rules
) -> dict[int, Reason]:
    """Return which frames of one plan may not count; of several reasons the first here stands."""
    first, tag, codes = frames.heads[FIRST_SLOT], frames.heads[TAG], frames.codes
    legal = (codes < len(plan.possible)) & plan.possible.take(codes, mode="clip")
    bucket = first // stream.bucket_slots
    closes_s = (bucket + 1) * stream.bucket_slots * stream.slot_seconds + rules.window_s
    slack_s = max(AHEAD_S, rules.tolerance_s)  # devices take a plan that is dated so far ahead
    # the slot was over before the plan it was drawn under existed
    is_older = (first + 1) * stream.slot_seconds + slack_s < plan.issued_s
    wrong = {
        Reason.FOREIGN: (tag > 0) & (plan.tag > 0) & (tag != plan.tag),
        Reason.RANGE: ~np.logical_and.reduceat(legal, frames.begins),
        # the slot has not begun
        Reason.EARLY: frames.lasts * stream.slot_seconds > rules.now_s + rules.tolerance_s,
        # its time bucket is added up, or ended more than a re-send window ago
        Reason.LATE: (bucket < stream.added_up) | ((closes_s < rules.now_s) & ~is_older),
        Reason.CLOCK: is_older | (closes_s < rules.closing_s),
    }
    return {
        at: reason
        for reason, where in reversed(wrong.items())
        for at in np.flatnonzero(where).tolist()
    }


def latest(issued: Mapping[int, int]) -> dict[int, int]:
    """Return the last second at which each plan can have been issued; `issued`: date by epoch.

    Epochs rise, so a plan that follows another cannot be older than it. One that is dated after its
    successor was dated by a clock that was ahead: it is true only that it was issued after the one
    before it, and before the one after. Source: docs/faults.md, PLN-18.
    """
    found: dict[int, int] = {}
    at_s = max(issued.values(), default=0)
    for epoch in sorted(issued, reverse=True):
        found[epoch] = at_s = min(at_s, issued[epoch])
    return found


def earliest(issued: Mapping[int, int]) -> dict[int, int]:
    """Return the first second at which each plan can have been issued; `issued`: date by epoch.

    Its date, unless that is ahead of a later plan's; then that of the plan before it, or 0.
    """
    found: dict[int, int] = {}
    last, at_s = latest(issued), 0
    for epoch in sorted(issued):
        found[epoch] = at_s = issued[epoch] if issued[epoch] == last[epoch] else at_s
    return found
