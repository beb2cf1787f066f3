"""`edge-ldp aggregator check, status, completeness, query, released, theta, audit …`: they read."""

from __future__ import annotations

from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any

from aggregator.answers.announcement import announced_text, announcements
from aggregator.answers.audit import audit_text, read_audit
from aggregator.answers.completeness import ACCOUNT, account_text, account_view, is_incomplete
from aggregator.answers.curated_lookup import read_streams
from aggregator.answers.curated_view import released_csv
from aggregator.answers.curves import SHARES, CurveQuestion
from aggregator.answers.fleet import read_status
from aggregator.answers.load_lookup import cut_buckets, read_grouping, whole_spans
from aggregator.answers.local_time import GROUPINGS
from aggregator.answers.lookup import (
    LAST_BUCKET,
    read_account,
    read_counted,
    read_extent,
    read_facts,
    read_plans,
    read_revisions,
)
from aggregator.answers.query import answer, curve_shown, prepare_curve
from aggregator.answers.trust_view import trust_lines
from aggregator.answers.units import clock_text
from aggregator.answers.views import (
    answer_csv,
    answer_text,
    answer_view,
    status_text,
    stream_view,
    theta_text,
    worker_text,
)
from aggregator.commands.check_view import check_text, check_view
from aggregator.commands.common import (
    EXIT_IDLE,
    EXIT_NOTHING,
    EXIT_STORE,
    EXIT_TROUBLE,
    EXIT_VIOLATED,
    add_command,
    add_forms,
    add_range,
    add_zone,
    clock_note,
    fail,
    find_group,
    find_stream,
    find_zone,
    make_clock,
    names,
    one_thread,
    reading,
    show,
    time,
    warn,
)
from aggregator.commands.load_curve import nothing_text
from aggregator.commands.released import (
    JSON_KEYS,
    add_options,
    answer_released,
    beside_text,
    print_text,
)
from aggregator.config import AnnounceTable, ConfigError, load_config, read_password
from aggregator.counting.retention import HOUR_S
from aggregator.plans.signing import read_seal
from edge_ldp.arguments import taken_as

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping
    from datetime import tzinfo

    from aggregator.answers.query import Answer, Facts
    from aggregator.config import StreamTable


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
        view = read_status(reader, config, now_s, every=every)
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
    view = account_view(config.fleet, rows, sums, partial(_is_asked_for, args))
    show(args, view, lambda: account_text(view))
    if view["holds"]:
        return 0
    return fail(f"not accounted for: {names(view['violations'])}", EXIT_VIOLATED)


def query(args: argparse.Namespace) -> int:
    """Answer with mean, total and density of a stream, each with 95-percent intervals."""
    with reading(args) as (config, reader):
        stream = find_stream(args, config)
        if args.by == "hour-of-day" and stream.bucket_s > HOUR_S:
            expected = "buckets no longer than an hour for --by hour-of-day"
            raise ConfigError(str(args.config), f"{stream.name}.bucket_slots", expected)
        first = 0 if args.since is None else args.since // stream.bucket_s
        last = LAST_BUCKET if args.until is None else (args.until - 1) // stream.bucket_s
        group, zone = find_group(args, reader), find_zone(args, config)
        with reader.snapshot(), one_thread() as begin:
            if not args.no_density:
                begin(partial(prepare_curve, read_plans(reader, stream)))
            by, doubts = read_grouping(reader, stream, first, last, args.by, zone)
            rolled_up = reader.rolled_up(stream.id)
            first, last, warnings = whole_spans(rolled_up, stream, first, last, by)
            is_part = (args.since, args.until) != (None, None)
            extent = read_extent(reader, stream, group) if is_part else None
            warnings += cut_buckets(rolled_up, stream, extent, args.since, args.until)
            counted = read_counted(reader, stream, first, last, group, by)
            asked = CurveQuestion(tuple(args.quantile or SHARES), tuple(args.range or ()))
            work = partial(curve_shown, counted.plans, counted.rows, asked)
            curve = None if args.no_density else begin(work)
            facts = read_facts(reader, config, stream, group, counted)
        warnings += doubts
        found = answer(stream, facts, by, curve=curve)
        revisions = read_revisions(reader, stream)
        view = answer_view(stream, found, facts.plans, facts.records, revisions, zone=zone)
        beside = [one.device for one in read_streams(reader) if one.design.name == stream.name]
    view |= {"curated_beside": beside, "group": args.group, "warnings": warnings}
    warn(warnings)
    notes = _begins_later(stream, facts, found, zone)
    show(args, view, lambda: answer_text(view, zone, notes) + beside_text(beside), answer_csv)
    if found.whole.mean is not None:
        return 0
    if found.whole.withheld and found.whole.devices:
        few = f"{found.whole.devices} devices were heard in this range, {facts.least} are asked for"
        few += " ([query] min_devices)"
        if found.whole.devices >= facts.least:
            few = (
                f"this group leaves out fewer than {facts.least} devices, whose figures would show"
                ": ask for all of them"
            )
        return fail(f"{stream.name}: {few}", EXIT_NOTHING)
    elsewhere = extent if found.first_bucket is None else None
    return fail(f"{stream.name}: {nothing_text(elsewhere, zone)}", EXIT_NOTHING)


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


