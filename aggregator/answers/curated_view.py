"""Answers about curated streams, for machines (JSON) and for people: one device each, no fleet."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, tzinfo
from fractions import Fraction
from functools import cache
from math import sqrt
from operator import attrgetter
from typing import NamedTuple

from msgspec import UNSET, UnsetType, field, to_builtins

from aggregator.answers import parts as typed
from aggregator.answers.curated_sums import (
    ChunkFacts,
    ReleasedError,
    ReleasedSum,
    Value,
    released_sum,
)
from aggregator.answers.local_time import LENGTHS, period
from aggregator.answers.units import clock_text, csv_text, energies, energy_of, iso, text_table
from aggregator.counting.retention import HOUR_S
from aggregator.store.contract import Reader
from edge_ldp.protocol.released import PublicDesign, read_design

CONFIDENCE = 0.95
GROUPS = ("none", *LENGTHS)
TOTAL = attrgetter("total", "low", "high")
CSV = (
    *("device", "stream", "unit", "slot_seconds", "from", "to", "total", "low", "high"),
    *("energy_kwh", "energy_kwh_low", "energy_kwh_high", "mean", "sd", "readings", "missing"),
)
NOTE = (
    "curated: one device's own stream under central DP (event-level), no part of any fleet figure;"
    " sums are of readings cut at θ"
)


class CuratedSum(typed.AnswerPart, frozen=True, kw_only=True):
    """A sum over a range of slots.

    from_s, to_s, from, to (of the zone), total, low, high (95 %), energy_kwh and its _low, _high
    (null where the unit tells of none), mean, sd (of the noise), readings, missing (slots), exact:
    the variance is; whole_blocks: no prediction is in it, thetas (both not of an empty range).
    """

    from_s: typed.Seconds
    to_s: typed.Seconds
    from_: typed.Iso | None = field(name="from")
    to: typed.Iso | None
    total: typed.WholeSlots | None
    low: typed.UnitSlots | None
    high: typed.UnitSlots | None
    energy_kwh: typed.Kwh | None
    energy_kwh_low: typed.Kwh | None
    energy_kwh_high: typed.Kwh | None
    mean: typed.InUnit | None
    sd: typed.UnitSlots | None
    readings: int
    missing: int
    exact: bool
    whole_blocks: bool | UnsetType = UNSET
    thetas: list[int] | UnsetType = UNSET


class CuratedStreamSums(typed.AnswerPart, frozen=True, kw_only=True):
    """A device's curated stream: how it is made, what a reading pays, and its sums.

    device, stream, unit, slot_seconds, structure, fanout, pruned, chunk, smoother, missing (what a
    missing value becomes), ceiling, epsilon, epsilon_per_reading, theta, thetas, chunks, series;
    sums[]; error: how it contradicts itself, which leaves it without sums.
    """

    device: str
    stream: str
    unit: str
    slot_seconds: typed.Span
    structure: str
    fanout: int
    pruned: int
    chunk: int
    smoother: str
    missing: str
    ceiling: int
    epsilon: float
    epsilon_per_reading: float
    theta: int
    thetas: list[int]
    chunks: int
    series: int
    sums: list[CuratedSum]
    error: str | UnsetType = UNSET


class ReleasedAnswer(typed.AnswerPart, frozen=True, kw_only=True):
    """What `released` answers.

    note; released[]: one for each device's curated stream.
    """

    note: str = NOTE
    released: list[CuratedStreamSums]


def ranges(
    first: int, end: int, design: PublicDesign, by: str, zone: tzinfo = UTC
) -> Iterator[tuple[int, int]]:
    """Yield the ranges of slots [first, end) that a grouping makes; slots lie in one each.

    A slot belongs to the group in which it begins: an hour of UTC, a day or week of the zone.
    """
    seconds = design.slot_seconds
    while first < end:
        at_s, end_s = first * seconds, end * seconds
        if by != "none":
            end_s = (at_s // HOUR_S + 1) * HOUR_S if by == "hour" else period(zone, by, at_s)[1]
        until = min(end, -(-end_s // seconds))
        yield first, until
        first = until


class CuratedStream(NamedTuple):
    """One device's curated stream: its key from 256, every chunk's facts, newest design."""

    device: str
    key: int
    chunks: dict[tuple[int, int], ChunkFacts]
    design: PublicDesign


def read_streams(reader: Reader) -> list[CuratedStream]:
    """Return every curated stream that the store holds, by device and key."""
    found: dict[tuple[str, int], dict[tuple[int, int], ChunkFacts]] = {}
    design_of = cache(read_design)
    for row in reader.released_chunks():
        facts = ChunkFacts(row.theta, design_of(row.design))
        found.setdefault((row.device, row.key), {})[row.series, row.chunk] = facts
    return [
        CuratedStream(*whose, chunks, chunks[max(chunks)].design) for whose, chunks in found.items()
    ]


def read_curated(  # noqa: PLR0913 (what is asked for)
    reader: Reader,
    *,
    device: str | None,
    stream: str | None,
    since_s: int | None,
    until_s: int | None,
    by: str,
    zone: tzinfo,
) -> ReleasedAnswer:
    """Return what `released` answers; a stream that contradicts itself has an `error`, no sums."""
    found = []
    for one in read_streams(reader):
        if device not in (None, one.device) or stream not in (None, one.design.name):
            continue
        seconds, (first, end) = one.design.slot_seconds, reader.released_span(one.device, one.key)
        first = first if since_s is None else max(first, since_s // seconds)
        end = end if until_s is None else min(end, -(-until_s // seconds))
        values = [Value(*row) for row in reader.released_values(one.device, one.key, first, end)]
        sums, error = [], ""
        try:
            parts = ranges(first, end, one.design, by, zone)
            sums = curated_sums(values, one, parts, zone)
        except ReleasedError as exc:
            error = str(exc)
        found.append(curated_stream(one, sums, error))
    return ReleasedAnswer(released=found)


def curated_sums(
    values: Sequence[Value],
    one: CuratedStream,
    parts: Iterable[tuple[int, int]],
    zone: tzinfo = UTC,
) -> list[CuratedSum]:
    """Return one sum for each range of slots [low, high); empty ones have no figures.

    values: of all ranges, in rising slots. Raises ReleasedError.
    """
    rows, slot = [], attrgetter("slot")
    for low, high in parts:
        begin, end = (bisect_left(values, border, key=slot) for border in (low, high))
        found = released_sum(values[begin:end], one.chunks, low, high)
        rows.append(_sum(found, one.design, low, high, zone))
    return rows


def curated_stream(
    one: CuratedStream, sums: list[CuratedSum], error: str = ""
) -> CuratedStreamSums:
    """Return what is public of a stream, and its sums; `error`: it contradicts itself."""
    design, chunks = one.design, one.chunks
    thetas = [facts.theta for _, facts in sorted(chunks.items())]
    return CuratedStreamSums.of(
        design,
        device=one.device,
        stream=design.name,
        structure=design.kind,
        epsilon=float(Fraction(*design.epsilon)),
        epsilon_per_reading=float(Fraction(*design.paid)),
        theta=thetas[-1],
        thetas=[theta for at, theta in enumerate(thetas) if not at or theta != thetas[at - 1]],
        chunks=len(chunks),
        series=len({series for series, _ in chunks}),
        sums=sums,
        error=error or UNSET,
    )


def released_csv(view: ReleasedAnswer) -> str:
    """Return every sum of every stream as a row."""
    rows = (
        {**to_builtins(stream), **to_builtins(row)}
        for stream in view.released
        for row in stream.sums
    )
    return csv_text(CSV, rows)


def released_text(view: ReleasedAnswer, zone: tzinfo = UTC) -> str:
    """Return the answer as people read it, energies where the unit tells of any."""
    lines = [view.note, ""]
    for stream in view.released:
        unit = stream.unit
        lines.append(
            f"{stream.device} {stream.stream}: ε {stream.epsilon_per_reading:g} a "
            f"reading, θ {stream.theta} {unit}, {stream.structure} of {stream.chunk} "
            f"values, fan-out {stream.fanout}, {stream.pruned} levels pruned"
        )
        kwh = any(row.energy_kwh is not None for row in stream.sums)
        what = "energy kWh" if kwh else f"total {unit} × slots"
        head = [f"from {zone}", what, "95 % from", "to", f"mean {unit}", "values", "missing"]
        cells = [
            [
                clock_text(row.from_s, zone),
                *(_number(one, 2 * kwh) for one in (energy_of if kwh else TOTAL)(row)),
                _number(row.mean),
                *(f"{one:,}" for one in (row.readings, row.missing)),
            ]
            for row in stream.sums
        ]
        lines += [text_table(head, cells), ""]
    return "\n".join(lines)


def _sum(
    found: ReleasedSum, design: PublicDesign, first: int, end: int, zone: tzinfo
) -> CuratedSum:
    total, some = found.sum, found.sum.readings > 0
    whole, low, high = (total.total, *total.interval(CONFIDENCE)) if some else (None, None, None)
    from_s, to_s = first * design.slot_seconds, end * design.slot_seconds
    return CuratedSum.of(
        total,
        from_s=from_s,
        to_s=to_s,
        from_=iso(from_s, zone),
        to=iso(to_s, zone),
        total=whole,
        low=low,
        high=high,
        **energies(design, whole, low, high),
        mean=total.total / total.readings if some else None,
        sd=sqrt(total.variance) if some else None,
        exact=total.is_exact if some else True,
        whole_blocks=found.is_whole if some else UNSET,
        thetas=list(found.thetas) if some else UNSET,
    )


def _number(value: float | None, digits: int = 0) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"
