"""`edge-ldp replay`: count the archive anew and compare it with the store.

Exit codes: 0 equal; 1 some counts differ; 2 wrong usage or configuration; 4 a store or an archive
that cannot be used; 5 nothing to answer with (--stream, no reports of it).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from aggregator.archive_compare import compare, rows_of, tally_of_rows, totals_of
from aggregator.archive_record import is_settled
from aggregator.config import ConfigError, load_config
from aggregator.query import answer
from aggregator.shell.archive import read_about
from aggregator.shell.archive_files import Compacted, compact
from aggregator.shell.lookup import LAST_BUCKET, read_facts, read_records
from aggregator.shell.replay import count_archive
from aggregator.shell.store import StoreError
from aggregator.shell.stores import open_reader
from aggregator.views import answer_text, answer_view

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aggregator.archive_compare import Compared
    from aggregator.config import AggregatorConfig, StreamTable
    from aggregator.errors import AggregatorError
    from aggregator.shell.archive_spool import IsSettled
    from aggregator.shell.replay import Counted
    from aggregator.shell.store import Reader
    from aggregator.tally import Tally

EXIT_DIFFER = 1
EXIT_CONFIG = 2
EXIT_STORE = 4
EXIT_NOTHING = 5
SHOWN = 20
DESCRIPTION = """\
Bring what the aggregator spooled into the archive's files, count all of them again (DuckDB) and
compare every count with the store's: to the bit. It may run while the aggregator does: counts that
the store changed meanwhile are left out and their number is told.
"""
KEYS = """\
--json: fleet; archive; complete (it began with the store); compacted: reports taken from the spool,
repeats, conflicts, files written; reports, days, resumed (days); compared: cells, equal, moving,
differ, and the first of those that differ: stream, epoch, bucket, code, archive, store; seconds:
compact, count, compare; answer: as of `edge-ldp aggregator query --json`, from the archive's counts
(with --stream, else null).
Exit codes: 0 equal, 1 some differ, 2 usage or configuration, 4 a store or archive that cannot be
used, 5 no reports of the stream.
"""


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    args = _parser().parse_args(argv)
    try:
        return _replay(args)
    except ConfigError as exc:
        return _fail(exc, EXIT_CONFIG)
    except StoreError as exc:
        return _fail(exc, EXIT_STORE)


def _replay(args: argparse.Namespace) -> int:
    config = load_config(args.config)
    if config.archive is None:
        raise ConfigError(str(args.config), "archive", "expected an [archive] with its path")
    stream = _stream(args, config)
    place = Path(config.archive.path)
    about = read_about(place)
    reader = open_reader(config, str(args.config))
    try:
        view = _run(args, config, place, reader)
        view = {"fleet": config.fleet, "archive": str(place), "complete": about.complete, **view}
        tally = view.pop("tally")
        answered = None if stream is None else _answer(reader, config, stream, tally)
    finally:
        reader.close()
    if args.json:
        sys.stdout.write(json.dumps({**view, "answer": answered}) + "\n")
    else:
        sys.stdout.write(_text(view) + ("" if answered is None else answer_text(answered)))
    if view["compared"]["differ"]:
        return EXIT_DIFFER
    return EXIT_NOTHING if answered is not None and answered["whole"]["mean"] is None else 0


def _run(
    args: argparse.Namespace, config: AggregatorConfig, place: Path, reader: Reader
) -> dict[str, Any]:
    """Compact, count and compare; the store is read before and after the archive."""
    slot_seconds = {stream.id: stream.slot_seconds for stream in config.streams}
    bucket_slots = {stream.id: stream.bucket_slots for stream in config.streams}
    clock = [time.monotonic()]
    before = _store_counts(reader, config)
    with _progress(quiet=args.json) as bars:
        bar = bars.add_task("spool", total=None)
        done = compact(
            place,
            slot_seconds,
            _settled_in(reader),
            lambda at, total: bars.update(bar, completed=at >> 10, total=total >> 10),
        )
        clock.append(time.monotonic())
        days = bars.add_task("days", total=None)
        counted = count_archive(
            place,
            bucket_slots,
            resume=args.resume,
            told=lambda at, total: bars.update(days, completed=at, total=total),
        )
    clock.append(time.monotonic())
    compared = compare(counted.tally, before, _store_counts(reader, config))
    clock.append(time.monotonic())
    return _view(done, counted, compared, clock)


def _view(
    done: Compacted, counted: Counted, compared: Compared, clock: Sequence[float]
) -> dict[str, Any]:
    spent = [round(after - before, 3) for before, after in pairwise(clock)]
    return {
        "compacted": asdict(done),
        "reports": counted.tally.total,
        "days": counted.days,
        "resumed": counted.resumed,
        "compared": {
            "cells": compared.cells,
            "equal": compared.equal,
            "moving": compared.moving,
            "differ": len(compared.differ),
            "first": [asdict(one) for one in compared.differ[:SHOWN]],
        },
        "seconds": dict(zip(("compact", "count", "compare"), spent, strict=True)),
        "tally": counted.tally,
    }


def _text(view: dict[str, Any]) -> str:
    compacted, compared = view["compacted"], view["compared"]
    taken = "{reports} reports into {files} files, {repeats} there before, {conflicts} in conflict"
    found = "{cells}, {equal} equal, {differ} differ, {moving} moving"
    cell = "stream {stream} epoch {epoch} bucket {bucket} code {code}"
    lines = [
        f"spool: {taken.format(**compacted)}",
        f"archive: {view['reports']} reports in {view['days']} days",
        f"counts: {found.format(**compared)}",
    ]
    told = f"  {cell}: {{archive}} in the archive, {{store}} in the store"
    lines += [told.format(**one) for one in compared["first"]]
    if compared["differ"] and not view["complete"]:
        lines.append("the archive began after the store: what was counted before is not in it")
    return "\n".join([*lines, ""])


def _answer(
    reader: Reader, config: AggregatorConfig, stream: StreamTable, tally: Tally
) -> dict[str, Any]:
    """Return what `query` answers, from the archive's counts."""
    facts = replace(
        read_facts(reader, config, stream, 0, LAST_BUCKET),
        rows=rows_of(tally, stream.id, 0, LAST_BUCKET),
        totals=totals_of(tally, stream.id),
    )
    found = answer(stream, facts, "none")
    return answer_view(stream, found, facts.plans, read_records(reader, stream))


