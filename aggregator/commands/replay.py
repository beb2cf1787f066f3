"""`edge-ldp replay`: count the archive anew and compare it with the store.

Exit codes: 0 equal; 1 some counts differ; 2 wrong usage or configuration; 4 a store or an archive
that cannot be used; 5 nothing to answer with (--stream, no reports of it).
"""

import argparse
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from msgspec import to_builtins
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from aggregator.answers import lookup
from aggregator.answers.curve_answer import CurveAnswer, curve_answer, curve_text
from aggregator.answers.load_lookup import read_load_curve
from aggregator.answers.local_time import GROUPINGS, LENGTHS, Grouping
from aggregator.answers.query import Facts, answer, curve_shown, first_streamed
from aggregator.answers.query_answer import QueryAnswer, query_answer, query_text
from aggregator.archive.directory import read_about
from aggregator.archive.files import Compacted, compact
from aggregator.archive.releases import read_releases
from aggregator.commands import common
from aggregator.commands.asking import CONFIG, RANGE, ZONE, Asked, Shown, run
from aggregator.commands.figures import buckets
from aggregator.config import AggregatorConfig, ConfigError, StreamTable, extra, load_config
from aggregator.counting.records import KeptSums
from aggregator.counting.reporters import less
from aggregator.counting.retention import GONE
from aggregator.counting.tally import Tally, merge, rows_of, without_classes
from aggregator.errors import StoreError
from aggregator.replay import comparison
from aggregator.replay.counts import WORK, Counted, OpenEngine, count_archive
from aggregator.replay.density import ESTIMATORS, estimated_view
from aggregator.replay.duckdb_engine import open_duckdb
from aggregator.replay.statement import Selection
from aggregator.replay.view import JSON_KEYS, compacted_text, compared_view, replay_text
from aggregator.store.administration.erasure import erased_devices
from aggregator.store.administration.renaming import former_names
from aggregator.store.contract import Reader
from aggregator.store.opening import open_reader
from aggregator.store.rows import THERE
from edge_ldp.arguments import Parser

STORES = ("curated_beside", "warnings", "sums", "mode", "best")
"""Keys of `query` that are not of counts: an archive's answer has none of them."""
ENGINES = ("duckdb", "spark")
DESCRIPTION = """\
Bring what the aggregator spooled into the archive's files, count all of them again and compare
every count with the store's: to the bit. It may run while the aggregator does: counts that the
store changed meanwhile are left out and their number is told. DuckDB counts in this process; Spark
here (local[*]) or on the cluster of --master, where the archive has the same path: the same query,
the same counts. --without leaves a device's reports out of the answer; its time
stays in totals and in devices heard, and the audit is of all reports.
"""
EXITS = """\
Exit codes: 0 equal, 1 some differ, 2 usage or configuration, 4 a store or archive that cannot be
used, 5 no reports of the stream.
"""


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    return run(_parser().parse_args(argv), "edge-ldp replay")


