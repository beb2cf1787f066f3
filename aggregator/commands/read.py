"""`edge-ldp aggregator check, status, completeness, released, theta, audit …`: they read."""

import argparse
from functools import partial

from msgspec.structs import replace

from aggregator.answers.announcement import (
    AnnouncedAnswer,
    announced_groups,
    announced_text,
    announcements,
)
from aggregator.answers.curated_view import (
    GROUPS,
    ReleasedAnswer,
    read_curated,
    released_csv,
    released_text,
)
from aggregator.answers.fleet.audit import AuditAnswer, audit_text, read_audit
from aggregator.answers.fleet.check_view import CheckAnswer, TriedPart, check_answer, check_text
from aggregator.answers.fleet.completeness import (
    AccountAnswer,
    AccountRow,
    account_answer,
    account_text,
    is_incomplete,
)
from aggregator.answers.fleet.status import read_status
from aggregator.answers.fleet.status_answer import StatusAnswer
from aggregator.answers.fleet.status_text import status_text, worker_text
from aggregator.answers.lookup import read_account, read_plans, read_revisions
from aggregator.answers.plan_view import ThetaAnswer, theta_answer, theta_text
from aggregator.commands import common
from aggregator.commands.asking import Commands, Shown, add_command, add_question
from aggregator.config import AggregatorConfig, AnnounceTable, load_config, read_password
from aggregator.plans.signing import read_seal
from aggregator.store.contract import Reader

EXACT = "each device's own numbers, too: they tell who reported when"


def check(args: argparse.Namespace) -> int:
    """Validate the whole configuration and say what it means; nothing is sent.

    With --live all that it names is tried, also beside a service that runs: store, room, clock,
    broker, login, rights, plans. Exit code 4 says that something fails.
    """
    config = load_config(args.config)
    read_password(config.broker, str(args.config))
    read_seal(config, str(args.config))
    view = check_answer(config)
    if not args.live:
        return Shown(view, lambda: check_text(view)).show(args)
    from aggregator.running.trial import try_service  # noqa: PLC0415 (time: only where it is tried)

    tried = try_service(config, str(args.config), common.make_clock(config))
    whole = replace(view, live=[TriedPart(**one.fact()) for one in tried])
    text = "\n".join([check_text(view), "".join(one.text() for one in tried)])
    Shown(whole, lambda: text).show(args)
    return common.EXIT_STORE if any(one.outcome == "fails" for one in tried) else 0


def status(args: argparse.Namespace, config: AggregatorConfig, reader: Reader) -> Shown:
    """Show how the fleet is: devices, reports by where they are, plans; and how old each is."""
    zone = common.find_zone(args, config)
    now_s = int(common.make_clock(config).now())
    every = args.json and not args.summary
    view = read_status(reader, config, now_s, every=every, exact=args.exact)
    told = Shown(view, lambda: common.clock_note(config) + status_text(view, zone))
    if not args.expect_running:
        return told
    workers = view.service.workers
    if view.service.runs is False:
        return told.but(common.EXIT_IDLE, f"{config.fleet}: no service runs on this store")
    if view.service.is_late:
        return told.but(
            common.EXIT_IDLE, f"{config.fleet}: the service on this store does not answer"
        )
    if trouble := [beat for beat in workers if beat.is_late or beat.is_degraded]:
        reason = "; ".join(worker_text(beat, zone) for beat in trouble)
        return told.but(common.EXIT_TROUBLE, f"{config.fleet}: {reason}")
    return told


def completeness(args: argparse.Namespace, config: AggregatorConfig, reader: Reader) -> Shown:
    """Show where the reports of each device and stream are, and whether all are accounted for."""
    common.find_group(args, reader)
    rows, sums = read_account(reader, config)
    if args.device is not None and all(row.device != args.device for row in rows):
        reason = f"{config.fleet}: nothing is known of device {args.device!r}"
        return Shown(None).but(common.EXIT_NOTHING, reason)
    least = 1 if args.exact else config.query.min_devices
    view = account_answer(config.fleet, rows, sums, partial(_is_asked_for, args), least)
    told = Shown(view, lambda: account_text(view))
    violated = f"not accounted for: {common.names(view.violations)}"
    return told if view.holds else told.but(common.EXIT_VIOLATED, violated)


