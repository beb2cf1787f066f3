"""Which well-formed frames may count: identity, stream, plan, range and time, one whole frame each.

A frame is taken or refused whole, never in part (REP-13). `plan`, `range` and `late` are refusals
for good: the batch is settled as rejected, receipted, and its device stops sending it; after a lost
aggregator database this holds for reports under its forgotten plans too. `device`, `stream` and
`early` settle nothing: enrolment, a new stream or a repaired clock on either side can still make
such a frame good, and no row ever grows for a device that is not enrolled.
Source: FAULTS REP-01..03, REP-06..08, REP-13; DESIGN §10.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from aggregator.poisoning_sets import watch_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from aggregator.poisoning_sets import Watch
    from edge_ldp.device.frame import Header
    from edge_ldp.plan import Plan

    Ints = NDArray[np.int64]


MARK_RATE = 1e-4  # probability that any honest device is ever marked
LAWS = 16  # of a stream, ever: plans that differ in θ or in time share one


class Reason(StrEnum):
    """Why a frame does not count."""

    DEVICE = "device"
    STREAM = "stream"
    PLAN = "plan"
    RANGE = "range"
    EARLY = "early"
    LATE = "late"

    @property
    def is_final(self) -> bool:
        """Say whether the batch is settled by the refusal."""
        return self in (Reason.PLAN, Reason.RANGE, Reason.LATE)


@dataclass(frozen=True, slots=True, eq=False)
class Codes:
    """What an issued plan allows: `possible[code]`, and slots that ended at `issued_s` or later.

    `watch`: how often an honest device sends which codes at most, or None: not watched.
    """

    possible: NDArray[np.bool_]
    issued_s: int
    watch: Watch | None = None


@dataclass(frozen=True, slots=True)
class StreamRules:
    """Rules of one stream: its plans by epoch, and its slots."""

    slot_seconds: int
    bucket_slots: int
    plans: Mapping[int, Codes]


@dataclass(frozen=True, slots=True)
class Rules:
    """Everything the guard and the settling need to know; times in seconds UTC.

    `devices`: those enrolled, or None for open enrolment of at most `max_devices`.
    """

    streams: Mapping[int, StreamRules]
    devices: frozenset[str] | None
    max_devices: int
    window_s: int
    tolerance_s: int
    now_s: float

    @property
    def triples(self) -> int:
        """At most so many device, stream and law triples are ever watched: marks share a rate."""
        devices = self.max_devices if self.devices is None else len(self.devices)
        return max(1, devices) * max(1, len(self.streams)) * LAWS

    def enrols(self, device: str, known: int) -> bool:
        """Say whether a device that has no row yet may get one, next to `known` others."""
        return known < self.max_devices if self.devices is None else device in self.devices


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
    return Codes(np.concatenate(parts), plan.issued_s, watch_of(plan))


def judge(head: Header, slots: Ints, codes: Ints, rules: Rules) -> Reason | None:
    """Return why an enrolled device's frame may not count, or None. Cost: O(reports)."""
    stream = rules.streams.get(head.stream)
    if stream is None:
        return Reason.STREAM
    plan = stream.plans.get(head.epoch)
    if plan is None:
        return Reason.PLAN
    if int(codes.max()) >= len(plan.possible) or not plan.possible[codes].all():
        return Reason.RANGE
    return _judge_time(int(slots[0]), int(slots[-1]), stream, plan, rules)


def is_closed(slot: int, stream: StreamRules, rules: Rules) -> bool:
    """Say whether the slot's time bucket ended more than a re-send window ago."""
    bucket_end = (slot // stream.bucket_slots + 1) * stream.bucket_slots * stream.slot_seconds
    return bucket_end + rules.window_s < rules.now_s


def _judge_time(
    first: int, last: int, stream: StreamRules, plan: Codes, rules: Rules
) -> Reason | None:
    if last * stream.slot_seconds > rules.now_s + rules.tolerance_s:
        return Reason.EARLY  # the slot has not begun
    if is_closed(first, stream, rules):
        return Reason.LATE
    if (first + 1) * stream.slot_seconds + rules.tolerance_s < plan.issued_s:
        return Reason.PLAN  # the slot was over before the plan it was drawn under existed
    return None
