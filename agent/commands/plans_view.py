"""What plans may ask of this home, and what became of those that came: for its people, as JSON too.

From the owner's policy and the journal's log of plans; nothing of it depends on a reading.
"""

from collections.abc import Iterable, Sequence
from math import isqrt
from typing import Any

from agent.commands.ledger_view import counted
from agent.home_time import home_time
from agent.state.plan_log import ACCEPTED, FORGOTTEN, Logged
from edge_ldp.protocol.plan import Plan, Policy, Refusal

_TOLD = ("at_s", "stream", "code", "words", "epoch", "times")
_WORDS = {ACCEPTED: "in force", FORGOTTEN: "forgotten", "soon": "waits"}


def bounds(policy: Policy) -> dict[str, str]:
    """Return what the owner lets plans of a stream ask, in words with numbers."""
    shape, unit = policy.shape, policy.unit
    span = policy.ceiling - policy.low
    least = policy.low - (-span >> shape.theta_halvings)
    error = isqrt(int(shape.least_square(span, policy.ratio)))
    whole = f"surveys of {policy.low:,} to {policy.ceiling:,} {unit}"
    parts = (
        f", halved {counted(shape.survey_halvings, 'time')} at most"
        if shape.survey_halvings
        else ""
    )
    return {
        "plans_may_ask": f"θ from {least:,} to {policy.ceiling:,} {unit}; {whole}{parts}, in "
        f"{shape.survey_buckets:,} buckets and {float(shape.survey_share):.0%} of reports at most",
        "a_sum_report_errs_by": f"{error:,} {unit} at the least, as a measurement of its value",
        "plans_change": f"after {counted(shape.days, 'day')} and "
        f"{counted(shape.reports, 'report')}, θ after {counted(shape.range_days, 'day')}",
    }


def refused_text(refusal: Refusal, plan: Plan, policy: Policy) -> str:
    """Return why a plan is refused; of ε in plain words, too."""
    text = f"refused: {refusal.code}, {refusal.words}"
    if refusal.code != "ratio":
        return text
    asked = max(plan.stream_mechanism.epsilon, plan.survey_mechanism.epsilon)
    return f"{text} (the plan asks ε {asked:.3g}, this home allows {policy.ratio.epsilon:.3g})"


def view(rows: Sequence[Logged], policies: Iterable[Policy]) -> dict[str, Any]:
    """Return bounds and log, ready for JSON, oldest first; times in seconds since 1970."""
    return {
        "v": 1,
        "bounds": {policy.stream: bounds(policy) for policy in policies},
        "plans": [{key: getattr(row, key) for key in _TOLD} for row in rows],
    }


def as_text(facts: dict[str, Any]) -> str:
    """Return `view`'s facts as lines for people."""
    lines = [
        f"{name}: {key.replace('_', ' ')}: {words}"
        for name, bounds in facts["bounds"].items()
        for key, words in bounds.items()
    ]
    lines += ["", *(_line(row) for row in facts["plans"])]
    if not facts["plans"]:
        lines.append("No plan has come yet.")
    return "\n".join(lines) + "\n"


def _line(row: dict[str, Any]) -> str:
    became = _WORDS.get(row["code"], f"refused, {row['code']}")
    epoch = f", epoch {row['epoch']}" if row["epoch"] else ""
    often = f" ({row['times']} times)" if row["times"] > 1 else ""
    when = home_time(row["at_s"], "%Y-%m-%d %H:%M")
    return f"{when}  {row['stream']}{epoch}  {became}: {row['words']}{often}"
