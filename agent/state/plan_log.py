"""The owner's log of plans: when one came, what it asked, why it was taken or not; bounded.

One row for each plan that came into force, the newest KEPT of them, and one for each reason for
which plans of a stream were refused, with how often: so a flood of hostile plans fills no disk and
wears no flash. What the log says of plans in force is also what the least time between them is
counted by. Nothing in it depends on a reading.
"""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import NamedTuple

from edge_ldp.protocol.plan import Plan
from edge_ldp.protocol.plan_bounds import DAY_S, PlanBounds, Refusal
from edge_ldp.protocol.strict_json import dumps

KEPT = 512
QUIET_S = 3600  # a reason that comes again is written again after so long
ACCEPTED = "accepted"
FORGOTTEN = "forgotten"
STAYING = (ACCEPTED, FORGOTTEN)  # what has a row each time


class Logged(NamedTuple):
    """One row: `code` is "accepted", "forgotten" or a refusal's, `words` the numbers in it.

    `at_s`: seconds UTC, when it last happened; `theta`: None for a refusal or a survey alone;
    `question`: digest of what the plan asks, whatever its epoch; `reports`: made of the stream
    until then; `times`: how often it happened (of a plan in force: 1 and its renewals).
    """

    at_s: int
    stream: str
    code: str
    words: str
    epoch: int = 0
    theta: int | None = None
    question: str = ""
    reports: int = 0
    times: int = 1


def accepted(plan: Plan, *, at_s: int, reports: int) -> Logged:
    """Return the row of a plan that comes into force."""
    survey, (num, den) = plan.survey_mechanism, plan.share
    sums = f"{plan.stream_mechanism.name} up to {plan.theta} {plan.unit}"
    surveys = f"{num / den:.0%} surveys of {survey.low} to {survey.high} {plan.unit}"
    words = surveys if num == den else f"{sums}, {surveys}"
    theta = None if num == den else plan.theta
    return Logged(at_s, plan.stream, ACCEPTED, words, plan.epoch, theta, _question(plan), reports)


def too_soon(row: Logged, rows: Sequence[Logged], shape: PlanBounds) -> Refusal | None:
    """Return why a plan cannot come into force yet; `rows`: the stream's, oldest first.

    The same question under a new epoch never waits. A clock that was set back grants the days: it
    is the reports that cannot be made up.
    """
    before = [one for one in rows if one.code == ACCEPTED]
    if not before or before[-1].question == row.question:
        return None
    made, days = row.reports - before[-1].reports, _days(before[-1].at_s, row.at_s)
    if days < shape.days:
        return Refusal("soon", f"the plan is in force for {days:.1f} days: at least {shape.days}")
    if made < shape.reports:
        return Refusal("soon", f"reports under the plan: {made}, at least {shape.reports}")
    since = _theta_since(before, row.theta)
    if since is not None and _days(since, row.at_s) < shape.range_days:
        held = f"θ is in force for {_days(since, row.at_s):.1f} days"
        return Refusal("soon", f"{held}: at least {shape.range_days}")
    return None


def _theta_since(before: Iterable[Logged], theta: int | None) -> int | None:
    """Return since when another θ than this one is in force; None when there is no other."""
    last: Logged | None = None
    for one in before:
        if one.theta is not None and (last is None or last.theta != one.theta):
            last = one
    return None if last is None or theta is None or last.theta == theta else last.at_s


def _days(since_s: int, now_s: int) -> float:
    return (now_s - since_s) / DAY_S if since_s <= now_s else float("inf")


def _question(plan: Plan) -> str:
    fields = (plan.share, plan.stream_mechanism.to_plan(), plan.survey_mechanism.to_plan())
    return sha256(dumps({"question": fields})).hexdigest()[:16]
