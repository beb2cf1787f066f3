"""`edge-ldp aggregator plan …`: the plans of a stream, shown, proposed, ordered and held.

What is ordered or held goes into the store; the running service takes it from there. Where a person
can answer, an unlikely θ has to be confirmed, and so has a plan that devices refuse by default; the
log of changes has the answer. Where nobody can, such a plan is published with a warning.
"""

import argparse
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import tzinfo
from fractions import Fraction

from aggregator.answers.lookup import read_last_revision, read_plans
from aggregator.answers.plan_view import (
    HeldPlan,
    OrderedPlan,
    ProposedPlan,
    StandingPlan,
    proposal_text,
    proposed_plan,
    standing_plan,
    standing_text,
)
from aggregator.answers.units import clock_text
from aggregator.commands.asking import STREAM, ZONE, Asked, Commands, Shown, option
from aggregator.commands.common import EXIT_CONFIG, EXIT_NOTHING, order
from aggregator.config import ConfigError, StreamTable
from aggregator.config.streams import SHARE_DEN
from aggregator.counting.tally import exact_sum
from aggregator.errors import FencedError, NothingError
from aggregator.plans import planner
from aggregator.plans.cache import read_recent_counts
from aggregator.plans.epsilons import epsilon_changes
from aggregator.plans.revision import revise
from aggregator.store.administration.registry import forget_plans, hold_plan, release_plan
from aggregator.store.contract import IDENTITY, PlanRow, Session
from edge_ldp.arguments import taken_as
from edge_ldp.device.errors import ParameterError
from edge_ldp.protocol.plan import Plan, last_epoch
from edge_ldp.protocol.plan_bounds import PlanBounds

MOST_HALVINGS = 40  # as [[streams]] takes them


def show(asked: Asked) -> Shown:
    """Show the plan in force, why it is that one, and what was proved of it."""
    stream, reader, zone = asked.stream, asked.reader, asked.zone
    plans, revision = read_plans(reader, stream), read_last_revision(reader, stream)
    plan = plans[max(plans)] if plans else None
    held_s, changes = reader.plan_holds().get(stream.id), epsilon_changes(plans)
    view = standing_plan(stream.name, plan, revision, held_s, changes)
    told = Shown(view, lambda: standing_text(view, zone))
    return told if plan else told.but(EXIT_NOTHING, f"{stream.name}: {stream.no_plan}")


def propose(asked: Asked) -> Shown:
    """Show what the planner would do with the reports there are now; nothing is written."""
    stream, reader, zone, now_s = asked.stream, asked.reader, asked.zone, asked.now_s
    plans = read_plans(reader, stream)
    if not plans:
        raise NothingError(f"{stream.name}: {stream.no_plan}")
    plan, recent = plans[max(plans)], read_recent_counts(reader, stream=stream, now_s=now_s)
    found = revise(plan, stream, plans, recent, now_s=now_s)
    if found is not None and found[1] is not None:
        found = found[0], planner.proved(found[1])  # as it would be issued
    held_s = reader.plan_holds().get(stream.id)
    view = proposed_plan(stream.name, plan, found, exact_sum(recent.rows.count), held_s)
    following = None if found is None else found[1]
    refused = None if following is None else planner.refused_by_default(stream, following)
    return Shown(
        view, lambda: proposal_text(view, zone), warnings=[f"warning: {refused}"] if refused else []
    )


def publish(asked: Asked, session: Session) -> Shown:
    """Order a plan: θ, the share of survey slots, the survey's range; what is not said stays."""
    stream, zone, plans = asked.stream, asked.zone, _issued(asked)
    plan = plans[max(plans)]
    if stream.id in session.retired():
        raise NothingError(f"{stream.name}: is retired: reinstate it first")
    made = _ordered(asked, plan)
    session.orders = [order(asked.args, asked.config)]  # with what was said when asked back
    same = (plan.share, plan.stream_mechanism, plan.survey_mechanism)
    if same == (made.share, made.stream_mechanism, made.survey_mechanism):
        raise NothingError(f"{stream.name}: the plan in force asks the same")
    if _warned(stream, made) and not _is_answered("publish it all the same?", without=True):
        return Shown().but(EXIT_CONFIG, f"{stream.name}: nothing was published")
    told = _issue(session, stream, made, zone, hold=asked.args.hold)
    _told_when(plans, made, zone)
    return told


