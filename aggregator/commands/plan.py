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
from aggregator.commands.asking import Commands, Shown, add_command, add_question
from aggregator.commands.common import (
    EXIT_CONFIG,
    EXIT_NOTHING,
    add_zone,
    changing,
    fail,
    find_stream,
    find_zone,
    make_clock,
    order,
)
from aggregator.config import AggregatorConfig, ConfigError, StreamTable
from aggregator.config.streams import SHARE_DEN
from aggregator.counting.tally import exact_sum
from aggregator.errors import FencedError
from aggregator.plans import planner
from aggregator.plans.cache import read_recent_counts
from aggregator.plans.epsilons import epsilon_changes
from aggregator.plans.revision import revise
from aggregator.store.administration.registry import forget_plans, hold_plan, release_plan
from aggregator.store.contract import IDENTITY, PlanRow, Reader, Session
from edge_ldp.arguments import taken_as
from edge_ldp.device.errors import ParameterError
from edge_ldp.protocol.plan import Plan, last_epoch
from edge_ldp.protocol.plan_bounds import PlanBounds

MOST_HALVINGS = 40  # as [[streams]] takes them


def show(args: argparse.Namespace, config: AggregatorConfig, reader: Reader) -> Shown:
    """Show the plan in force, why it is that one, and what was proved of it."""
    stream, zone = find_stream(args, config), find_zone(args, config)
    plans, revision = read_plans(reader, stream), read_last_revision(reader, stream)
    plan = plans[max(plans)] if plans else None
    held_s, changes = reader.plan_holds().get(stream.id), epsilon_changes(plans)
    view = standing_plan(stream.name, plan, revision, held_s, changes)
    told = Shown(view, lambda: standing_text(view, zone))
    return told if plan else told.but(EXIT_NOTHING, f"{stream.name}: no plan was issued yet")


def propose(args: argparse.Namespace, config: AggregatorConfig, reader: Reader) -> Shown:
    """Show what the planner would do with the reports there are now; nothing is written."""
    stream, zone = find_stream(args, config), find_zone(args, config)
    plans = read_plans(reader, stream)
    if not plans:
        return Shown(None).but(EXIT_NOTHING, f"{stream.name}: no plan was issued yet")
    now_s, plan = int(make_clock(config).now()), plans[max(plans)]
    recent = read_recent_counts(reader, stream=stream, now_s=now_s)
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


def publish(args: argparse.Namespace) -> int:
    """Order a plan: θ, the share of survey slots, the survey's range; what is not said stays."""
    with changing(args) as (config, session):
        stream, zone = find_stream(args, config), find_zone(args, config)
        plans = read_plans(session, stream)
        if not plans:
            return fail(f"{stream.name}: no plan was issued yet: start the service", EXIT_NOTHING)
        plan = plans[max(plans)]
        if stream.id in session.retired():
            return fail(f"{stream.name}: is retired: reinstate it first", EXIT_NOTHING)
        made = _ordered(args, stream, plan, int(make_clock(config).now()))
        session.orders = [order(args, config)]  # with what was said when asked back
        same = (plan.share, plan.stream_mechanism, plan.survey_mechanism)
        if same == (made.share, made.stream_mechanism, made.survey_mechanism):
            return fail(f"{stream.name}: the plan in force asks the same", EXIT_NOTHING)
        if _warned(stream, made) and not _is_answered("publish it all the same?", without=True):
            return fail(f"{stream.name}: nothing was published", EXIT_CONFIG)
        told = _issue(session, stream, made, zone, hold=args.hold)
        if not told.code:
            _told_when(plans, made, zone)
    return told.show(args)


