"""One revision of a stream's θ: reports screened against poisoning, then θ and share by them.

It goes by the reports of the last `horizon_days`, so what a home was like before that is forgotten.
Pure, and a function of its arguments alone: the draws that it needs are seeded by the counts, so
the same counts give the same revision and the same plan. Sources: docs/design.md, The threshold,
The aggregator, docs/methods.md, Densities, Poisoned reports.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aggregator.config import StreamTable
from aggregator.counting.classes import Weights, effect_of, effective, unweighted
from aggregator.counting.tally import CountRows, exact_sum, merge_epochs
from aggregator.plans import planner
from aggregator.plans.screen import Screened, screened, seeded
from edge_ldp import Mechanism
from edge_ldp.errors import CountsError, NoReportsError
from edge_ldp.estimate import ems
from edge_ldp.protocol.plan import Plan, is_survey
from edge_ldp.sums import Question
from edge_ldp.sums.forecast import SHARES
from edge_ldp.sums.text import effect_text
from edge_ldp.threshold.choice import Aim, Choice, Outlook, outlook

Kept = dict[Mechanism, NDArray[np.float64]]

SHARE_DEN = 1 << 16
DAY_S = 86_400
FAR = 6  # times what both halves show of values: then a ceiling is worth a word


@dataclass(frozen=True, slots=True)
class Revision:
    """What a revision found and decided; stored with the plan, so that a restart goes on from it.

    `at_s`: when; `epoch`: of the plan that followed, or stayed; `theta`, `survey` (low, high) in
    the stream's unit, `share` of surveys (None: by an older version). `reports`: stream and survey
    reports that it went by; `screen`: what was taken out of them before. `forecast`: (question,
    expected half-width of its 95 % interval, unit) under that plan; `least`: the narrowest there is
    for the stream's horizon.
    """

    at_s: int
    epoch: int
    theta: int
    survey: tuple[int, int]
    reports: tuple[int, int]
    reasons: tuple[str, ...]
    share: float | None = None
    forecast: tuple[tuple[str, float], ...] = ()
    least: float | None = None
    screen: tuple[Screened, ...] = ()

    def to_json(self) -> bytes:
        """Return the revision as it is stored."""
        return json.dumps(asdict(self), ensure_ascii=False).encode()


def read_revision(payload: bytes) -> Revision:
    """Return a stored revision, also one of an older version; CountsError for anything else."""
    try:
        stored: dict[str, Any] = json.loads(payload)
        screen = tuple(Screened.of(found) for found in stored.pop("screen"))
        known = {field.name for field in fields(Revision)}
        kept = {name: value for name, value in stored.items() if name in known}
        lists = {name: tuple(value) for name, value in kept.items() if isinstance(value, list)}
        forecast = tuple((str(name), float(half)) for name, half in kept.get("forecast", ()))
        return Revision(**{**kept, **lists, "screen": screen, "forecast": forecast})
    except (ValueError, TypeError, KeyError, AttributeError) as exc:
        raise CountsError("a stored revision does not parse") from exc


class RecentCounts(NamedTuple):
    """Counts of a stream in the last `horizon_days`, how long there were any, seconds, weights."""

    rows: CountRows
    spanned_s: int
    weights: Weights = unweighted()


def revise(
    plan: Plan, stream: StreamTable, plans: Mapping[int, Plan], recent: RecentCounts, *, now_s: int
) -> tuple[Revision, Plan | None] | None:
    """Return the revision and the plan to follow `plan` (None: keep it); None: too few surveys yet.

    Whoever issues that plan proves it (`planner.proved`). Cost: some 0.5 s. Raises CountsError,
    ArgumentError.
    """
    weighed = merge_epochs(plans, recent.rows, recent.weights)
    merged = {mechanism: powers[0] for mechanism, powers in weighed.items()}
    surveys = sum(exact_sum(n) for m, n in merged.items() if is_survey(m))
    if surveys < stream.min_survey_reports:
        return None
    everything = sum(exact_sum(n) for n in merged.values())
    looked = {mechanism: screened(mechanism, powers[0]) for mechanism, powers in weighed.items()}
    kept = {
        mechanism: effective(weighed[mechanism]) * keep for mechanism, (keep, _) in looked.items()
    }
    screen = tuple(found for _, found in looked.values() if found is not None)
    begun = Revision(
        at_s=now_s,
        epoch=plan.epoch,
        theta=plan.theta,
        survey=(plan.survey_mechanism.low, plan.survey_mechanism.high),
        share=plan.share[0] / plan.share[1],
        reports=(everything - surveys, surveys),
        reasons=tuple(str(found) for found in screen if found.rings),
        screen=screen,
    )
    rate = everything / max(1, recent.spanned_s)
    effect = effect_of(recent.rows.whose, recent.rows.count)
    task = _Task(plan, stream, kept, stream.question(rate), rate, effect)
    if stream.share[0] == stream.share[1]:
        return replace(begun, reasons=(*begun.reasons, "configured to survey for ever")), None
    try:
        return (_published if stream.theta == "published" else _adaptive)(begun, task)
    except NoReportsError:  # the screen took all of them out, or there is one of each kind
        return _ended(begun, plan, None, "no estimate: too few reports are left"), None


class _Task(NamedTuple):
    plan: Plan
    stream: StreamTable
    kept: Kept
    question: Question
    rate: float
    effect: float  # of the schedules that devices told of


def _published(begun: Revision, task: _Task) -> tuple[Revision, Plan | None]:
    """By the papers' rule: EMS and pruning, from the surveys of the plan's own mechanism."""
    mechanism = task.plan.survey_mechanism
    density = ems(mechanism, task.kept.get(mechanism, np.zeros(mechanism.code_count)))
    following = planner.next_plan(
        task.plan, task.stream, density, values=round(task.question.reports), now_s=begun.at_s
    )
    reason = "published rule: EMS of all surveys, pruned above the mode"
    return _ended(begun, task.plan, following, reason), following


def _adaptive(begun: Revision, task: _Task) -> tuple[Revision, Plan | None]:
    """By the forecast of the interval that will be printed: see edge_ldp.threshold.choice."""
    plan, stream = task.plan, task.stream
    aim = Aim(
        low=stream.low,
        ceiling=stream.ceiling,
        unit_variance=stream.sums(stream.ceiling).unit_variance,
        survey=stream.survey(),
        question=task.question,
        lowest=stream.least_theta,
        shares=SHARES if stream.survey_share is None else (stream.share[0] / stream.share[1],),
        effect=task.effect,
    )
    seeds = (  # mechanisms and counts
        part
        for mechanism, n in task.kept.items()
        for part in (json.dumps(mechanism.to_plan()).encode(), n.tobytes())
    )
    found = outlook(aim, task.kept, rng=seeded(*seeds))
    best = found.best()
    stays = (
        not planner.is_survey_only(plan)
        and plan.survey_mechanism == aim.survey
        and stream.allows(plan.stream_mechanism)
        and (stream.survey_share is None or plan.share == stream.share)
        and found.keeps(plan.theta, plan.share[0] / plan.share[1], float(stream.hysteresis))
    )
    following = None
    if not stays:
        share = stream.share
        if stream.survey_share is None:
            share = round(best.share * SHARE_DEN), SHARE_DEN
        sums = stream.sums(best.theta)
        following = planner.following(plan, stream, sums, share=share, now_s=begun.at_s)
    ended = _ended(begun, plan, following, *_reasons(task, found, best))
    after = following or plan
    return replace(
        ended,
        forecast=_forecast(task, aim, found, after),
        least=best.least,
    ), following


def _forecast(task: _Task, aim: Aim, found: Outlook, plan: Plan) -> tuple[tuple[str, float], ...]:
    """Return the half-widths to expect under a plan: of the horizon, and of usual questions."""
    theta, share = plan.theta, plan.share[0] / plan.share[1]
    if plan.share[0] == plan.share[1]:
        return ()
    usual = [(task.stream.horizon_text, found.half(theta, share))]
    day = task.rate * DAY_S
    for name, question in (
        ("whole over 28 days", Question(max(1.0, 28 * day))),
        ("hour-of-day over 28 days", Question(max(1.0, 28 * day), 24)),
        ("week over 28 days", Question(max(1.0, 28 * day), 4)),
        ("day over 28 days", Question(max(1.0, 28 * day), 28)),
    ):
        if name != usual[0][0]:
            usual.append((name, found.asked(aim, question, theta, share)))
    return tuple(usual)


def _reasons(task: _Task, found: Outlook, best: Choice) -> tuple[str, ...]:
    """Return why, in words."""
    stream = task.stream
    asked = f"± {best.half:,.4g} {stream.unit} expected for {stream.horizon_text}"
    words = [
        f"θ = {best.theta}, {best.share:.0%} surveys: {asked}, ± {best.least:,.4g} at the least"
    ]
    if task.effect > 1:
        words.append(f"homes' schedule: {effect_text(task.effect)}")
    reach = found.reach()
    if stream.ceiling - stream.low > FAR * (reach - stream.low):
        words.append(
            f"the ceiling, {stream.ceiling} {stream.unit}, lies far above what was reported (about"
            f" {reach}): intervals are wide because of it; a lower one makes them narrower"
        )
    return tuple(words)


def _ended(begun: Revision, plan: Plan, following: Plan | None, *reasons: str) -> Revision:
    after = following or plan
    survey = after.survey_mechanism
    stays = () if following else ("the plan stays",)
    return replace(
        begun,
        epoch=after.epoch,
        theta=after.theta,
        survey=(survey.low, survey.high),
        share=after.share[0] / after.share[1],
        reasons=(*begun.reasons, *reasons, *stays),
    )
