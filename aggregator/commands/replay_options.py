"""The options of `edge-ldp replay`."""

from __future__ import annotations

import argparse
from pathlib import Path

from aggregator.answers.local_time import GROUPINGS, LENGTHS
from aggregator.commands.common import add_range, add_zone
from aggregator.replay.density import ESTIMATORS
from aggregator.replay.view import JSON_KEYS
from edge_ldp.arguments import Parser

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


def make_parser() -> argparse.ArgumentParser:
    """Return the parser."""
    parser = Parser(
        prog="edge-ldp replay",
        description=DESCRIPTION,
        epilog=JSON_KEYS + EXITS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("-c", "--config", type=Path, required=True, help="the aggregator's TOML")
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
    add_range(parser)
    add_zone(parser)
    add("--resume", action="store_true", help="go on with a replay that was interrupted")
    add("--compact", action="store_true", help="only bring the spool into files (for a timer)")
    add("--json", action="store_true", help="for machines")
    return parser
