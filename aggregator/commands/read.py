"""`edge-ldp aggregator check, status, completeness, released, theta, audit …`: they read."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from aggregator.answers.announcement import announced_text, announcements
from aggregator.answers.audit import audit_text, read_audit
from aggregator.answers.completeness import ACCOUNT, account_text, account_view, is_incomplete
from aggregator.answers.curated_view import released_csv
from aggregator.answers.fleet import read_status
from aggregator.answers.lookup import read_account, read_plans, read_revisions
from aggregator.answers.plan_view import ThetaAnswer, theta_answer, theta_text
from aggregator.answers.trust_view import trust_lines
from aggregator.answers.views import status_text, worker_text
from aggregator.commands.asking import Shown, add_command, add_question, show
from aggregator.commands.check_view import check_text, check_view
from aggregator.commands.common import (
    EXIT_IDLE,
    EXIT_NOTHING,
    EXIT_STORE,
    EXIT_TROUBLE,
    EXIT_VIOLATED,
    add_range,
    add_zone,
    clock_note,
    fail,
    find_group,
    find_stream,
    find_zone,
    make_clock,
    names,
    reading,
    time,
    warn,
)
from aggregator.commands.released import JSON_KEYS, add_options, answer_released, print_text
from aggregator.config import AnnounceTable, load_config, read_password
from aggregator.plans.signing import read_seal

EXACT = "each device's own numbers, too: they tell who reported when"

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from aggregator.commands.asking import Commands
    from aggregator.config import AggregatorConfig
    from aggregator.store.contract import Reader


def check(args: argparse.Namespace) -> int:
    """Validate the whole configuration and say what it means; nothing is sent.

    With --live all that it names is tried, also beside a service that runs: store, room, clock,
    broker, login, rights, plans. Exit code 4 says that something fails.
    """
    config = load_config(args.config)
    read_password(config.broker, str(args.config))
    read_seal(config, str(args.config))
    view = check_view(config)
    if not args.live:
        show(args, view, lambda: check_text(view))
        return 0
    from aggregator.running.trial import try_service  # noqa: PLC0415 (time: only where it is tried)

    tried = try_service(config, str(args.config), make_clock(config))
    view["live"] = [one.fact() for one in tried]
    show(args, view, lambda: "\n".join([check_text(view), "".join(one.text() for one in tried)]))
    return EXIT_STORE if any(one.outcome == "fails" for one in tried) else 0


def status(args: argparse.Namespace) -> int:
    """Show how the fleet is: devices, reports by where they are, plans; and how old each is."""
    with reading(args) as (config, reader):
        zone = find_zone(args, config)
        now_s = int(make_clock(config).now())
        every = args.json and not args.summary
        view = read_status(reader, config, now_s, every=every, exact=args.exact)
        note = clock_note(config)
    trust = "\n".join([*trust_lines(view, zone), ""])
    show(args, view, lambda: note + status_text(view, zone) + trust)
    if args.expect_running and view["service"]["runs"] is False:
        return fail(f"{config.fleet}: no service runs on this store", EXIT_IDLE)
    if args.expect_running and view["service"]["is_late"]:
        return fail(f"{config.fleet}: the service on this store does not answer", EXIT_IDLE)
    workers = view["service"]["workers"]
    trouble = [beat for beat in workers if beat["is_late"] or beat["is_degraded"]]
    if args.expect_running and trouble:
        reason = "; ".join(worker_text(beat, zone) for beat in trouble)
        return fail(f"{config.fleet}: {reason}", EXIT_TROUBLE)
    return 0


def completeness(args: argparse.Namespace) -> int:
    """Show where the reports of each device and stream are, and whether all are accounted for."""
    with reading(args) as (config, reader):
        find_group(args, reader)
        rows, sums = read_account(reader, config)
    if args.device is not None and all(row.device != args.device for row in rows):
        return fail(f"{config.fleet}: nothing is known of device {args.device!r}", EXIT_NOTHING)
    least = 1 if args.exact else config.query.min_devices
    view = account_view(config.fleet, rows, sums, partial(_is_asked_for, args), least)
    show(args, view, lambda: account_text(view))
    if view["holds"]:
        return 0
    return fail(f"not accounted for: {names(view['violations'])}", EXIT_VIOLATED)


def released(args: argparse.Namespace) -> int:
    """Answer with sums of curated streams (central DP, one device each), never a fleet's."""
    with reading(args) as (config, reader):
        zone = find_zone(args, config)
        view = answer_released(reader, args, zone)
    show(args, view, lambda: print_text(view, zone), released_csv)
    if not view["released"]:
        return fail(f"{config.fleet}: no curated stream that this asks for", EXIT_NOTHING)
    if not any(one["sums"] or "error" in one for one in view["released"]):
        return fail(f"{config.fleet}: nothing released in this range", EXIT_NOTHING)
    return 0


