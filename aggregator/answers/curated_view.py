"""Answers about curated streams, for machines (JSON) and for people: one device each, no fleet."""

from __future__ import annotations

from datetime import UTC, tzinfo
from fractions import Fraction
from math import sqrt
from typing import TYPE_CHECKING, Any

from aggregator.answers.curated_sums import ReleasedSum, released_sum
from aggregator.answers.local_time import LENGTHS, period
from aggregator.answers.units import clock_text, csv_text, energies, text_table
from aggregator.counting.retention import HOUR_S

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from aggregator.answers.curated_sums import ChunkFacts, Value
    from edge_ldp.protocol.released import PublicDesign

CONFIDENCE = 0.95
GROUPS = ("none", *LENGTHS)
ENERGY = ("energy_kwh", "energy_kwh_low", "energy_kwh_high")
CSV = (
    *("device", "stream", "unit", "slot_seconds", "from", "to", "total", "low", "high"),
    *(*ENERGY, "mean", "sd", "readings", "missing"),
)
NOTE = (
    "curated: one device's own stream under central DP (event-level), no part of any fleet figure;"
    " sums are of readings cut at θ"
)


def ranges(
    first: int, end: int, design: PublicDesign, by: str, zone: tzinfo = UTC
) -> Iterator[tuple[int, int]]:
    """Yield the ranges of slots [first, end) that a grouping makes; slots lie in one each.

    A slot belongs to the group in which it begins: an hour of UTC, a day or week of the zone.
    """
    if first >= end:
        return
    if by == "none":
        yield first, end
        return
    seconds = design.slot_seconds
    at = first
    while at < end:
        at_s = at * seconds
        end_s = (at_s // HOUR_S + 1) * HOUR_S if by == "hour" else period(zone, by, at_s)[1]
        until = min(end, -(-end_s // seconds))
        yield at, until
        at = until


def sums_view(
    values: Sequence[Value],
    chunks: Mapping[tuple[int, int], ChunkFacts],
    design: PublicDesign,
    parts: Iterable[tuple[int, int]],
) -> list[dict[str, Any]]:
    """Return one sum for each range of slots [low, high), which rise; empty ones have no figures.

    values: of all ranges, in rising slots. Raises ReleasedError.
    """
    rows = []
    at = 0
    for low, high in parts:
        until = at
        while until < len(values) and values[until].slot < high:
            until += 1
        rows.append(_sum_view(released_sum(values[at:until], chunks, low, high), design, low, high))
        at = until
    return rows


def curated_stream_view(
    device: str, chunks: Mapping[tuple[int, int], ChunkFacts], design: PublicDesign
) -> dict[str, Any]:
    """Return what is public of a stream: how it is made, and what a reading pays."""
    thetas = [facts.theta for _, facts in sorted(chunks.items())]
    return {
        "device": device,
        "stream": design.name,
        "unit": design.unit,
        "slot_seconds": design.slot_seconds,
        "structure": design.kind,
        "fanout": design.fanout,
        "pruned": design.pruned,
        "chunk": design.chunk,
        "smoother": design.smoother,
        "missing": design.missing,
        "ceiling": design.ceiling,
        "epsilon": float(Fraction(*design.epsilon)),
        "epsilon_per_reading": float(Fraction(*design.paid)),
        "theta": thetas[-1],
        "thetas": [theta for at, theta in enumerate(thetas) if not at or theta != thetas[at - 1]],
        "chunks": len(chunks),
        "series": len({series for series, _ in chunks}),
    }


def released_csv(view: Mapping[str, Any]) -> str:
    """Return every sum of every stream as a row."""
    return csv_text(
        CSV, ({**stream, **row} for stream in view["released"] for row in stream["sums"])
    )


def released_text(view: Mapping[str, Any], zone: tzinfo = UTC) -> str:
    """Return the answer as people read it, energies where the unit tells of any."""
    lines = [view["note"], ""]
    for stream in view["released"]:
        unit = stream["unit"]
        lines.append(
            f"{stream['device']} {stream['stream']}: ε {stream['epsilon_per_reading']:g} a "
            f"reading, θ {stream['theta']} {unit}, {stream['structure']} of {stream['chunk']} "
            f"values, fan-out {stream['fanout']}, {stream['pruned']} levels pruned"
        )
        kwh = any(row["energy_kwh"] is not None for row in stream["sums"])
        keys = ENERGY if kwh else ("total", "low", "high")
        what = "energy kWh" if kwh else f"total {unit} × slots"
        head = [f"from {zone}", what, "95 % from", "to", f"mean {unit}", "values", "missing"]
        cells = [
            [
                clock_text(row["from_s"], zone),
                *(_number(row[name], 2 * kwh) for name in keys),
                _number(row["mean"]),
                *(f"{row[name]:,}" for name in ("readings", "missing")),
            ]
            for row in stream["sums"]
        ]
        lines += [text_table(head, cells), ""]
    return "\n".join(lines)


def _sum_view(found: ReleasedSum, design: PublicDesign, low: int, high: int) -> dict[str, Any]:
    total = found.sum
    at = {"from_s": low * design.slot_seconds, "to_s": high * design.slot_seconds}
    if not total.readings:
        empty = dict.fromkeys(("total", "low", "high", "mean", "sd"))
        return {
            **at,
            **empty,
            **energies(design, None, None, None),
            "readings": 0,
            "missing": total.missing,
            "exact": True,
        }
    from_total, to_total = total.interval(CONFIDENCE)
    return {
        **at,
        "total": total.total,
        "low": from_total,
        "high": to_total,
        **energies(design, total.total, from_total, to_total),
        "mean": total.total / total.readings,
        "sd": sqrt(total.variance),
        "readings": total.readings,
        "missing": total.missing,
        "exact": total.is_exact,
        "whole_blocks": found.is_whole,
        "thetas": list(found.thetas),
    }


def _number(value: float | None, digits: int = 0) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"