def repair(args: argparse.Namespace) -> int:
    """Issue the plan in force anew, above an epoch that devices took from somebody else.

    `--above`: the epoch that `edge-ldp agent plans` shows on such a device, or its status. Plans
    above every epoch that devices believe, as an earlier version stored them, are deleted.
    """
    with changing(args) as (config, session):
        stream, zone = find_stream(args, config), find_zone(args, config)
        plans, now_s = read_plans(session, stream), int(make_clock(config).now())
        if not plans:
            return fail(f"{stream.name}: no plan was issued yet: start the service", EXIT_NOTHING)
        most = last_epoch(now_s)
        lost = {epoch for epoch in plans if epoch > most}
        if not 0 <= args.above <= most:
            words = f"expected 0 to {most}, the last epoch that devices believe now; on a device"
            remedy = "above it: `edge-ldp agent plans forget`"
            raise ConfigError("plan repair", "--above", f"{words} {remedy}")
        if lost.intersection(session.totals(stream.id).epoch.tolist()):
            reason = (
                f"reports were counted under epoch {max(lost)}, which no device believes any more"
            )
            return fail(f"{stream.name}: {reason}: retire it, begin another stream", EXIT_NOTHING)
        epoch = max(args.above, *(plans.keys() - lost), 0) + 1
        made = planner.renewed(plans[max(plans)], epoch=epoch, now_s=now_s)
        if _warned(stream, made) and not _is_answered("issue it all the same?", without=True):
            return fail(f"{stream.name}: nothing was issued", EXIT_CONFIG)
        if lost:
            forget_plans(session, stream.id, most)
        told = _issue(session, stream, made, zone)
    return told.show(args)


def hold(args: argparse.Namespace) -> int:
    """Keep the plan in force until `plan release`: the planner revises nothing meanwhile."""
    return _held(args, held=True)


def release(args: argparse.Namespace) -> int:
    """Let the planner choose again."""
    return _held(args, held=False)


def _held(args: argparse.Namespace, *, held: bool) -> int:
    with changing(args) as (config, session):
        stream, now_s = find_stream(args, config), int(make_clock(config).now())
        changed = hold_plan(session, stream.id, now_s) if held else release_plan(session, stream.id)
    words = "is held" if held else "is the planner's to choose"
    text = f"{stream.name}: the plan {words}{'' if changed else ', as before'}\n"
    return Shown(HeldPlan(stream=stream.name, held=held, changed=changed), lambda: text).show(args)


def _issue(
    session: Session, stream: StreamTable, plan: Plan, zone: tzinfo, *, hold: bool = False
) -> Shown:
    """Put a plan into the store, from where the service takes it; return what is told of it."""
    made = replace(plan, store=session.facts().get(IDENTITY))
    try:
        session.add_plan(PlanRow(stream.id, made.epoch, made.issued_s, made.to_json()))
    except FencedError as exc:
        return Shown(None).but(EXIT_NOTHING, f"{exc}; look at it and order again")
    if hold:
        hold_plan(session, stream.id, made.issued_s)
    view = standing_plan(stream.name, made, None, session.plan_holds().get(stream.id))
    return Shown(view, lambda: standing_text(view, zone))


def _ordered(args: argparse.Namespace, stream: StreamTable, plan: Plan, now_s: int) -> Plan:
    """Return the plan that is ordered; raises ConfigError."""
    survey = args.survey or (plan.survey_mechanism.low, plan.survey_mechanism.high)
    share = plan.share
    if args.share is not None:
        share = (round(args.share * SHARE_DEN), SHARE_DEN)
    elif planner.is_survey_only(plan):
        share = stream.share
    theta = plan.theta if args.theta is None else _meant(args, stream)
    try:
        return planner.ordered(plan, stream, theta=theta, survey=survey, share=share, now_s=now_s)
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
    parser = commands.add_parser("plan", help="the plan of a stream: show, propose, publish, hold")
    below = parser.add_subparsers(required=True, metavar="COMMAND")
    shown = [
        add_question(below, show, StandingPlan),
        add_question(below, propose, ProposedPlan),
        add_command(below, publish, OrderedPlan),
        add_command(below, repair, OrderedPlan),
    ]
    held = [add_command(below, hold, HeldPlan), add_command(below, release, HeldPlan)]
    for sub in (*shown, *held):
        sub.add_argument("--stream", help="its name; the first one unless given")
    for sub in shown:
        add_zone(sub)
    *_, published, repaired = shown
    repaired.add_argument("--above", type=int, required=True, metavar="EPOCH")
    published.add_argument("--theta", help="in the stream's unit, a whole number")
    published.add_argument("--share", type=_share, help="of the slots that survey, as 1/16")
    whole = "in the stream's unit"
    published.add_argument("--survey", type=_range, metavar="LOW:HIGH", help=whole)
    published.add_argument("--hold", action="store_true", help="and keep it until released")
