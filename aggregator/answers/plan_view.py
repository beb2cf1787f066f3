"""What is told of plans, and why each is what it is: `theta`, `plan show | propose | publish`."""

from collections.abc import Iterable, Mapping
from datetime import UTC, tzinfo

from aggregator.answers.parts import AnswerPart, InUnit, Reports, Seconds, Share
from aggregator.answers.units import clock_text, text_table
from aggregator.config import StreamTable
from aggregator.plans.epsilons import EpsilonChange
from aggregator.plans.revision import Revision
from edge_ldp.poisoning.alarm import largest_shift
from edge_ldp.protocol.plan import Plan


class HalfWidth(AnswerPart, frozen=True, kw_only=True):
    """What is expected of an interval of 95 %: question, half_width."""

    question: str
    half_width: InUnit


class PlanTerms(AnswerPart, frozen=True, kw_only=True):
    """A plan's terms.

    epoch, theta, issued_s, survey_share: of the slots; survey_low, survey_high (unit); forecast[]:
    question, half_width expected of its 95 % interval (unit), by the last revision that led to this
    plan or let it stay, and its reasons[] in words; null where none did. Against lying devices:
    influence: how far from the middle between low and θ one report can count at most, in multiples
    of the way from there to θ (4 under θ = 2,000 W and low = 0 W: 4 × 1,000 W = 4,000 W from the
    middle); shift_per_percent: how far each per cent of liars moves a mean at most (unit), which is
    1 % of (influence + 1) × that way.
    """

    epoch: int
    theta: int
    issued_s: Seconds
    survey_share: Share
    survey_low: int
    survey_high: int
    influence: float
    shift_per_percent: InUnit
    forecast: list[HalfWidth] | None
    reasons: list[str] | None


class ThetaAnswer(AnswerPart, frozen=True, kw_only=True):
    """What `theta` answers.

    stream, unit; theta[], one for each plan, the oldest first.
    """

    stream: str
    unit: str
    theta: list[PlanTerms]


class LookAlarm(AnswerPart, frozen=True, kw_only=True):
    """What a revision left out: kind, low, high, reports, share left out, warnings[] in words."""

    kind: str
    low: int
    high: int
    reports: Reports
    share: Share
    warnings: list[str]


class Look(AnswerPart, frozen=True, kw_only=True):
    """The last revision of a stream's θ.

    at_s; theta, survey [low, high] (unit), survey_share (null: by an older version);
    stream_reports and survey_reports it went by; forecast[]: question, half_width expected of its
    95 % interval (unit) under the plan; least: the narrowest there is for the stream's horizon, or
    null; reasons[] in words; alarms[]: kind, low, high, reports, share left out, warnings[].
    """

    at_s: Seconds
    theta: int
    survey: list[int]
    survey_share: Share | None
    stream_reports: Reports
    survey_reports: Reports
    forecast: list[HalfWidth]
    least: InUnit | None
    reasons: list[str]
    alarms: list[LookAlarm]


class WholePlan(PlanTerms, frozen=True, kw_only=True):
    """A plan and what was proved of it.

    expires_s; certificate: the digest of what was proved of it; store: whose it
    is; stream_mechanism, survey_mechanism; null where nothing is told.
    """

    expires_s: Seconds
    certificate: str | None
    store: str | None
    stream_mechanism: str
    survey_mechanism: str


class EpsilonStep(AnswerPart, frozen=True, kw_only=True):
    """A plan that asks for another ε of a report than the one before it.

    epoch; at_s: when it was issued; before, after: ε, to three figures.
    """

    epoch: int
    at_s: Seconds
    before: float
    after: float


class StandingPlan(AnswerPart, frozen=True, kw_only=True):
    """What `plan show` answers.

    stream, unit; plan in force, or null; look: the last revision of θ, or null; held_s: since when
    an operator holds the plan, or null; epsilon_changes[], the oldest first.
    """

    stream: str
    unit: str | None
    plan: WholePlan | None
    look: Look | None
    held_s: Seconds | None
    epsilon_changes: list[EpsilonStep]


