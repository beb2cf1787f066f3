"""What is promised of a stream, as figures: each is computed here, from the plan's own integers."""

from __future__ import annotations

from functools import lru_cache
from math import log
from typing import TYPE_CHECKING, Any

from aggregator.counting.retention import DAY_S
from edge_ldp.certify.text import verdict_view
from edge_ldp.certify.verdict import judge_plan
from edge_ldp.poisoning.alarm import largest_shift
from edge_ldp.protocol.ledger import scheduled
from edge_ldp.ratio import exact_epsilon
from edge_ldp.sums.forecast import SHIPPED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aggregator.config import StreamTable
    from edge_ldp.protocol.plan import Plan

YEAR = 365
# load; days; error of who chooses every plan, and of who reads an honest one (root mean square, W):
# docs/results/prying.md, which `python -m studies.prying.figures` makes for ε 1, 8 reports a day
ATTACKED = (
    ("never changes", 1, 600.5, 657.8),
    ("never changes", 30, 60.0, 91.1),
    ("never changes", 365, 20.5, 20.6),
    ("never changes", 1095, 10.2, 11.7),
    ("varies by 150 W", 365, 22.7, 33.7),
    ("and moves 20 W a day", 365, 100.2, 94.4),
)
ATTACKED_CEILING, ATTACKED_A_DAY = 43_470, 8


def epsilon_view(stream: StreamTable) -> dict[str, Any]:
    """Return ε as configured, over time: of a report; a window, a day and a year of the default.

    slots_a_day; default_window: reports, slots, period; every_slot: ε of a day in which every slot
    reports, the most that an owner may allow. What a device's owner allows in truth stands in his
    policy.
    """
    epsilon = float(exact_epsilon(stream.epsilon))
    slots = DAY_S / stream.slot_seconds
    window = scheduled(SHIPPED.reports, SHIPPED.slots, 1, stream.slot_seconds)
    a_day = epsilon * window.reports_in(1) * slots
    return {
        "report": epsilon,
        "slots_a_day": slots,
        "default_window": {
            "reports": window.reports,
            "slots": window.slots,
            "period": window.period,
        },
        "window": epsilon * window.reports,
        "day": a_day,
        "year": a_day * YEAR,
        "every_slot": epsilon * slots,
    }


def promise_view(plan: Plan, payload: bytes) -> dict[str, Any]:
    """Return what is proved of a plan, and what one report can do and tell.

    holds; digest; ratio: the largest of two odds, exactly ("num/den"), epsilon: its logarithm;
    guess: how often the best attacker at most says right which of two values, equally likely
    before, a report came from; failed[]: claim, reason; mechanisms; codes;
    influence: how far from the middle between low and θ one report can count at most, in multiples
    of the way from there to θ; shift_per_percent: how far each per cent of liars moves a mean at
    most (unit).
    """
    proof = _proved(payload)
    ratio = max(plan.stream_mechanism.max_ratio, plan.survey_mechanism.max_ratio)
    return {
        "holds": proof["holds"],
        "digest": proof["digest"],
        "ratio": f"{ratio.numerator}/{ratio.denominator}",
        "epsilon": log(ratio),
        "guess": float(ratio / (1 + ratio)),
        "failed": proof["failed"],
        "mechanisms": [
            plan.stream_mechanism.to_plan()["mechanism"],
            plan.survey_mechanism.to_plan()["mechanism"],
        ],
        "codes": plan.stream_mechanism.code_count + plan.survey_mechanism.code_count,
        "influence": plan.stream_mechanism.influence,
        "shift_per_percent": largest_shift(plan.stream_mechanism, 0.01),
    }


def attacker_view(streams: Iterable[StreamTable]) -> dict[str, Any]:
    """Return what the best attacker found learns who chooses every plan that a policy admits.

    epsilon, ceiling, reports_a_day: what it was measured for; errors[]: load, days, reports,
    error_w, honest_w (root mean squares); unlike[]: streams that are of another ε, unit or range.
    """
    return {
        "epsilon": 1,
        "ceiling": ATTACKED_CEILING,
        "reports_a_day": ATTACKED_A_DAY,
        "errors": [
            {
                "load": load,
                "days": days,
                "reports": days * ATTACKED_A_DAY,
                "error_w": error,
                "honest_w": honest,
            }
            for load, days, error, honest in ATTACKED
        ],
        "unlike": [
            stream.name
            for stream in streams
            if (stream.epsilon, stream.unit, stream.low, stream.ceiling)
            != (1, "W", 0, ATTACKED_CEILING)
        ],
    }


@lru_cache(maxsize=64)
def _proved(payload: bytes) -> dict[str, Any]:
    """Return the JSON of `certify --plan`: it takes a second, and a plan never changes."""
    return verdict_view(judge_plan(payload))
