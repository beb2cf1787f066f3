"""What to ask the fleet next: a survey first, then sums up to the θ that the survey suggests.

Epoch 1 asks every included slot for a survey report over the whole range. Once enough came in, and
again every revision interval, θ is chosen anew (`aggregator.plans.revision`), and the share of
surveys with it; devices are not sent from θ to θ by noise, but only when it is worth it. Every
plan that is issued carries the digest of what was proved of it (`edge_ldp.certify`).
"""

from collections.abc import Iterable
from dataclasses import fields, replace
from functools import lru_cache

from aggregator.config import StreamTable
from aggregator.counting.refusals import latest
from edge_ldp import Mechanism
from edge_ldp.device.errors import ParameterError
from edge_ldp.estimate import Density
from edge_ldp.protocol.plan import Plan, last_epoch, parse_plan
from edge_ldp.protocol.plan_bounds import (
    DAY_S,
    PlanBounds,
    PlanRequest,
    Refusal,
    loosened,
    misshape,
)
from edge_ldp.ratio import floor_ratio
from edge_ldp.threshold.published import Cost, choose_threshold, prune

VALID_S = 180 * 86_400  # a plan is renewed when half of this is over
ALL = (1 << 16, 1 << 16)
# The published 1e-4 erases the tail of real homes (cost 2.5 times the best θ's; 1.14 with 1e-5, and
# 1.06 without pruning) but not pruning ruins POS (231 times; 2.4 with 1e-5, 2.1 as published):
# docs/results.md.
PRUNE_BELOW = 1e-5


def first_plan(fleet: str, stream: StreamTable, *, epoch: int, now_s: int) -> Plan:
    """Return the plan of a stream that nothing is known about: every report is a survey report.

    Cost: 0.2 s to prove it, unless the same was proved just before. Raises ParameterError for
    mechanisms of which a claim fails.
    """
    return proved(_draft(fleet, stream, epoch=epoch, now_s=now_s))


def next_plan(
    plan: Plan, stream: StreamTable, density: Density, *, values: int, now_s: int
) -> Plan | None:
    """Return the plan to follow `plan` by the published rule, or None to keep it.

    `density`: of all surveys over the whole range, by EMS; `values`: in the longest query. After
    the first survey there is always a next plan. Later only one whose θ is estimated to cost less
    by more than `hysteresis`, or when θ stands at the ceiling, where it says nothing yet. Not
    `proved` yet. Cost: O(survey size). Raises ParameterError for a density that is no survey's.
    """
    survey_share = stream.share[0] / stream.share[1]
    inclusion = 1 - survey_share
    if inclusion <= 0:
        return None  # configured to survey for ever
    mechanism = stream.sums(plan.theta)
    cost = Cost(mechanism.unit_variance, values, stream.low, inclusion)
    pruned = prune(density, below=PRUNE_BELOW)
    best = choose_threshold(
        pruned, cost.unit_variance, cost.horizon, low=cost.low, inclusion=cost.inclusion
    )
    theta = max(best.theta, stream.least_theta)
    if not is_survey_only(plan):
        now, then = cost.at(pruned, [plan.theta, theta])
        worth_it = then < now * (1 - float(stream.hysteresis)) or plan.theta == plan.ceiling
        if theta == plan.theta or not worth_it:
            return None
    return following(plan, stream, stream.sums(theta), share=stream.share, now_s=now_s)


def following(
    plan: Plan, stream: StreamTable, sums: Mechanism, *, share: tuple[int, int], now_s: int
) -> Plan | None:
    """Return the next plan: stream reports by `sums`, surveys of the whole range at `share`.

    None where it asks the same as `plan`. It is not `proved` yet.
    """
    drafted = replace(
        _draft(plan.fleet, stream, epoch=plan.epoch + 1, now_s=now_s),
        share=share,
        stream_mechanism=sums,
    )
    before = (plan.share, plan.stream_mechanism, plan.survey_mechanism)
    if before == (drafted.share, drafted.stream_mechanism, drafted.survey_mechanism):
        return None
    return drafted


def proved(plan: Plan) -> Plan:
    """Return the plan with the digest of its certificate, which epoch and times are no part of.

    Cost and errors of `first_plan`.
    """
    timeless = replace(plan, epoch=1, issued_s=0, expires_s=0, certificate=None, store=None)
    return replace(plan, certificate=_proved(timeless.to_json()))


