"""What `plan show | propose | publish` tell: a plan, and why it is what it is."""

from __future__ import annotations

from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, Any

from aggregator.answers.trust_view import revision_view
from aggregator.answers.units import clock_text
from aggregator.answers.views import theta_view

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aggregator.plans.revision import Revision
    from edge_ldp.protocol.plan import Plan


def plan_view(plan: Plan, revision: Revision | None) -> dict[str, Any]:
    """Return a plan as `plan show` prints it."""
    (terms,) = theta_view({plan.epoch: plan}, [] if revision is None else [revision])
    return {
        **terms,
        "expires_s": plan.expires_s,
        "certificate": plan.certificate,
        "store": plan.store,
        "stream_mechanism": plan.stream_mechanism.to_plan()["mechanism"],
        "survey_mechanism": plan.survey_mechanism.to_plan()["mechanism"],
    }


def standing_view(
    stream: str, plan: Plan | None, revision: Revision | None, held_s: int | None
) -> dict[str, Any]:
    """Return the JSON of `plan show`.

    stream, unit; plan in force (as each of `theta`, and expires_s, certificate: the digest of what
    was proved of it, store: whose it is, or null, stream_mechanism, survey_mechanism; or null);
    look: the last revision of θ, with reasons[] (as of `status`; or null); held_s: since when an
    operator holds the plan, or null.
    """
    return {
        "stream": stream,
        "unit": None if plan is None else plan.unit,
        "plan": None if plan is None else plan_view(plan, revision),
        "look": None if revision is None else revision_view(revision),
        "held_s": held_s,
    }


def proposal_view(
    stream: str, plan: Plan, found: tuple[Revision, Plan | None] | None, reports: int
) -> dict[str, Any]:
    """Return the JSON of `plan propose`.

    stream, unit; plan in force and proposed (as of `plan show`; null: the plan would stay), look:
    the revision that leads to it (null: too few surveys yet), reports it would go by; held_s: as of
    `plan show`.
    """
    revision, following = found or (None, None)
    return {
        "stream": stream,
        "unit": plan.unit,
        "plan": plan_view(plan, revision),
        "proposed": None if following is None else plan_view(following, revision),
        "look": None if revision is None else revision_view(revision),
        "reports": reports,
    }


def standing_text(view: Mapping[str, Any], zone: tzinfo = UTC) -> str:
    """Return `plan show` as people read it."""
    if view["plan"] is None:
        return f"{view['stream']}: no plan yet\n"
    lines = [f"{view['stream']}: {_terms(view['plan'], view['unit'])}"]
    lines += [f"  {line}" for line in _details(view["plan"], view["unit"], zone)]
    lines += [*_hold(view, zone), *_why(view["look"], zone)]
    return "\n".join(lines) + "\n"


def proposal_text(view: Mapping[str, Any], zone: tzinfo = UTC) -> str:
    """Return `plan propose` as people read it."""
    lines = [
        f"{view['stream']}: {_terms(view['plan'], view['unit'])} is in force",
        *_hold(view, zone),
    ]
    if view["look"] is None:
        lines.append(
            f"  the plan would stay: too few survey reports yet ({view['reports']} in all)"
        )
    elif view["proposed"] is None:
        lines.append("  the plan would stay")
    else:
        lines.append(f"  would follow: {_terms(view['proposed'], view['unit'])}")
        lines += [f"    {line}" for line in _details(view["proposed"], view["unit"], zone)]
    lines += _why(view["look"], zone)
    return "\n".join([*lines, "nothing was changed", ""])


def _hold(view: Mapping[str, Any], zone: tzinfo) -> list[str]:
    if view["held_s"] is None:
        return []
    return [f"  held by an operator since {clock_text(view['held_s'], zone)} {zone}"]


def _terms(plan: Mapping[str, Any], unit: str) -> str:
    survey = f"{plan['survey_share']:.4f} of the slots survey"
    where = f"{plan['survey_low']} to {plan['survey_high']}"
    return f"epoch {plan['epoch']}, θ = {plan['theta']} {unit}, {survey} {where}"


def _details(plan: Mapping[str, Any], unit: str, zone: tzinfo) -> list[str]:
    issued, expires = clock_text(plan["issued_s"], zone), clock_text(plan["expires_s"], zone)
    mechanisms = f"{plan['stream_mechanism']} and {plan['survey_mechanism']}"
    shift = f"1 % of liars move a mean by at most {plan['shift_per_percent']:,.1f} {unit}"
    return [
        f"issued {issued} {zone}, expires {expires} {zone}",
        f"{mechanisms}, certificate {plan['certificate']}, of store {plan['store'] or '-'}",
        shift,
    ]


def _why(revision: Mapping[str, Any] | None, zone: tzinfo) -> list[str]:
    if revision is None:
        return []
    reports = f"{revision['stream_reports']} stream and {revision['survey_reports']} survey reports"
    lines = [f"  looked at {clock_text(revision['at_s'], zone)} {zone}, by {reports}:"]
    lines += [
        f"    {row['question']}: ± {row['half_width']:,.4g} expected"
        for row in revision["forecast"]
    ]
    lines += [f"    {reason}" for reason in revision["reasons"]]
    lines += [f"    warning: {text}" for one in revision["alarms"] for text in one["warnings"]]
    return lines