def theta(args: argparse.Namespace) -> int:
    """Show every plan of a stream: epoch, θ, when it was issued, share of survey slots."""
    with reading(args) as (config, reader):
        stream, zone = find_stream(args, config), find_zone(args, config)
        view = stream_view(stream, read_plans(reader, stream), read_revisions(reader, stream))
    show(args, view, lambda: theta_text(stream.unit, view["theta"], zone))
    return 0 if view["theta"] else fail(f"{stream.name}: no plan was issued yet", EXIT_NOTHING)


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
    show(args, view, lambda: announced_text(view))
    return 0


def _begins_later(stream: StreamTable, facts: Facts, found: Answer, zone: tzinfo) -> list[str]:
    """Return the line that says why figures begin later than reports do, where that is so."""
    first = found.first_bucket
    if first is None or facts.presence[0, 0] >= first:
        return []
    begin = clock_text(first * stream.bucket_s, zone)
    reason = (
        f"before {begin} there are surveys alone, until θ was chosen: they tell the distribution"
    )
    return [f"{reason}, and are in no mean or total"]


def _is_asked_for(args: argparse.Namespace, row: Mapping[str, Any]) -> bool:
    return (
        args.device in (None, row["device"])
        and args.group in (None, row["group"])
        and (is_incomplete(row) or not args.incomplete)
    )


def _read_share(text: str) -> float:
    share = float(text)
    if not 0 < share < 1:
        raise ValueError
    return share


def _read_range(text: str) -> tuple[float, float]:
    low, _, high = text.partition(":")
    if not -inf < float(low) < float(high) < inf:
        raise ValueError
    return float(low), float(high)


_share = taken_as("a share between 0 and 1", _read_share)
_range = taken_as("LOW:HIGH, two numbers that rise", _read_range)


def add(commands: Any) -> None:
    """Add the commands' options."""
    parser = add_command(commands, check, check_view.__doc__)
    live = "also try store, broker, rights, plans and clock; disturbs no service, changes nothing"
    parser.add_argument("--live", action="store_true", help=live)
    parser = add_command(commands, status, read_status.__doc__)
    less = "with --json: without completeness and curated, which have a row for each device"
    parser.add_argument("--summary", action="store_true", help=less)
    watch = f"exit with {EXIT_IDLE} where no service runs on the store, or answers, and with "
    watch += f"{EXIT_TROUBLE} where one of its workers does not, or is degraded"
    parser.add_argument("--expect-running", action="store_true", help=watch)
    add_zone(parser)
    parser = add_command(commands, completeness, ACCOUNT)
    parser.add_argument("--device", help="of one device; all unless given")
    parser.add_argument("--group", help='of one group of devices; "" for those in none')
    parser.add_argument("--incomplete", action="store_true", help="only where something is missing")
    parser = add_command(commands, query, answer_view.__doc__)
    parser.add_argument("--stream", help="its name; the first one unless given")
    add_forms(parser)
    parser.add_argument("--by", choices=GROUPINGS, default="none", help="group the range")
    parser.add_argument("--group", help='of one group of devices; "" for those in none')
    share = "value that this share of the values is below, as 0.9 (may be repeated)"
    parser.add_argument("--quantile", type=_share, action="append", metavar="P", help=share)
    less = "means and totals alone: half of the work"
    parser.add_argument("--no-density", action="store_true", help=less)
    within = "share of values from LOW to below HIGH, in the unit (may be repeated)"
    parser.add_argument("--range", type=_range, action="append", metavar="LOW:HIGH", help=within)
    add_range(parser)
    parser = add_command(commands, released, JSON_KEYS)
    parser.add_argument("--stream", help="its name; all unless given")
    add_forms(parser)
    add_options(parser)
    add_range(parser)
    parser = add_command(commands, theta, stream_view.__doc__)
    parser.add_argument("--stream", help="its name; the first one unless given")
    add_zone(parser)
    add_command(commands, announced, announcements.__doc__)
    parser = add_command(commands, audit, read_audit.__doc__)
    parser.add_argument("--since", type=time, help="from here on: ISO 8601 or seconds")
    add_zone(parser)
