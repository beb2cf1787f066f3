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
from aggregator.commands.asking import (
    GROUP,
    RANGE,
    SINCE,
    STREAM,
    ZONE,
    Asked,
    Commands,
    Shown,
    option,
)
from aggregator.config import AnnounceTable, load_config, read_password
from aggregator.errors import NothingError
from aggregator.plans.signing import read_seal


def check(args: argparse.Namespace) -> Shown:
    """Validate the whole configuration and say what it means; nothing is sent.

    With --live all that it names is tried, also beside a service that runs: store, room, clock,
    broker, login, rights, plans. Exit code 4 says that something fails.
    """
    config = load_config(args.config)
    read_password(config.broker, str(args.config))
    read_seal(config, str(args.config))
    view = check_answer(config)
    if not args.live:
        return Shown(view, lambda: check_text(view))
    from aggregator.running.trial import try_service  # noqa: PLC0415 (time: only where it is tried)

    tried = try_service(config, str(args.config), common.make_clock(config))
    whole = replace(view, live=[TriedPart(**one.fact()) for one in tried])
    text = "\n".join([check_text(view), "".join(one.text() for one in tried)])
    fails = any(one.outcome == "fails" for one in tried)
    return Shown(whole, lambda: text, code=common.EXIT_STORE if fails else 0)


def status(asked: Asked) -> Shown:
    """Show how the fleet is: devices, reports by where they are, plans; and how old each is."""
    args, config, zone = asked.args, asked.config, asked.zone
    every = args.json and not args.summary
    view = read_status(asked.reader, config, asked.now_s, every=every, exact=args.exact)
    told = Shown(view, lambda: common.clock_note(config) + status_text(view, zone))
    if not args.expect_running:
        return told
    if view.service.runs is False:
        return told.but(common.EXIT_IDLE, f"{config.fleet}: no service runs on this store")
    if view.service.is_late:
        reason = f"{config.fleet}: the service on this store does not answer"
        return told.but(common.EXIT_IDLE, reason)
    if trouble := [beat for beat in view.service.workers if beat.is_late or beat.is_degraded]:
        reason = "; ".join(worker_text(beat, zone) for beat in trouble)
        return told.but(common.EXIT_TROUBLE, f"{config.fleet}: {reason}")
    return told


def completeness(asked: Asked) -> Shown:
    """Show where the reports of each device and stream are, and whether all are accounted for."""
    args, config = asked.args, asked.config
    asked.find_group()
    rows, sums = read_account(asked.reader, config)
    if args.device is not None and all(row.device != args.device for row in rows):
        raise NothingError(f"{config.fleet}: nothing is known of device {args.device!r}")
    least = 1 if args.exact else config.query.min_devices
    view = account_answer(config.fleet, rows, sums, partial(_is_asked_for, args), least)
    told = Shown(view, lambda: account_text(view))
    violated = f"not accounted for: {common.names(view.violations)}"
    return told if view.holds else told.but(common.EXIT_VIOLATED, violated)


def released(asked: Asked) -> Shown:
    """Answer with sums of curated streams (central DP, one device each); `query` has a fleet's."""
    args, fleet, zone = asked.args, asked.config.fleet, asked.zone
    view = read_curated(
        asked.reader,
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
        return told.but(common.EXIT_NOTHING, f"{fleet}: no curated stream that this asks for")
    if not any(one.sums or one.error for one in view.released):
        return told.but(common.EXIT_NOTHING, f"{fleet}: nothing released in this range")
    return told


def theta(asked: Asked) -> Shown:
    """Show every plan of a stream: epoch, θ, when it was issued, share of survey slots."""
    stream, reader, zone = asked.stream, asked.reader, asked.zone
    view = theta_answer(stream, read_plans(reader, stream), read_revisions(reader, stream))
    told = Shown(view, lambda: theta_text(stream.unit, view.theta, zone))
    nothing = f"{stream.name}: {stream.no_plan}"
    return told if view.theta else told.but(common.EXIT_NOTHING, nothing)


def audit(asked: Asked) -> Shown:
    """Show what operators changed: when, who, by which command."""
    view = read_audit(asked.reader, asked.config.fleet, asked.args.since or 0)
    zone, note = asked.zone, common.clock_note(asked.config)
    return Shown(view, lambda: note + audit_text(view, zone))


def announced(asked: Asked) -> Shown:
    """Show what [announce] publishes at this moment; nothing is sent."""
    args, config, reader, now_s = asked.args, asked.config, asked.reader, asked.now_s
    table = config.announce or AnnounceTable()
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
    live = "also try store, broker, rights, plans and clock; disturbs no service, changes nothing"
    commands.add(check, CheckAnswer, option("--live", action="store_true", help=live))
    less = "with --json: without completeness and curated, which have a row for each device"
    watch = (
        f"exit with {common.EXIT_IDLE} where no service runs on the store, or answers, and with "
        f"{common.EXIT_TROUBLE} where one of its workers does not, or is degraded"
    )
    exact = "each device's own numbers, too: they tell who reported when"
    shown = (
        option("--summary", action="store_true", help=less),
        option("--exact", action="store_true", help=exact),
        option("--expect-running", action="store_true", help=watch),
    )
    commands.question(status, StatusAnswer, *shown, ZONE)
    device = option("--device", help="of one device; all unless given")
    account = (
        option("--incomplete", action="store_true", help="only where something is missing"),
        option("--exact", action="store_true", help=exact),
    )
    commands.question(completeness, AccountAnswer, device, GROUP, *account)
    stream = option("--stream", help="its name; all unless given")
    by = option("--by", choices=GROUPS, default="none", help="group the range")
    of = (stream, ZONE, device, by, *RANGE)
    commands.question(released, ReleasedAnswer, *of, has_csv=True)
    commands.question(theta, ThetaAnswer, STREAM, ZONE)
    groups = "each group's last closed month instead, as its homes may see it"
    only = option("--groups", action="store_true", help=groups)
    commands.question(announced, AnnouncedAnswer, only)
    commands.question(audit, AuditAnswer, SINCE, ZONE)