class OrderedPlan(StandingPlan, frozen=True, kw_only=True):
    """What `plan publish` and `plan repair` answer.

    plan: the one that was ordered or issued; look: null; epsilon_changes: empty.
    """


class ProposedPlan(AnswerPart, frozen=True, kw_only=True):
    """What `plan propose` answers.

    stream, unit; plan in force and proposed (null: the plan would stay), look: the revision that
    leads to it (null: too few surveys yet), reports it would go by; held_s: since when an operator
    holds the plan, or null.
    """

    stream: str
    unit: str
    plan: WholePlan
    proposed: WholePlan | None
    look: Look | None
    reports: Reports
    held_s: Seconds | None


class HeldPlan(AnswerPart, frozen=True, kw_only=True):
    """What `plan hold` and `plan release` answer.

    stream; held: whether the planner keeps the plan; changed: whether it was otherwise before.
    """

    stream: str
    held: bool
    changed: bool


def plan_terms(plans: Mapping[int, Plan], revisions: Iterable[Revision] = ()) -> list[PlanTerms]:
    """Return what is told of plans, the oldest first; `revisions`: oldest first."""
    last = {revision.epoch: revision for revision in revisions}
    return [_terms(plan, last.get(epoch)) for epoch, plan in sorted(plans.items())]


def theta_answer(
    stream: StreamTable, plans: Mapping[int, Plan], revisions: Iterable[Revision] = ()
) -> ThetaAnswer:
    """Return what `theta` answers."""
    return ThetaAnswer(stream=stream.name, unit=stream.unit, theta=plan_terms(plans, revisions))


def look_of(revision: Revision) -> Look:
    """Return what is told of a revision."""
    return Look.of(
        revision,
        survey_share=revision.share,
        stream_reports=revision.reports[0],
        survey_reports=revision.reports[1],
        forecast=_forecast(revision),
        alarms=[LookAlarm.of(found) for found in revision.screen if found.rings],
    )


def whole_plan(plan: Plan, revision: Revision | None) -> WholePlan:
    """Return a plan as `plan show` has it."""
    terms = _terms(plan, revision if revision and revision.epoch == plan.epoch else None)
    return WholePlan.of(
        plan,
        terms,
        stream_mechanism=str(plan.stream_mechanism.to_plan()["mechanism"]),
        survey_mechanism=str(plan.survey_mechanism.to_plan()["mechanism"]),
    )


def standing_plan(
    stream: str,
    plan: Plan | None,
    revision: Revision | None,
    held_s: int | None,
    changes: Iterable[EpsilonChange] = (),
) -> StandingPlan:
    """Return what `plan show` answers."""
    return StandingPlan(
        stream=stream,
        unit=None if plan is None else plan.unit,
        plan=None if plan is None else whole_plan(plan, revision),
        look=None if revision is None else look_of(revision),
        held_s=held_s,
        epsilon_changes=epsilon_steps(changes),
    )


def epsilon_steps(changes: Iterable[EpsilonChange]) -> list[EpsilonStep]:
    """Return what is told of changes of ε."""
    return list(map(EpsilonStep.of, changes))


def epsilon_texts(steps: Iterable[EpsilonStep], zone: tzinfo = UTC) -> list[str]:
    """Return each change in words."""
    return [
        f"ε of a report {one.before:g} → {one.after:g} since plan {one.epoch},"
        f" {clock_text(one.at_s, zone)} {zone}"
        for one in steps
    ]


def proposed_plan(
    stream: str,
    plan: Plan,
    found: tuple[Revision, Plan | None] | None,
    reports: int,
    held_s: int | None,
) -> ProposedPlan:
    """Return what `plan propose` answers."""
    revision, following = found or (None, None)
    return ProposedPlan(
        stream=stream,
        unit=plan.unit,
        plan=whole_plan(plan, revision),
        proposed=None if following is None else whole_plan(following, revision),
        look=None if revision is None else look_of(revision),
        reports=reports,
        held_s=held_s,
    )