def repair(asked: Asked, session: Session) -> Shown:
    """Issue the plan in force anew, above an epoch that devices took from somebody else.

    `--above`: the epoch that `edge-ldp agent plans` shows on such a device, or its status. Plans
    above every epoch that devices believe, as an earlier version stored them, are deleted.
    """
    stream, zone, plans = asked.stream, asked.zone, _issued(asked)
    now_s, above = asked.now_s, asked.args.above
    most = last_epoch(now_s)
    lost = {epoch for epoch in plans if epoch > most}
    if not 0 <= above <= most:
        words = f"expected 0 to {most}, the last epoch that devices believe now; on a device"
        remedy = "above it: `edge-ldp agent plans forget`"
        raise ConfigError("plan repair", "--above", f"{words} {remedy}")
    if lost.intersection(session.totals(stream.id).epoch.tolist()):
        reason = f"reports were counted under epoch {max(lost)}, which no device believes any more"
        raise NothingError(f"{stream.name}: {reason}: retire it, begin another stream")
    epoch = max(above, *(plans.keys() - lost), 0) + 1
    made = planner.renewed(plans[max(plans)], epoch=epoch, now_s=now_s)
    if _warned(stream, made) and not _is_answered("issue it all the same?", without=True):
        return Shown().but(EXIT_CONFIG, f"{stream.name}: nothing was issued")
    if lost:
        forget_plans(session, stream.id, most)
    return _issue(session, stream, made, zone)


def hold(asked: Asked, session: Session) -> Shown:
    """Keep the plan in force until `plan release`: the planner revises nothing meanwhile."""
    return _held(asked.stream, held=True, changed=hold_plan(session, asked.stream.id, asked.now_s))


def release(asked: Asked, session: Session) -> Shown:
    """Let the planner choose again."""
    return _held(asked.stream, held=False, changed=release_plan(session, asked.stream.id))


def _held(stream: StreamTable, *, held: bool, changed: bool) -> Shown:
    words = "is held" if held else "is the planner's to choose"
    text = f"{stream.name}: the plan {words}{'' if changed else ', as before'}\n"
    return Shown(HeldPlan(stream=stream.name, held=held, changed=changed), lambda: text)


def _issued(asked: Asked) -> dict[int, Plan]:
    """Return the plans of the stream by epoch; raises NothingError where there is none yet."""
    plans = read_plans(asked.reader, asked.stream)
    if not plans:
        raise NothingError(f"{asked.stream.name}: {asked.stream.no_plan}")
    return plans


def _issue(
    session: Session, stream: StreamTable, plan: Plan, zone: tzinfo, *, hold: bool = False
) -> Shown:
    """Put a plan into the store, from where the service takes it; return what is told of it.

    Raises NothingError where somebody else issued one meanwhile.
    """
    made = replace(plan, store=session.facts().get(IDENTITY))
    try:
        session.add_plan(PlanRow(stream.id, made.epoch, made.issued_s, made.to_json()))
    except FencedError as exc:
        raise NothingError(f"{exc}; look at it and order again") from exc
    if hold:
        hold_plan(session, stream.id, made.issued_s)
    view = standing_plan(stream.name, made, None, session.plan_holds().get(stream.id))
    return Shown(view, lambda: standing_text(view, zone))


def _ordered(asked: Asked, plan: Plan) -> Plan:
    """Return the plan that is ordered; raises ConfigError."""
    args, stream, share = asked.args, asked.stream, plan.share
    survey = args.survey or (plan.survey_mechanism.low, plan.survey_mechanism.high)
    if args.share is not None:
        share = (round(args.share * SHARE_DEN), SHARE_DEN)
    elif planner.is_survey_only(plan):
        share = stream.share
    theta = plan.theta if args.theta is None else _meant(args, stream)
    try:
        return planner.ordered(
            plan, stream, theta=theta, survey=survey, share=share, now_s=asked.now_s
        )
    except ParameterError as exc:
        raise ConfigError("plan publish", stream.name, str(exc)) from exc