def theta(args: argparse.Namespace, config: AggregatorConfig, reader: Reader) -> Shown:
    """Show every plan of a stream: epoch, θ, when it was issued, share of survey slots."""
    stream, zone = find_stream(args, config), find_zone(args, config)
    view = theta_answer(stream, read_plans(reader, stream), read_revisions(reader, stream))
    told = Shown(view, lambda: theta_text(stream.unit, view.theta, zone))
    return told if view.theta else told.but(EXIT_NOTHING, f"{stream.name}: no plan was issued yet")


def audit(args: argparse.Namespace) -> int:
    """Show what operators changed: when, who, by which command."""
    with reading(args) as (config, reader):
        view = read_audit(reader, config.fleet, args.since or 0)
        zone, note = find_zone(args, config), clock_note(config)
    show(args, view, lambda: note + audit_text(view, zone))
    return 0


def announced(args: argparse.Namespace) -> int:
    """Show what [announce] publishes at this moment; nothing is sent."""
    with reading(args) as (config, reader):
        table = config.announce or AnnounceTable()
        view = announcements(reader, config, table, int(make_clock(config).now()))
    if config.announce is None:
        warn(["nothing is published: [announce] is not there; this is what it would be"])
    show(args, view, lambda: announced_text(view))
    return 0


def _is_asked_for(args: argparse.Namespace, row: Mapping[str, Any]) -> bool:
    return (
        args.device in (None, row["device"])
        and args.group in (None, row["group"])
        and (is_incomplete(row) or not args.incomplete)
    )


def add(commands: Commands) -> None:
    """Add the commands' options."""
    parser = add_command(commands, check, check_view.__doc__)
    live = "also try store, broker, rights, plans and clock; disturbs no service, changes nothing"
    parser.add_argument("--live", action="store_true", help=live)
    parser = add_command(commands, status, read_status.__doc__)
    less = "with --json: without completeness and curated, which have a row for each device"
    parser.add_argument("--summary", action="store_true", help=less)
    parser.add_argument("--exact", action="store_true", help=EXACT)
    watch = f"exit with {EXIT_IDLE} where no service runs on the store, or answers, and with "
    watch += f"{EXIT_TROUBLE} where one of its workers does not, or is degraded"
    parser.add_argument("--expect-running", action="store_true", help=watch)
    add_zone(parser)
    parser = add_command(commands, completeness, ACCOUNT)
    parser.add_argument("--device", help="of one device; all unless given")
    parser.add_argument("--group", help='of one group of devices; "" for those in none')
    parser.add_argument("--incomplete", action="store_true", help="only where something is missing")
    parser.add_argument("--exact", action="store_true", help=EXACT)
    parser = add_command(commands, released, JSON_KEYS, has_csv=True)
    parser.add_argument("--stream", help="its name; all unless given")
    add_zone(parser)
    add_options(parser)
    add_range(parser)
    parser = add_question(commands, theta, ThetaAnswer)
    parser.add_argument("--stream", help="its name; the first one unless given")
    add_zone(parser)
    add_command(commands, announced, announcements.__doc__)
    parser = add_command(commands, audit, read_audit.__doc__)
    parser.add_argument("--since", type=time, help="from here on: ISO 8601 or seconds")
    add_zone(parser)