def ordered(  # noqa: PLR0913 (what an operator may say)
    plan: Plan,
    stream: StreamTable,
    *,
    theta: int,
    survey: tuple[int, int],
    share: tuple[int, int],
    now_s: int,
) -> Plan:
    """Return the next plan as an operator orders it, proved like any other.

    Raises ParameterError for what cannot be issued: the planner, the certificate or every device
    would refuse it.
    """
    low, high = survey
    if not stream.least_theta <= theta <= stream.ceiling:
        within = f"{stream.least_theta} to {stream.ceiling} {stream.unit} (theta_halvings)"
        raise ParameterError("theta", within)
    if not stream.low <= low < high <= stream.ceiling:
        raise ParameterError("survey", f"a range within {stream.low} to {stream.ceiling}")
    if not 0 < share[0] <= share[1]:
        raise ParameterError("share", "at least 1/65536 and at most 1")
    made = replace(
        _draft(plan.fleet, stream, epoch=plan.epoch + 1, now_s=now_s),
        share=share,
        stream_mechanism=plan.stream_mechanism if theta == plan.theta else stream.sums(theta),
        survey_mechanism=stream.survey(low, high),
    )
    made.reporter()
    made = proved(made)
    if not matches(made, plan.fleet, stream):
        raise ParameterError("survey", "the whole range, since the stream's theta is published")
    return made


def refused_by_default(stream: StreamTable, plan: Plan) -> str | None:
    """Say why devices with the default [policy.plans] refuse a plan, and what allows it; or None.

    What the stream's own `theta_halvings` say is the operator's wish, and no device's.
    """
    found = _refusal(stream, plan)
    if found is None:
        return None
    bound, needed = found
    text = f"{bound.code}: {bound.words}"
    if bound.code in ("narrow", "sharp"):
        usual = replace(stream, theta_halvings=PlanBounds().theta_halvings).least_theta
        text = (
            f"θ {plan.theta} {stream.unit}: at least {usual} {stream.unit} (their theta_halvings)"
        )
    remedy = "no setting of theirs allows it"
    if needed is not None:
        keys = (field.name for field in fields(needed))
        changed = (name for name in keys if getattr(needed, name) != getattr(PlanBounds(), name))
        settings = ", ".join(f"{name} = {getattr(needed, name)}" for name in changed)
        remedy = f"it takes {settings} in [policy.plans] of each device's agent.toml"
    return f"devices refuse this plan by default ([policy.plans]): {text}; {remedy}"


def taken_from(plans: Iterable[Plan], following: Plan) -> int:
    """Return the second before which devices with the default [policy.plans] do not take a plan.

    By the days that a plan and a θ stay in force; `plans`: all before it, as they took them. One
    dated ahead they took before the next was issued.
    """
    bounds, begun, asked = PlanBounds(), 0, None
    theta, since = None, 0
    before = sorted(plans, key=lambda plan: plan.epoch)
    issued = latest({plan.epoch: plan.issued_s for plan in (*before, following)})
    for plan in before:
        question = (plan.share, plan.stream_mechanism, plan.survey_mechanism)
        if question != asked:
            asked, begun = question, issued[plan.epoch]
        if not is_survey_only(plan) and plan.theta != theta:
            theta, since = plan.theta, issued[plan.epoch]
    first_s = begun + bounds.days * DAY_S
    if theta is None or is_survey_only(following) or following.theta == theta:
        return first_s
    return max(first_s, since + bounds.range_days * DAY_S)


def _refusal(stream: StreamTable, plan: Plan) -> tuple[Refusal, PlanBounds | None] | None:
    """Return the bound that it exceeds, and the loosest that their owners must set (None: none)."""
    asked = PlanRequest(
        stream.low,
        stream.ceiling,
        floor_ratio(stream.epsilon),
        plan.stream_mechanism,
        plan.survey_mechanism,
        plan.share,
    )
    bound = misshape(asked, PlanBounds())
    return None if bound is None else (bound, loosened(asked, PlanBounds()))