def _meant(args: argparse.Namespace, stream: StreamTable) -> int:
    """Return θ as ordered, or as the operator at the terminal then says; raises ConfigError."""
    unit, least = stream.unit, stream.least_theta
    try:
        theta = int(args.theta)
    except ValueError as exc:
        whole = f"expected a whole number of {unit}, as {stream.ceiling}, not {args.theta!r}"
        raise ConfigError("arguments", "--theta", whole) from exc
    if least <= theta <= stream.ceiling:
        return theta
    odd = f"{theta} {unit} of {stream.low} to {stream.ceiling} {unit}"
    near = next(
        (one for one in (theta * 1000, theta // 1000) if least <= one <= stream.ceiling), None
    )
    if near is not None:
        odd += f": is θ in another unit? {near} {unit} is --theta {near}"
        if _is_answered(f"θ {odd}\npublish θ = {near} {unit}?", without=False):
            args.argv = [*args.argv, "--theta", str(near)]  # the last one counts
            return near
    expected = f"expected {least} to {stream.ceiling} {unit} (theta_halvings); it is {odd}"
    halvings = _halvings(stream, theta) if theta < least else None
    if halvings is not None:
        expected += f". theta_halvings = {halvings} in [[streams]] forces it, and devices refuse it"
        expected += " unless their owners' [policy.plans] says so, too"
    raise ConfigError("plan publish", f"{stream.name}: theta", expected)


def _warned(stream: StreamTable, plan: Plan) -> bool:
    """Warn of a plan that devices refuse unless their owners allow more; say whether it is one."""
    warning = planner.refused_by_default(stream, plan)
    if warning is None:
        return False
    sys.stderr.write(f"warning: {warning}\n")
    return True


def _told_when(plans: Mapping[int, Plan], made: Plan, zone: tzinfo) -> None:
    """Say from when on devices take a plan that comes sooner than they let one follow another."""
    first_s = planner.taken_from(plans.values(), made)
    if first_s > made.issued_s:
        usual, begin = PlanBounds(), f"{clock_text(first_s, zone)} {zone}"
        sys.stderr.write(
            f"note: by default devices take it from {begin} on: a plan stays for {usual.days} day,"
            f" a θ for {usual.range_days} ([policy.plans])\n"
        )


def _is_answered(question: str, *, without: bool) -> bool:
    """Ask back where a person can answer; say whether by yes. `without`: where nobody is there."""
    if sys.stdin is None or not sys.stdin.isatty():  # None: it was closed
        return without
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _halvings(stream: StreamTable, theta: int) -> int | None:
    """Return the theta_halvings under which a low θ can be asked for; None: there are none."""
    tries = range(stream.theta_halvings, MOST_HALVINGS + 1)
    return next((n for n in tries if replace(stream, theta_halvings=n).least_theta <= theta), None)


def _read_range(text: str) -> tuple[int, int]:
    low, _, high = text.partition(":")
    return int(low), int(high)


_range = taken_as("LOW:HIGH in whole units", _read_range)
_share = taken_as("a share such as 1/16", Fraction)


def add(commands: Commands) -> None:
    """Add the commands' options."""
    below = commands.below(
        "plan", "Show or order the plan of a stream: show, propose, publish, repair, hold, release."
    )
    below.question(show, StandingPlan, STREAM, ZONE)
    below.question(propose, ProposedPlan, STREAM, ZONE)
    ordered = (
        option("--theta", help="in the stream's unit, a whole number"),
        option("--share", type=_share, help="of the slots that survey, as 1/16"),
        option("--survey", type=_range, metavar="LOW:HIGH", help="in the stream's unit"),
        option("--hold", action="store_true", help="and keep it until released"),
    )
    below.order(publish, OrderedPlan, STREAM, ZONE, *ordered)
    above = option("--above", type=int, required=True, metavar="EPOCH")
    below.order(repair, OrderedPlan, STREAM, ZONE, above)
    below.order(hold, HeldPlan, STREAM)
    below.order(release, HeldPlan, STREAM)