def _store_counts(reader: Reader, config: AggregatorConfig) -> Tally:
    return tally_of_rows({s.id: reader.counts(s.id, 0, LAST_BUCKET) for s in config.streams})


def _settled_in(reader: Reader) -> IsSettled:
    def ask(device: str, stream: int, batch: int) -> bool:
        key = (device, stream)
        return any(at == key and is_settled(record.state, batch) for at, record in reader.records())

    return ask


def _stream(args: argparse.Namespace, config: AggregatorConfig) -> StreamTable | None:
    if args.stream is None:
        return None
    for stream in config.streams:
        if stream.name == args.stream:
            return stream
    known = ", ".join(stream.name for stream in config.streams)
    raise ConfigError(str(args.config), "--stream", f"expected one of {known}")


def _progress(*, quiet: bool) -> Progress:
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    off = quiet or not console.is_terminal
    return Progress(*columns, TimeRemainingColumn(), console=console, disable=off)


def _fail(reason: AggregatorError, code: int) -> int:
    sys.stderr.write(f"edge-ldp replay: {reason}\n")
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="edge-ldp replay",
        description=DESCRIPTION,
        epilog=KEYS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("-c", "--config", type=Path, required=True, help="the aggregator's TOML")
    add("--stream", help="answer with this stream's sums and density from the archive's counts")
    add("--resume", action="store_true", help="go on with a replay that was interrupted")
    add("--json", action="store_true", help="for machines")
    return parser
