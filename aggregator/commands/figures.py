"""`edge-ldp aggregator query, load-curve`: means, totals, densities and curves of a stream."""

import argparse
from datetime import tzinfo
from functools import partial
from math import inf

from aggregator.answers import lookup
from aggregator.answers.curve_answer import CurveAnswer, curve_answer, curve_csv, curve_text
from aggregator.answers.curves import SHARES, CurveQuestion
from aggregator.answers.load_lookup import (
    cut_buckets,
    read_grouping,
    read_load_curve,
    whole_spans,
)
from aggregator.answers.local_time import GROUPINGS, LENGTHS
from aggregator.answers.query import Answer, Facts, answer, curve_shown, prepare_curve
from aggregator.answers.query_answer import QueryAnswer, query_answer, query_csv, query_text
from aggregator.answers.sums_answer import LOCAL, MODES, SUMS, SumsAnswer, read_sums_answer
from aggregator.answers.units import clock_text
from aggregator.commands import common
from aggregator.commands.asking import GROUP, RANGE, STREAM, ZONE, Asked, Commands, Shown, option
from aggregator.config import ConfigError, StreamTable
from aggregator.counting.retention import HOUR_S
from aggregator.store.contract import Reader
from edge_ldp.arguments import taken_as

MOST_BINS = 100


def query(asked: Asked) -> Shown:
    """Answer with mean, total and density of a stream, each with 95-percent intervals."""
    args, config, reader, stream = asked.args, asked.config, asked.reader, asked.stream
    if args.by == "hour-of-day" and stream.bucket_s > HOUR_S:
        expected = "buckets no longer than an hour for --by hour-of-day"
        raise ConfigError(str(args.config), f"{stream.name}.bucket_slots", expected)
    first, last = buckets(asked)
    group, zone = asked.find_group(), asked.zone
    with reader.snapshot(), common.one_thread() as begin:
        if not args.no_density:
            begin(partial(prepare_curve, lookup.read_plans(reader, stream)))
        by, doubts = read_grouping(reader, stream, first, last, args.by, zone)
        rolled_up = reader.rolled_up(stream.id)
        first, last, warnings = whole_spans(rolled_up, stream, first, last, by)
        is_part = (args.since, args.until) != (None, None)
        extent = lookup.read_extent(reader, stream, group) if is_part else None
        warnings += cut_buckets(rolled_up, stream, extent, args.since, args.until)
        counted = lookup.read_counted(reader, stream, first, last, group, by)
        shares, ranges = tuple(args.quantile or SHARES), tuple(args.range or ())
        wanted = CurveQuestion(shares, ranges, args.bins or 0)
        work = partial(curve_shown, counted.plans, counted.rows, wanted, counted.weights)
        curve = None if args.no_density else begin(work)
        facts = lookup.read_facts(reader, config, stream, group, counted)
        sums = _sums_asked(asked, group)
    warnings += doubts
    found = answer(stream, facts, by, curve=curve)
    view = query_answer(
        stream,
        found,
        facts,
        lookup.read_revisions(reader, stream),
        zone=zone,
        group=args.group,
        beside=_curated_beside(reader, stream),
        warnings=warnings,
        sums=sums,
        mode=args.mode,
        by=args.by,
    )
    if args.csv and (args.quantile or args.range or args.bins):
        view.warnings.append(
            "--csv has means and totals; what --quantile, --range and --bins ask stands in --json"
        )
    notes = _begins_later(stream, facts, found, zone)
    told = Shown(
        view, lambda: query_text(view, zone, notes), lambda: query_csv(view), view.warnings
    )
    if found.whole.mean is not None and args.mode != SUMS:
        return told
    if sums is not None and sums.whole.mean is not None:
        return told
    if args.mode == SUMS or stream.is_summed_alone:
        return told.but(common.EXIT_NOTHING, f"{stream.name}: {_no_sums(sums)}")
    elsewhere = extent if found.first_bucket is None else None
    reason = _nothing_text(args, elsewhere, zone)
    if found.leaves_few:
        reason = f"this group leaves out fewer than {facts.least} devices, whose figures it would"
        reason += " reveal: ask for all of them"
    elif found.whole.withheld:
        reason = f"fewer than {facts.least} devices reported in this range ([query] min_devices)"
    return told.but(common.EXIT_NOTHING, f"{stream.name}: {reason}")