def theta_text(unit: str, rows: Iterable[PlanTerms], zone: tzinfo = UTC) -> str:
    """Return the plans as a table."""
    head = ["epoch", f"θ {unit}", f"issued {zone}", "survey share", f"survey {unit}"]
    head.append(f"1 % liars {unit}")
    cells = (
        [
            row.epoch,
            row.theta,
            clock_text(row.issued_s, zone),
            f"{row.survey_share:.4f}",
            f"{row.survey_low} to {row.survey_high}",
            f"{row.shift_per_percent:,.1f}",
        ]
        for row in rows
    )
    return text_table(head, cells) + "\n"


def standing_text(view: StandingPlan, zone: tzinfo = UTC) -> str:
    """Return `plan show` as people read it; nothing where there is no plan."""
    if view.plan is None:
        return ""
    lines = [f"{view.stream}: {_terms_text(view.plan, view.unit)}"]
    lines += [f"  {line}" for line in _details(view.plan, view.unit, zone)]
    lines += [f"  {text}" for text in epsilon_texts(view.epsilon_changes, zone)]
    lines += [*_hold(view.held_s, zone), *_why(view.look, zone)]
    return "\n".join(lines) + "\n"


def proposal_text(view: ProposedPlan, zone: tzinfo = UTC) -> str:
    """Return `plan propose` as people read it."""
    lines = [
        f"{view.stream}: {_terms_text(view.plan, view.unit)} is in force",
        *_hold(view.held_s, zone),
    ]
    if view.look is None:
        lines.append(f"  the plan would stay: too few survey reports yet ({view.reports} in all)")
    elif view.proposed is None:
        lines.append("  the plan would stay")
    else:
        lines.append(f"  would follow: {_terms_text(view.proposed, view.unit)}")
        lines += [f"    {line}" for line in _details(view.proposed, view.unit, zone)]
    lines += _why(view.look, zone)
    return "\n".join([*lines, "nothing was changed", ""])


def _terms(plan: Plan, revision: Revision | None) -> PlanTerms:
    return PlanTerms.of(
        plan,
        survey_share=plan.share[0] / plan.share[1],
        survey_low=plan.survey_mechanism.low,
        survey_high=plan.survey_mechanism.high,
        influence=plan.stream_mechanism.influence,
        shift_per_percent=largest_shift(plan.stream_mechanism, 0.01),
        forecast=None if revision is None else _forecast(revision),
        reasons=None if revision is None else list(revision.reasons),
    )


def _forecast(revision: Revision) -> list[HalfWidth]:
    return [HalfWidth(question=name, half_width=half) for name, half in revision.forecast]


def _hold(held_s: int | None, zone: tzinfo) -> list[str]:
    if held_s is None:
        return []
    return [f"  held by an operator since {clock_text(held_s, zone)} {zone}"]


def _terms_text(plan: PlanTerms, unit: str | None) -> str:
    survey = f"{plan.survey_share:.4f} of the slots survey"
    where = f"{plan.survey_low} to {plan.survey_high}"
    return f"epoch {plan.epoch}, θ = {plan.theta} {unit}, {survey} {where}"


def _details(plan: WholePlan, unit: str | None, zone: tzinfo) -> list[str]:
    issued, expires = clock_text(plan.issued_s, zone), clock_text(plan.expires_s, zone)
    mechanisms = f"{plan.stream_mechanism} and {plan.survey_mechanism}"
    shift = f"1 % of liars move a mean by at most {plan.shift_per_percent:,.1f} {unit}"
    return [
        f"issued {issued} {zone}, expires {expires} {zone}",
        f"{mechanisms}, certificate {plan.certificate}, of store {plan.store or '-'}",
        shift,
    ]


def _why(look: Look | None, zone: tzinfo) -> list[str]:
    if look is None:
        return []
    reports = f"{look.stream_reports} stream and {look.survey_reports} survey reports"
    lines = [f"  looked at {clock_text(look.at_s, zone)} {zone}, by {reports}:"]
    lines += [f"    {row.question}: ± {row.half_width:,.4g} expected" for row in look.forecast]
    lines += [f"    {reason}" for reason in look.reasons]
    lines += [f"    warning: {text}" for one in look.alarms for text in one.warnings]
    return lines
