"""`edge-ldp aggregator load-curve`: a stream's sums by hour, day or week."""

from __future__ import annotations

import argparse
from inspect import cleandoc
from typing import TYPE_CHECKING, Any

from aggregator.answers.load_curve import curve_csv, curve_text, curve_view
from aggregator.answers.load_lookup import read_load_curve
from aggregator.answers.local_time import LENGTHS
from aggregator.answers.lookup import LAST_BUCKET, read_extent, read_presence
from aggregator.answers.units import clock_text
from aggregator.commands.common import (
    EXIT_NOTHING,
    add_command,
    add_forms,
    add_range,
    fail,
    find_group,
    find_stream,
    find_zone,
    reading,
    show,
    warn,
)

if TYPE_CHECKING:
    from datetime import tzinfo


def load_curve(args: argparse.Namespace) -> int:
    """Show a stream by hour, day or week: reports, mean with 95-percent interval, total."""
    with reading(args) as (config, reader):
        stream = find_stream(args, config)
        first = 0 if args.since is None else args.since // stream.bucket_s
        last = LAST_BUCKET if args.until is None else (args.until - 1) // stream.bucket_s
        zone, group = find_zone(args, config), find_group(args, reader)
        curve = read_load_curve(reader, stream, first, last, group, by=args.by, zone=zone)
        surveyed, extent = False, None
        if not len(curve.bucket):
            surveyed = len(read_presence(reader, stream, first, last, group)) > 0
            extent = read_extent(reader, stream, group)
    view = curve_view(stream, curve, config.query.min_devices, args.by, zone)
    view |= {"group": args.group}
    warn(view["warnings"])
    show(args, view, lambda: curve_text(view, zone), curve_csv)
    if len(curve.bucket):
        return 0
    reason = nothing_text(extent, zone)
    if surveyed:
        reason = f"surveys only until θ is chosen (after {stream.min_survey_reports:,} of them:"
        reason += " `status`); `query` tells the distribution"
    return fail(f"{stream.name}: {reason}", EXIT_NOTHING)


def nothing_text(extent: tuple[int, int] | None, zone: tzinfo) -> str:
    """Return that a range has no reports, and from when to when there are some (`read_extent`)."""
    if extent is None:
        return "no reports in this range yet: `status` says who is silent"
    begin, end = (clock_text(at_s, zone) for at_s in extent)
    return f"no reports in this range ({zone}); there are some from {begin} to {end}"


def _by(text: str) -> str:
    if text == "hour-of-day":
        expected = f"expected one of {', '.join(LENGTHS)}; `query --by {text}` adds up such hours"
        raise argparse.ArgumentTypeError(expected)
    return text


def add(commands: Any) -> None:
    """Add the command's options."""
    keys = f"{cleandoc(curve_view.__doc__ or '')}\ngroup: as asked for, or null."
    parser = add_command(commands, load_curve, keys)
    parser.add_argument("--stream", help="its name; the first one unless given")
    add_forms(parser)
    parser.add_argument(
        "--by", type=_by, choices=LENGTHS, default="hour", help="hours unless given"
    )
    parser.add_argument("--group", help='of one group of devices; "" for those in none')
    add_range(parser)
