"""What is promised of a stream, as figures: each is computed here, from the plan's own integers."""

from collections.abc import Iterable
from functools import lru_cache
from math import log
from typing import Any

from aggregator.answers.parts import AnswerPart, InUnit, Reports, Share
from aggregator.config import StreamTable
from aggregator.counting.retention import DAY_S
from edge_ldp.certify.text import verdict_view
from edge_ldp.certify.verdict import judge_plan
from edge_ldp.poisoning.alarm import largest_shift
from edge_ldp.protocol.ledger import scheduled
from edge_ldp.protocol.plan import Plan
from edge_ldp.ratio import exact_epsilon
from edge_ldp.sums.forecast import SHIPPED

YEAR = 365
# load; days; error of who chooses every plan, and of who reads an honest one (root mean square, W):
# docs/results/prying.md, which `python -m studies.prying.figures` makes for ε 1, 8 reports a day
ATTACKED = (
    ("never changes", 1, 597.7, 786.6),
    ("never changes", 30, 85.9, 126.3),
    ("never changes", 365, 15.5, 32.3),
    ("never changes", 1095, 9.8, 18.9),
    ("varies by 150 W", 365, 28.8, 39.1),
    ("and moves 20 W a day", 365, 86.3, 153.1),
)
ATTACKED_CEILING, ATTACKED_A_DAY = 43_470, 8


class DefaultWindow(AnswerPart, frozen=True, kw_only=True):
    """How often a device reports unless its owner says otherwise.

    reports in any slots; slots of one period report alike.
    """

    reports: int
    slots: int
    period: int


class EpsilonOverTime(AnswerPart, frozen=True, kw_only=True):
    """ε as configured, over time. What a device's owner allows in truth stands in his policy.

    report: of one; slots_a_day; default_window; window, day, year: of these; every_slot: of a day
    in which every slot reports, the most that an owner may allow.
    """

    report: float
    slots_a_day: float
    default_window: DefaultWindow
    window: float
    day: float
    year: float
    every_slot: float


class FailedClaim(AnswerPart, frozen=True, kw_only=True):
    """A claim of a certificate that was not proved, and why."""

    claim: str
    reason: str


class PlanPromise(AnswerPart, frozen=True, kw_only=True):
    """What is proved of the plan in force, and what one report can do and tell.

    epoch; holds: whether every claim of its certificate was proved anew, failed[] what was not,
    digest of the certificate, mechanisms, codes (how many there are); ratio: how many times
    likelier any code is under one value than under another at most ("num/den"), epsilon its
    logarithm; guess: how often at most one report tells rightly which of two equally likely values
    it came from; influence: how far from the middle between low and θ one report can count at most,
    in multiples of the way from there to θ; shift_per_percent: how far each per cent of lying
    devices moves a mean at most (unit).
    """

    epoch: int
    holds: bool
    digest: str | None
    ratio: str
    epsilon: float
    guess: Share
    failed: list[FailedClaim]
    mechanisms: list[str]
    codes: int
    influence: float
    shift_per_percent: InUnit


class AttackError(AnswerPart, frozen=True, kw_only=True):
    """By how much an attacker errs, root mean square: who chooses plans, and who reads honest ones.

    load, days, reports, error_w, honest_w.
    """

    load: str
    days: int
    reports: Reports
    error_w: float
    honest_w: float


class Attacker(AnswerPart, frozen=True, kw_only=True):
    """What the best attacker found learns who chooses every plan that a policy admits.

    epsilon, ceiling, reports_a_day that it was measured for; errors[]; unlike[]: streams that it
    was not measured for, of another ε, unit or range.
    """

    epsilon: int
    ceiling: int
    reports_a_day: int
    errors: list[AttackError]
    unlike: list[str]


def epsilon_over_time(stream: StreamTable) -> EpsilonOverTime:
    """Return ε of a stream over time."""
    epsilon = float(exact_epsilon(stream.epsilon))
    slots = DAY_S / stream.slot_seconds
    window = scheduled(SHIPPED.reports, SHIPPED.slots, 1, stream.slot_seconds)
    a_day = epsilon * window.reports_in(1) * slots
    return EpsilonOverTime(
        report=epsilon,
        slots_a_day=slots,
        default_window=DefaultWindow.of(window),
        window=epsilon * window.reports,
        day=a_day,
        year=a_day * YEAR,
        every_slot=epsilon * slots,
    )


def plan_promise(plan: Plan, payload: bytes) -> PlanPromise:
    """Return what is proved of a plan; it takes a second the first time."""
    proof = _proved(payload)
    stream, survey = plan.stream_mechanism, plan.survey_mechanism
    ratio = max(stream.max_ratio, survey.max_ratio)
    return PlanPromise(
        epoch=plan.epoch,
        holds=proof["holds"],
        digest=proof["digest"],
        ratio=f"{ratio.numerator}/{ratio.denominator}",
        epsilon=log(ratio),
        guess=float(ratio / (1 + ratio)),
        failed=[FailedClaim(**one) for one in proof["failed"]],
        mechanisms=[str(one.to_plan()["mechanism"]) for one in (stream, survey)],
        codes=stream.code_count + survey.code_count,
        influence=stream.influence,
        shift_per_percent=largest_shift(stream, 0.01),
    )


def attacker(streams: Iterable[StreamTable]) -> Attacker:
    """Return what the best attacker found learns."""
    return Attacker(
        epsilon=1,
        ceiling=ATTACKED_CEILING,
        reports_a_day=ATTACKED_A_DAY,
        errors=[
            AttackError(
                load=load, days=days, reports=days * ATTACKED_A_DAY, error_w=error, honest_w=honest
            )
            for load, days, error, honest in ATTACKED
        ],
        unlike=[
            stream.name
            for stream in streams
            if (stream.epsilon, stream.unit, stream.low, stream.ceiling)
            != (1, "W", 0, ATTACKED_CEILING)
        ],
    )


@lru_cache(maxsize=64)
def _proved(payload: bytes) -> dict[str, Any]:
    """Return the JSON of `certify --plan`: it takes a second, and a plan never changes."""
    return verdict_view(judge_plan(payload))