def load_curve(asked: Asked) -> Shown:
    """Show a stream by hour, day or week: reports, mean with 95-percent interval, total."""
    args, reader, stream, zone = asked.args, asked.reader, asked.stream, asked.zone
    first, last = buckets(asked)
    group, least = asked.find_group(), asked.config.query.min_devices
    curve = read_load_curve(reader, stream, first, last, group, by=args.by, zone=zone)
    sums, named = _sums_asked(asked, group), {"group": args.group, "mode": args.mode}
    view = curve_answer(stream, curve, least, args.by, zone, sums=sums, **named)
    told = Shown(view, lambda: curve_text(view, zone), lambda: curve_csv(view), view.warnings)
    is_of_sums = view.mode == SUMS or stream.is_summed_alone
    if is_of_sums and (sums is None or sums.whole.mean is None):
        return told.but(common.EXIT_NOTHING, f"{stream.name}: {_no_sums(sums)}")
    if len(curve.bucket) or view.mode == SUMS:
        return told
    reason = _nothing_text(args, lookup.read_extent(reader, stream, group), zone)
    if len(lookup.read_presence(reader, stream, first, last, group)):
        reason = f"surveys only until θ is chosen (after {stream.min_survey_reports:,} of them:"
        reason += " `status`); `query` tells the distribution"
    return told.but(common.EXIT_NOTHING, f"{stream.name}: {reason}")


def _sums_asked(asked: Asked, group: int | None) -> SumsAnswer | None:
    """Return what homes' sums of the range say; None without any, or where reports are asked."""
    args, least = asked.args, asked.config.query.min_devices
    if args.mode == LOCAL:
        return None
    span = args.since, args.until
    return read_sums_answer(asked.reader, asked.stream, span, asked.zone, group=group, least=least)


def _no_sums(sums: SumsAnswer | None) -> str:
    """Return why no sums answer."""
    if sums is None:
        return "no home's sums of a period that lies wholly in this range"
    return "fewer homes sent sums in this range, or are left out, than [query] min_devices"


def _nothing_text(args: argparse.Namespace, extent: tuple[int, int] | None, zone: tzinfo) -> str:
    """Return that a range has no reports, and from when to when there are some (`read_extent`)."""
    if extent is None and args.group is not None:
        return "no reports under this group yet: each belongs to that of its device when it counted"
    if extent is None:
        return "no reports in this range yet: `status` says who is silent"
    begin, end = (clock_text(at_s, zone) for at_s in extent)
    return f"no reports in this range ({zone}); there are some from {begin} to {end}"


def buckets(asked: Asked) -> tuple[int, int]:
    """Return the first and the last bucket of --since and --until."""
    since, until, bucket_s = asked.args.since, asked.args.until, asked.stream.bucket_s
    first = 0 if since is None else since // bucket_s
    return first, lookup.LAST_BUCKET if until is None else (until - 1) // bucket_s


def _curated_beside(reader: Reader, stream: StreamTable) -> list[str]:
    """Return the devices that publish a stream of this name of their own."""
    if not reader.released_chunks():
        return []
    from aggregator.answers.curated_view import read_streams  # noqa: PLC0415 (time: few have any)

    return [one.device for one in read_streams(reader) if one.design.name == stream.name]


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


def _read_range(text: str) -> tuple[float, float]:
    low, _, high = text.partition(":")
    return float(low), float(high)


_bins = taken_as(f"2 to {MOST_BINS}", int, lambda bins: 1 < bins <= MOST_BINS)
_share = taken_as("a share between 0 and 1", float, lambda share: 0 < share < 1)
_range = taken_as(
    "LOW:HIGH, two numbers that rise", _read_range, lambda ends: -inf < ends[0] < ends[1] < inf
)


def _by(text: str) -> str:
    if text == "hour-of-day":
        expected = f"expected one of {', '.join(LENGTHS)}; `query --by {text}` adds up such hours"
        raise argparse.ArgumentTypeError(expected)
    return text


def add(commands: Commands) -> None:
    """Add the commands' options."""
    said = "of reports, or of homes' own sums (the narrower first, the other beside it)"
    both = (STREAM, ZONE, GROUP, option("--mode", choices=MODES, help=said), *RANGE)
    share = "value that this share of the values is below, as 0.9 (may be repeated)"
    less = "means and totals alone: a third less work"
    within = "share of values from LOW to below HIGH, in the unit (may be repeated)"
    even = "shares of N ranges, chosen so that they are about the same, between round numbers"
    figures = (
        option("--by", choices=GROUPINGS, default="none", help="group the range"),
        option("--quantile", type=_share, action="append", metavar="P", help=share),
        option("--no-density", action="store_true", help=less),
        option("--range", type=_range, action="append", metavar="LOW:HIGH", help=within),
        option("--bins", type=_bins, metavar="N", help=even),
    )
    commands.question(query, QueryAnswer, *both, *figures, has_csv=True)
    by = option("--by", type=_by, choices=LENGTHS, default="hour", help="hours unless given")
    commands.question(load_curve, CurveAnswer, *both, by, has_csv=True)