def released(args: argparse.Namespace, config: AggregatorConfig, reader: Reader) -> Shown:
    """Answer with sums of curated streams (central DP, one device each); `query` has a fleet's."""
    zone = common.find_zone(args, config)
    view = read_curated(
        reader,
        device=args.device,
        stream=args.stream,
        since_s=args.since,
        until_s=args.until,
        by=args.by,
        zone=zone,
    )
    wrong = [f"{one.device} {one.stream}: {one.error}" for one in view.released if one.error]
    told = Shown(view, lambda: released_text(view, zone), lambda: released_csv(view), wrong)
    if not view.released:
        return told.but(
            common.EXIT_NOTHING, f"{config.fleet}: no curated stream that this asks for"
        )
    if not any(one.sums or one.error for one in view.released):
        return told.but(common.EXIT_NOTHING, f"{config.fleet}: nothing released in this range")
    return told


def theta(args: argparse.Namespace, config: AggregatorConfig, reader: Reader) -> Shown:
    """Show every plan of a stream: epoch, θ, when it was issued, share of survey slots."""
    stream, zone = common.find_stream(args, config), common.find_zone(args, config)
    view = theta_answer(stream, read_plans(reader, stream), read_revisions(reader, stream))
    told = Shown(view, lambda: theta_text(stream.unit, view.theta, zone))
    return (
        told
        if view.theta
        else told.but(common.EXIT_NOTHING, f"{stream.name}: no plan was issued yet")
    )


def audit(args: argparse.Namespace, config: AggregatorConfig, reader: Reader) -> Shown:
    """Show what operators changed: when, who, by which command."""
    view = read_audit(reader, config.fleet, args.since or 0)
    zone, note = common.find_zone(args, config), common.clock_note(config)
    return Shown(view, lambda: note + audit_text(view, zone))


def announced(args: argparse.Namespace, config: AggregatorConfig, reader: Reader) -> Shown:
    """Show what [announce] publishes at this moment; nothing is sent."""
    table, now_s = config.announce or AnnounceTable(), int(common.make_clock(config).now())
    if args.groups:
        view = announced_groups(reader, config, now_s)
    else:
        view = announcements(reader, config, table, now_s)
    warnings = []
    if config.announce is None or (args.groups and not table.groups):
        missing = "groups = true in [announce]" if args.groups else "[announce]"
        warnings = [f"nothing is published: {missing} is not there; this is what it would be"]
    return Shown(view, lambda: announced_text(view), warnings=warnings)


def _is_asked_for(args: argparse.Namespace, row: AccountRow) -> bool:
    return (
        args.device in (None, row.device)
        and args.group in (None, row.group)
        and (is_incomplete(row) or not args.incomplete)
    )


def add(commands: Commands) -> None:
    """Add the commands' options."""
    parser = add_command(commands, check, CheckAnswer)
    live = "also try store, broker, rights, plans and clock; disturbs no service, changes nothing"
    parser.add_argument("--live", action="store_true", help=live)
    parser = add_question(commands, status, StatusAnswer)
    less = "with --json: without completeness and curated, which have a row for each device"
    parser.add_argument("--summary", action="store_true", help=less)
    parser.add_argument("--exact", action="store_true", help=EXACT)
    watch = (
        f"exit with {common.EXIT_IDLE} where no service runs on the store, or answers, and with "
    )
    watch += f"{common.EXIT_TROUBLE} where one of its workers does not, or is degraded"
    parser.add_argument("--expect-running", action="store_true", help=watch)
    common.add_zone(parser)
    parser = add_question(commands, completeness, AccountAnswer)
    parser.add_argument("--device", help="of one device; all unless given")
    parser.add_argument("--group", help='of one group of devices; "" for those in none')
    parser.add_argument("--incomplete", action="store_true", help="only where something is missing")
    parser.add_argument("--exact", action="store_true", help=EXACT)
    parser = add_question(commands, released, ReleasedAnswer, has_csv=True)
    parser.add_argument("--stream", help="its name; all unless given")
    common.add_zone(parser)
    parser.add_argument("--device", help="of one device; all unless given")
    parser.add_argument("--by", choices=GROUPS, default="none", help="group the range")
    common.add_range(parser)
    parser = add_question(commands, theta, ThetaAnswer)
    parser.add_argument("--stream", help="its name; the first one unless given")
    common.add_zone(parser)
    parser = add_question(commands, announced, AnnouncedAnswer)
    groups = "each group's last closed month instead, as its homes may see it"
    parser.add_argument("--groups", action="store_true", help=groups)
    parser = add_question(commands, audit, AuditAnswer)
    parser.add_argument("--since", type=common.time, help="from here on: ISO 8601 or seconds")
    common.add_zone(parser)
