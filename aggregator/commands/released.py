"""`edge-ldp aggregator released`: what curated streams say, beside the fleet's answers."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from aggregator.answers.curated_lookup import read_span, read_streams, read_values
from aggregator.answers.curated_sums import ReleasedError
from aggregator.answers.curated_view import (
    GROUPS,
    NOTE,
    curated_stream_view,
    ranges,
    released_text,
    sums_view,
)
from aggregator.answers.units import iso

if TYPE_CHECKING:
    import argparse
    from datetime import tzinfo

    from aggregator.answers.curated_lookup import CuratedStream
    from aggregator.store.contract import Reader

JSON_KEYS = """\
note; released[]: one for each device's curated stream: device, stream, unit, slot_seconds,
structure, fanout, pruned, chunk, smoother, missing, ceiling, epsilon, epsilon_per_reading, theta,
thetas, chunks, series, and sums[]: from_s, to_s (UTC), from, to (ISO 8601 of the zone), total, low,
high (95 %, unit × slots), energy_kwh and its _low, _high (null where the unit tells of none), mean,
sd (of the noise), readings, missing (slots), exact, whole_blocks (no prediction in it), thetas.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's own options; --json, --stream, --since and --until are as for query."""
    parser.add_argument("--device", help="of one device; all unless given")
    parser.add_argument("--by", choices=GROUPS, default="none", help="group the range")


def answer_released(reader: Reader, args: argparse.Namespace, zone: tzinfo) -> dict[str, Any]:
    """Return the JSON of `released`; a stream that contradicts itself has an `error`, no sums."""
    found = [
        one
        for one in read_streams(reader)
        if args.device in (None, one.device) and args.stream in (None, one.design.name)
    ]
    return {"note": NOTE, "released": [_answer(reader, one, args, zone) for one in found]}


def print_text(view: dict[str, Any], zone: tzinfo) -> str:
    """Return the answer as people read it."""
    for stream in view["released"]:
        if "error" in stream:
            sys.stderr.write(f"{stream['device']} {stream['stream']}: {stream['error']}\n")
    return released_text(view, zone)


def _answer(
    reader: Reader, one: CuratedStream, args: argparse.Namespace, zone: tzinfo
) -> dict[str, Any]:
    seconds = one.design.slot_seconds
    first, end = read_span(reader, one.device, one.key)
    if args.since is not None:
        first = max(first, args.since // seconds)
    if args.until is not None:
        end = min(end, -(-args.until // seconds))
    view = curated_stream_view(one.device, one.chunks, one.design)
    values = read_values(reader, one.device, one.key, first, end)
    try:
        parts = ranges(first, end, one.design, args.by, zone)
        rows = sums_view(values, one.chunks, one.design, parts)
    except ReleasedError as exc:
        return {**view, "sums": [], "error": str(exc)}
    for row in rows:
        row |= {"from": iso(row["from_s"], zone), "to": iso(row["to_s"], zone)}
    return {**view, "sums": rows}
