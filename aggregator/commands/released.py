"""`edge-ldp aggregator released`: what curated streams say, beside the fleet's answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aggregator.answers.curated_lookup import read_span, read_streams, read_values
from aggregator.answers.curated_sums import ReleasedError
from aggregator.answers.curated_view import (
    GROUPS,
    ReleasedAnswer,
    curated_stream,
    curated_sums,
    ranges,
)

if TYPE_CHECKING:
    import argparse
    from datetime import tzinfo

    from aggregator.answers.curated_lookup import CuratedStream
    from aggregator.answers.curated_view import CuratedStreamSums
    from aggregator.store.contract import Reader


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's own options; --json, --stream, --since and --until are as for query."""
    parser.add_argument("--device", help="of one device; all unless given")
    parser.add_argument("--by", choices=GROUPS, default="none", help="group the range")


def answer_released(reader: Reader, args: argparse.Namespace, zone: tzinfo) -> ReleasedAnswer:
    """Return what `released` answers; a stream that contradicts itself has an `error`, no sums."""
    found = [
        one
        for one in read_streams(reader)
        if args.device in (None, one.device) and args.stream in (None, one.design.name)
    ]
    return ReleasedAnswer(released=[_answer(reader, one, args, zone) for one in found])


def errors_of(view: ReleasedAnswer) -> list[str]:
    """Return which streams contradict themselves, and how."""
    return [f"{one.device} {one.stream}: {one.error}" for one in view.released if one.error]


def _answer(
    reader: Reader, one: CuratedStream, args: argparse.Namespace, zone: tzinfo
) -> CuratedStreamSums:
    seconds = one.design.slot_seconds
    first, end = read_span(reader, one.device, one.key)
    if args.since is not None:
        first = max(first, args.since // seconds)
    if args.until is not None:
        end = min(end, -(-args.until // seconds))
    values = read_values(reader, one.device, one.key, first, end)
    parts = ranges(first, end, one.design, args.by, zone)
    try:
        sums = curated_sums(values, one.chunks, one.design, parts, zone)
    except ReleasedError as exc:
        return curated_stream(one.device, one.chunks, one.design, [], str(exc))
    return curated_stream(one.device, one.chunks, one.design, sums)