def _parser() -> argparse.ArgumentParser:
    """Return the parser."""
    parser = Parser(
        prog="edge-ldp replay",
        description=DESCRIPTION,
        epilog=JSON_KEYS + EXITS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    CONFIG(parser)
    add("--stream", help="answer with this stream's sums and density from the archive's counts")
    add("--engine", choices=ENGINES, default=ENGINES[0], help="what counts")
    add("--master", default="local[*]", metavar="URL", help="Spark's: local[*], spark://host:7077")
    add(
        "--without",
        action="append",
        default=[],
        metavar="DEVICE",
        help="leave a device out of the answer (may be repeated)",
    )
    add("--without-marked", action="store_true", help="leave out whom the aggregator marked")
    add("--by", choices=GROUPINGS, default="none", help="group the answer's range")
    add(
        "--curve",
        choices=LENGTHS,
        help="also the stream's sums by hour, day or week, as load-curve's",
    )
    add("--group", help='answer for one group of devices; "" for those in none')
    add("--estimator", choices=ESTIMATORS, help="also the density by this one (--json)")
    for one in (*RANGE, ZONE):
        one(parser)
    add("--resume", action="store_true", help="go on with a replay that was interrupted")
    add("--compact", action="store_true", help="only bring the spool into files (for a timer)")
    add("--json", action="store_true", help="for machines")
    parser.set_defaults(command=_replay)
    return parser


def _replay(args: argparse.Namespace) -> Shown:
    config = load_config(args.config)
    if config.archive is None:
        raise ConfigError(str(args.config), "archive", "expected an [archive] with its path")
    stream, zone = _stream(args, config), common.find_zone(args, config)
    common.settle_times(args, config)
    place = Path(config.archive.path)
    about = read_about(place)
    reader = open_reader(config, str(args.config))
    asked = Asked(args, config, reader)
    try:
        if there := asked.moved_to:  # the archive goes on with the other one
            raise StoreError(str(config.store.path), f"was moved to {there}", THERE)
        if args.compact:
            done = asdict(_compact(asked, place))
            return Shown(text=lambda: _json(done) if args.json else compacted_text(done))
        view, counted = _run(asked, place)
        answered = curve = estimated = None
        if stream is not None:
            without = view["without"]["devices"]
            held = comparison.tally_of_held(
                row for row in reader.held_counts() if row.device not in without
            )
            # no answer has what the store keeps apart
            kept = comparison.subtract(counted.kept, held)
            answered, curve, estimated = _answer(asked, kept, without)
    finally:
        reader.close()
    view = {"fleet": config.fleet, "archive": str(place), "complete": about.complete, **view}
    if args.json:
        told = None
        if answered is not None:  # without what the store alone tells
            found = to_builtins(answered).items()
            told = {key: value for key, value in found if key not in STORES}
        if told is not None and estimated is not None:
            told["estimated"] = estimated
        text = _json({**view, "answer": told, "curve": to_builtins(curve)})
    else:
        text = replay_text(view) + ("" if answered is None else query_text(answered, zone))
        text += "" if curve is None else curve_text(curve, zone)
    code = common.EXIT_NOTHING if answered is not None and answered.whole.mean is None else 0
    sums = view["sums"]
    unexplained = not view["erased"]["explains"] and view["compared"]["differ"]
    if unexplained or sums["differ"] or sums["totals_differ"]:
        code = common.EXIT_VIOLATED
    return Shown(text=lambda: text, code=code)


def _json(view: Mapping[str, Any]) -> str:
    return json.dumps(view) + "\n"


def _compact(asked: Asked, place: Path) -> Compacted:
    """Bring the spool into files."""
    with _progress(quiet=asked.args.json) as bars:
        bar = bars.add_task("spool", total=None)
        return compact(
            place,
            {stream.id: stream.slot_seconds for stream in asked.config.streams},
            asked.reader.committed,
            lambda at, total: bars.update(bar, completed=at >> 10, total=total >> 10),
            erased=erased_devices(asked.reader.facts()),
        )


def _run(asked: Asked, place: Path) -> tuple[dict[str, Any], Counted]:
    """Compact, count and compare; the store is read before and after the archive."""
    args, config, reader = asked.args, asked.config, asked.reader
    selection, engine = _selection(asked), _engine(args, place)
    clock = [time.monotonic()]
    before, sums_before = _store_counts(reader, config), _store_sums(reader, config)
    done = _compact(asked, place)
    clock.append(time.monotonic())
    with _progress(quiet=args.json) as bars:
        days = bars.add_task("days", total=None)
        counted = count_archive(
            place,
            selection,
            engine=engine,
            resume=args.resume,
            progress=lambda at, total: bars.update(days, completed=at, total=total),
        )
    clock.append(time.monotonic())
    after = _store_counts(reader, config)
    rolled_up = {stream.id: reader.rolled_up(stream.id) for stream in config.streams}
    plain = without_classes(counted.tally)
    with reader.snapshot():
        found = [reader.period_totals(one.name, 0, lookup.LAST_BUCKET) for one in config.streams]
        sums_after = _store_sums(reader, config)
    totals = {key: total for each in found for key, total in each.items()}
    gone_s = {
        one.name: rolled_up[one.id].until.get(GONE, 0) * one.bucket_s for one in config.streams
    }
    now = former_names(reader.facts())
    there = (
        one._replace(device=now.get(one.device, one.device))
        for one in read_releases(place)
        if one.end_s > gone_s.get(one.name, 0)
    )
    sums = comparison.compare_releases(there, sums_before, sums_after, totals)
    compared = comparison.compare_archive(
        *(comparison.rolled(tally, rolled_up) for tally in (plain, before, after))
    )
    clock.append(time.monotonic())
    erased = erased_devices(reader.facts())
    gone = {"devices": len(erased), "reports": sum(erased.values())}
    spent = [round(later - earlier, 3) for earlier, later in pairwise(clock)]
    view = {
        "engine": args.engine,
        "compacted": asdict(done),
        "reports": counted.tally.total,
        "digest": comparison.digest_of(plain),
        "days": counted.days,
        "resumed": counted.resumed,
        "without": {"devices": sorted(selection.without), "reports": counted.left_out.total},
        "compared": compared_view(compared),
        "erased": {**gone, "explains": comparison.explained(compared, gone["reports"])},
        "sums": asdict(sums),
        "seconds": dict(zip(("compact", "count", "compare"), spent, strict=True)),
    }
    return view, counted


def _selection(asked: Asked) -> Selection:
    without, reader = set(asked.args.without), asked.reader
    if asked.args.without_marked:
        without |= {mark.device for mark in reader.marks()}
        without |= {device.device for device in reader.devices() if device.held_s is not None}
    bucket_slots = {stream.id: stream.bucket_slots for stream in asked.config.streams}
    return Selection(bucket_slots, frozenset(without))


def _engine(args: argparse.Namespace, place: Path) -> OpenEngine:
    """Return how to open the engine that was asked for; raises ConfigError without its extra."""
    if args.engine == "duckdb":
        return open_duckdb
    with extra("PySpark", "edge-ldp-aggregator[spark]", "edge-ldp replay", "--engine spark"):
        from aggregator.replay import spark_engine  # noqa: PLC0415
    missed = spark_engine.java_missed(os.environ)
    if missed is not None:  # said before the spool is touched
        raise ConfigError("edge-ldp replay", "--engine spark", missed)
    return partial(spark_engine.open_spark, master=args.master, work=place / WORK)


def _answer(
    asked: Asked, tally: Tally, without: Sequence[str]
) -> tuple[QueryAnswer, CurveAnswer | None, dict[str, Any] | None]:
    """Return what `query` answers, with --curve `load-curve`, with --estimator another density.

    From the archive's counts. Who reported is the store's to say, less who is left out: a crowd is
    of those who are in it.
    """
    args, config, reader = asked.args, asked.config, asked.reader
    stream, zone, group = asked.stream, asked.zone, asked.find_group()
    first, last = buckets(asked)
    every = rows_of(tally, stream.id, first, last)
    tally = tally if group is None else comparison.only_group(tally, group)
    kept: Mapping[int, bytes] = reader.counts(stream.id, first, last, group).reporters
    beside = lookup.read_beside(reader, stream, first, last, group)
    if without:
        kept = {bucket: less(who, without) for bucket, who in kept.items()}
        beside = beside and {bucket: less(who, without) for bucket, who in beside.items()}
    plans = lookup.read_plans(reader, stream)
    counted = Facts(
        plans,
        replace(rows_of(tally, stream.id, first, last), reporters=kept),
        lookup.read_presence(reader, stream, first, last, group),
        beside=beside,
        weights=lookup.read_weights(reader, stream, every, first_streamed(plans, every), last),
        within=None if group is None else every,
    )
    facts = lookup.read_facts(reader, config, stream, group, counted)
    work = partial(curve_shown, facts.plans, facts.rows, weights=facts.weights)
    found = answer(stream, facts, Grouping(args.by, zone), curve=work)
    revisions = lookup.read_revisions(reader, stream)
    answered = query_answer(stream, found, facts, revisions, zone=zone, group=args.group)
    estimated = None
    if args.estimator is not None and found.curve is not None:  # else withheld, or no surveys
        estimated = estimated_view(facts.plans, facts.rows, args.estimator, facts.weights)
    if args.curve is None:
        return answered, None, estimated
    curve = read_load_curve(
        reader, stream, first, last, group, by=args.curve, zone=zone, tally=tally
    )
    least = config.query.min_devices
    view = curve_answer(stream, curve, least, args.curve, zone, group=args.group)
    return answered, view, estimated


def _store_counts(reader: Reader, config: AggregatorConfig) -> Tally:
    """Return everything that the store counted, also what it keeps apart."""
    parts = [
        comparison.tally_of_rows(
            {s.id: reader.counts(s.id, 0, lookup.LAST_BUCKET, group) for s in config.streams}, group
        )
        for group in sorted({0, *reader.groups().values()})
    ]
    return merge([*parts, comparison.tally_of_held(reader.held_counts())])


def _store_sums(reader: Reader, config: AggregatorConfig) -> list[KeptSums]:
    """Return every home's sums that the store keeps, also of those that are held."""
    names = [stream.name for stream in config.streams]
    return [
        one for name in names for one in reader.period_sums(name, 0, lookup.LAST_BUCKET, held=True)
    ]


def _stream(args: argparse.Namespace, config: AggregatorConfig) -> StreamTable | None:
    if args.stream is not None:
        return common.find_stream(args, config)
    if args.curve is not None:
        raise ConfigError("edge-ldp replay", "--curve", "expected --stream beside it")
    return None


def _progress(*, quiet: bool) -> Progress:
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    off = quiet or not console.is_terminal
    return Progress(*columns, TimeRemainingColumn(), console=console, disable=off)
