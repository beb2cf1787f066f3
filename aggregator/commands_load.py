"""`edge-ldp aggregator load-curve`: a stream's sums hour by hour."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from aggregator.commands import (
    EXIT_NOTHING,
    add_command,
    add_range,
    fail,
    find_group,
    find_stream,
    reading,
    show,
)
from aggregator.load_curve import curve_view
from aggregator.shell.load_lookup import read_load_curve
from aggregator.shell.lookup import LAST_BUCKET

if TYPE_CHECKING:
    import argparse


def load_curve(args: argparse.Namespace) -> int:
    """Show a stream hour by hour: reports, mean with a 95-percent interval, total."""
    with reading(args) as (config, reader):
        stream = find_stream(args, config)
        first = 0 if args.since is None else args.since // stream.bucket_s
        last = LAST_BUCKET if args.until is None else (args.until - 1) // stream.bucket_s
        curve = read_load_curve(reader, stream, first, last, find_group(args, reader))
    view = curve_view(stream, curve, config.query.min_devices) | {"group": args.group}
    show(args, view, lambda: _text(view))
    if view["hours"]:
        return 0
    return fail(f"{stream.name}: no stream reports in this range yet", EXIT_NOTHING)


def warn(warnings: list[str]) -> None:
    """Say on standard error what an answer is not."""
    for warning in warnings:
        sys.stderr.write(f"edge-ldp aggregator: {warning}\n")


def add(commands: Any) -> None:
    """Add the command's options."""
    parser = add_command(commands, load_curve, curve_view.__doc__)
    parser.add_argument("--stream", help="its name; the first one unless given")
    parser.add_argument("--group", help='of one group of devices; "" for those in none')
    add_range(parser)


def _text(view: dict[str, Any]) -> str:
    lines = [f"{view['stream']} by hour (UTC), {view['unit']}; values above θ count as θ"]
    for row in view["hours"]:
        at = datetime.fromtimestamp(row["from_s"], UTC).strftime("%Y-%m-%d %H:%M")
        if row["mean"] is None:
            why = "withheld: too few devices" if row["withheld"] else "no stream reports"
            lines.append(f"{at}  {why}")
            continue
        lines.append(
            f"{at}  {row['mean']:12,.1f}  {row['low']:,.1f} to {row['high']:,.1f}"
            f"  n {row['n']:,}  total {row['total']:,.0f}"
        )
    return "\n".join([*lines, ""])