def renewed(plan: Plan, epoch: int, *, now_s: int) -> Plan:
    """Return the same plan under a new epoch: it would expire, or a foreign one is retained.

    Its certificate is still its own: it is about mechanisms and share, not about epoch and time.
    """
    return replace(plan, epoch=epoch, issued_s=now_s, expires_s=now_s + VALID_S)


def raised(plan: Plan, stream: StreamTable, *, epoch: int, now_s: int) -> Plan | None:
    """Return the plan with the least θ that devices admit; None where θ is not all that is amiss.

    A store may hold one that was admitted by the bounds of an older version (docs/faults.md,
    PLN-22). Not `proved` yet.
    """
    if plan.theta >= stream.least_theta or not stream.allows(plan.stream_mechanism):
        return None
    made = replace(plan, stream_mechanism=stream.sums(stream.least_theta))
    if not matches(made, plan.fleet, stream):
        return None
    return replace(renewed(made, epoch=epoch, now_s=now_s), certificate=None)


def needs_renewal(plan: Plan, now_s: float) -> bool:
    """Say whether half of the plan's time is over."""
    return now_s > plan.issued_s + VALID_S // 2


def is_ahead(plan: Plan, now_s: float, tolerance_s: float) -> bool:
    """Say whether a plan is dated by a clock that was ahead, by more than clocks may differ.

    Devices refuse it, and older ones report what nobody can have drawn (docs/faults.md, PLN-18).
    """
    return plan.issued_s > now_s + tolerance_s


def is_survey_only(plan: Plan) -> bool:
    """Say whether every report under the plan is a survey report."""
    return plan.share[0] == plan.share[1]


def is_due(plan: Plan, stream: StreamTable, revised_s: float | None, now_s: float) -> bool:
    """Say whether it is time to estimate: at once in the first survey, then every interval.

    `revised_s`: when enough surveys were last looked at, or None.
    """
    if revised_s is None and is_survey_only(plan):
        return True
    since_s = plan.issued_s if revised_s is None else revised_s
    was_ahead = since_s > now_s + stream.slot_seconds  # a clock, when it was looked at
    return was_ahead or now_s - since_s >= stream.revise_slots * stream.slot_seconds


def next_epoch(stored: int | None, retained: int | None, now_s: float) -> int:
    """Return the epoch after both the last one stored and the one the broker retains.

    A retained one that no device believes yet is ignored: whoever can publish puts anything there.
    Above the last that they believe now, the next one waits on them for an hour.
    """
    if retained is not None and retained > last_epoch(now_s):
        retained = None
    return max(stored or 0, retained or 0) + 1


def matches(plan: Plan, fleet: str, stream: StreamTable) -> bool:
    """Say whether a stored plan still asks for what is configured: θ, survey range, shares aside.

    One without a certificate does not: it is from an older version, and is issued again with one.
    Nor does a narrowed survey where θ is to be chosen as published.
    """
    wanted = _draft(fleet, stream, epoch=plan.epoch, now_s=plan.issued_s)
    same = replace(
        plan,
        expires_s=wanted.expires_s,
        share=wanted.share,
        stream_mechanism=wanted.stream_mechanism,
        survey_mechanism=wanted.survey_mechanism,
        certificate=None,
        store=None,
    )
    if same != wanted or plan.certificate is None or not plan.agrees:
        return False
    survey = plan.survey_mechanism
    narrowed = survey != wanted.survey_mechanism
    return (
        stream.allows(plan.stream_mechanism)
        and stream.least_theta <= plan.theta
        and stream.survey(survey.low, survey.high) == survey
        and not (narrowed and stream.theta == "published")
    )


def _draft(fleet: str, stream: StreamTable, *, epoch: int, now_s: int) -> Plan:
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
        stream_mechanism=stream.sums(stream.ceiling),
        survey_mechanism=stream.survey(),
    )


@lru_cache(maxsize=16)
def _proved(payload: bytes) -> str:
    """Prove what a device will read from these bytes; return the certificate's digest."""
    from edge_ldp.certify import certify_plan  # noqa: PLC0415 (time: only who issues a plan)

    found = certify_plan(parse_plan(payload))
    if not found.holds:
        raise ParameterError("plan", "mechanisms of which every claim holds (edge-ldp certify)")
    return found.digest
