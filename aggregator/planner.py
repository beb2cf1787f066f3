"""What to ask the fleet next: a survey first, then sums up to the θ that the survey suggests.

Epoch 1 asks every included slot for a survey report over the whole range. Once enough came in, and
again every revision interval, the density is estimated from all surveys and θ chosen (DESIGN §7);
a new plan goes out only when θ is worth it, so devices are not sent from θ to θ by noise.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from aggregator.threshold import Cost, choose_threshold, prune
from edge_ldp.mechanisms import Hybrid, SquareWave
from edge_ldp.plan import MAX_EPOCH_JUMP, Plan

if TYPE_CHECKING:
    from aggregator.config import StreamTable
    from aggregator.estimate import Density

VALID_S = 180 * 86_400  # a plan is renewed when half of this is over
ALL = (1 << 16, 1 << 16)
# The published 1e-4 erases the tail of real homes (cost 2.5 times the best θ's; 1.14 with 1e-5, and
# 1.06 without pruning) but not pruning ruins POS (231 times; 2.4 with 1e-5, 2.1 as published):
# benchmarks/README.md.
PRUNE_BELOW = 1e-5


def first_plan(fleet: str, stream: StreamTable, *, epoch: int, now_s: int) -> Plan:
    """Return the plan of a stream that nothing is known about: every report is a survey report."""
    return Plan(
        fleet=fleet,
        stream=stream.name,
        stream_id=stream.id,
        unit=stream.unit,
        epoch=epoch,
        issued_s=now_s,
        expires_s=now_s + VALID_S,
        slot_seconds=stream.slot_seconds,
        low=stream.low,
        ceiling=stream.ceiling,
        share=ALL,
        stream_mechanism=_sums(stream, stream.ceiling),
        survey_mechanism=SquareWave(
            epsilon=stream.epsilon, low=stream.low, high=stream.ceiling, size=stream.survey_size
        ),
    )


def next_plan(plan: Plan, stream: StreamTable, density: Density, *, now_s: int) -> Plan | None:
    """Return the plan to follow `plan` given the density of all surveys, or None to keep it.

    After the first survey there is always a next plan. Later only one whose θ is estimated to cost
    less by more than `hysteresis`, or when θ stands at the ceiling, where it says nothing yet.
    Cost: O(survey size). Raises ArgumentError for a density that is no survey's.
    """
    survey_share = stream.share[0] / stream.share[1]
    inclusion = 1 - survey_share
    if inclusion <= 0:
        return None  # configured to survey for ever
    mechanism = _sums(stream, plan.theta)
    cost = Cost(mechanism.unit_variance, stream.horizon, stream.low, inclusion)
    pruned = prune(density, below=PRUNE_BELOW)
    best = choose_threshold(
        pruned, cost.unit_variance, cost.horizon, low=cost.low, inclusion=cost.inclusion
    )
    if not is_survey_only(plan):
        now, then = cost.at(pruned, [plan.theta, best.theta])
        worth_it = then < now * (1 - float(stream.hysteresis)) or plan.theta == plan.ceiling
        if best.theta == plan.theta or not worth_it:
            return None
    return replace(
        first_plan(plan.fleet, stream, epoch=plan.epoch + 1, now_s=now_s),
        share=stream.share,
        stream_mechanism=_sums(stream, best.theta),
    )


def renewed(plan: Plan, *, epoch: int, now_s: int) -> Plan:
    """Return the same plan under a new epoch: it would expire, or a foreign one is retained."""
    return replace(plan, epoch=epoch, issued_s=now_s, expires_s=now_s + VALID_S)


def needs_renewal(plan: Plan, now_s: float) -> bool:
    """Say whether half of the plan's time is over."""
    return now_s > plan.issued_s + VALID_S // 2


def is_survey_only(plan: Plan) -> bool:
    """Say whether every report under the plan is a survey report."""
    return plan.share[0] == plan.share[1]


def is_due(plan: Plan, stream: StreamTable, looked_s: float | None, now_s: float) -> bool:
    """Say whether it is time to estimate: at once in the first survey, then every interval.

    `looked_s`: when enough surveys were last looked at, or None.
    """
    if looked_s is None and is_survey_only(plan):
        return True
    since_s = plan.issued_s if looked_s is None else looked_s
    return now_s - since_s >= stream.revise_slots * stream.slot_seconds


def next_epoch(stored: int | None, retained: int | None) -> int:
    """Return the epoch after both the last one stored and the one the broker retains.

    A retained epoch further ahead than a device would follow is ignored, once we have our own.
    """
    if stored is None:
        return (retained or 0) + 1
    if retained is None or retained > stored + MAX_EPOCH_JUMP:
        return stored + 1
    return max(stored, retained) + 1


def matches(plan: Plan, fleet: str, stream: StreamTable) -> bool:
    """Say whether a stored plan still asks for what is configured, θ and shares aside."""
    wanted = first_plan(fleet, stream, epoch=plan.epoch, now_s=plan.issued_s)
    same = replace(
        plan,
        expires_s=wanted.expires_s,
        share=wanted.share,
        stream_mechanism=wanted.stream_mechanism,
    )
    return same == wanted and _sums(stream, plan.theta) == plan.stream_mechanism


def _sums(stream: StreamTable, theta: int) -> Hybrid:
    return Hybrid(epsilon=stream.epsilon, low=stream.low, high=theta, size=stream.size)
