"""What `load-curve` answers: its value, and how it is shown to people and in spreadsheets."""

from collections.abc import Sequence
from datetime import UTC, tzinfo

import numpy as np
from msgspec import UNSET, UnsetType, field
from msgspec.structs import asdict

from aggregator.answers import parts, units
from aggregator.answers.load_curve import LoadCurve
from aggregator.answers.local_time import LENGTHS, Spans
from aggregator.answers.sums_answer import SUMS, SumsAnswer, narrower_mode
from aggregator.answers.sums_text import beside_text, sums_csv, sums_text
from aggregator.config import StreamTable
from edge_ldp.arrays import Ints

_LATE = (
    "sums are kept by hours of UTC, or longer: days of this zone do not begin with one, and are "
    "shown from the next on"
)
NOISY, FINE = 0.5, 0.25  # half-widths by the mean: of a curve that is noise, of one that is not
COLUMNS = (
    *("from", "from_s", "mean", "low", "high", "total", "total_low", "total_high"),
    *("energy_kwh", "energy_kwh_low", "energy_kwh_high", "n", "device_slots", "withheld"),
)


class CurveSpan(parts.AnswerPart, frozen=True, kw_only=True):
    """An hour, day or week.

    from_s: its first second, from: the same by the zone; n: stream reports; device_slots: slots in
    which devices were there; mean, low, high (95 %) of values truncated at θ; total = mean ×
    device_slots, total_low, total_high; energy_kwh, energy_kwh_low, energy_kwh_high the same as
    energy; withheld: n to energies are null, because fewer devices than query.min_devices reported,
    or because the other spans, or all devices less the group, would reveal so few.
    """

    from_s: parts.Seconds
    from_: parts.Iso | None = field(name="from")
    n: parts.Reports | None
    device_slots: int | None
    mean: parts.InUnit | None
    low: parts.InUnit | None
    high: parts.InUnit | None
    total: parts.UnitSlots | None
    total_low: parts.UnitSlots | None
    total_high: parts.UnitSlots | None
    energy_kwh: parts.Kwh | None
    energy_kwh_low: parts.Kwh | None
    energy_kwh_high: parts.Kwh | None
    withheld: bool


class CurveNoise(parts.AnswerPart, frozen=True, kw_only=True):
    """How noisy a curve is whose intervals are wider than half of its mean.

    half_width (unit, the middle one of the intervals), mean (unit, of all), devices, times: how
    many times as many devices would bring intervals to a quarter of the mean (null: the mean is 0),
    and words that say so.
    """

    half_width: parts.InUnit
    mean: parts.InUnit
    devices: int
    times: float | None
    words: str


class CurveAnswer(parts.AnswerPart, frozen=True, kw_only=True):
    """What `load-curve` answers.

    stream, unit, slot_seconds, zone; hours[], days[] or weeks[] of the zone, those with reports;
    noise: null, or of a curve that is mostly noise; warnings[]: what days are not, in words; group:
    as asked for, or null; sums: as of `query`, null without any or with --mode local; mode: as of
    `query`: local, or sums, whose periods and parts of the day are then the curve.
    """

    stream: str
    unit: str
    slot_seconds: parts.Span
    zone: str
    hours: list[CurveSpan] | UnsetType = UNSET
    days: list[CurveSpan] | UnsetType = UNSET
    weeks: list[CurveSpan] | UnsetType = UNSET
    noise: CurveNoise | None
    warnings: list[str]
    group: str | None
    sums: SumsAnswer | None
    mode: str

    @property
    def spans(self) -> tuple[str, list[CurveSpan]]:
        """Hours, days or weeks: which, and all of them."""
        found = zip(LENGTHS, (self.hours, self.days, self.weeks), strict=True)
        return next((by, rows) for by, rows in found if not isinstance(rows, UnsetType))


def curve_answer(  # noqa: PLR0913 (what is asked for)
    stream: StreamTable,
    curve: LoadCurve,
    least: int = 1,
    by: str = "hour",
    zone: tzinfo = UTC,
    *,
    group: str | None = None,
    sums: SumsAnswer | None = None,
    mode: str | None = None,
) -> CurveAnswer:
    """Return what `load-curve` answers; figures of fewer than `least` devices are withheld."""
    of = Spans(stream, by, zone)
    slots = of.sizes(curve.bucket) * stream.bucket_slots
    columns = (curve.bucket, curve.device_slots, curve.n, curve.mean, curve.low, curve.high)
    hidden = curve.withheld(least, of)
    rows = [
        _span(of, *row, few=few)
        for few, *row in zip(hidden, *(column.tolist() for column in columns), strict=True)
    ]
    return CurveAnswer.of(
        stream,
        stream=stream.name,
        zone=str(zone),
        hours=rows if by == "hour" else UNSET,
        days=rows if by == "day" else UNSET,
        weeks=rows if by == "week" else UNSET,
        noise=_noise(curve, slots, [not row.withheld for row in rows], of),
        warnings=[_LATE] if any(map(of.is_late, curve.bucket.tolist())) else [],
        group=group,
        sums=sums,
        mode=mode or narrower_mode(rows, sums, by),
    )


def _span(  # noqa: PLR0913, PLR0917 (a row)
    of: Spans, bucket: int, there: int, n: int, mean: float, low: float, high: float, *, few: bool
) -> CurveSpan:
    from_s = bucket * of.stream.bucket_s
    told: list[float | None] = [None] * 3
    totals: list[float | None] = [None] * 3
    if n and not few:
        told, totals = [mean, low, high], [mean * there, low * there, high * there]
    return CurveSpan(
        from_s=from_s,
        from_=units.iso(from_s, of.zone),
        n=None if few else n,
        device_slots=None if few else there,
        mean=told[0],
        low=told[1],
        high=told[2],
        **units.ends("total", *totals),
        **units.energies(of.stream, *totals),
        withheld=few,
    )


def _noise(curve: LoadCurve, slots: Ints, shown: Sequence[bool], of: Spans) -> CurveNoise | None:
    """Return how noisy a curve is whose intervals are wider than half of its mean; else None."""
    there = np.array(shown, np.bool_) & (curve.n > 0)
    if not there.any():
        return None
    half = float(np.median((curve.high - curve.low)[there])) / 2
    mean = float(np.average(curve.mean[there], weights=curve.n[there]))
    if half <= NOISY * abs(mean):
        return None
    times = (half / (FINE * abs(mean))) ** 2 if mean else None
    devices = round(float(np.median(curve.device_slots[there] / slots[there])))
    unit, one = of.stream.unit, "an hour" if of.by == "hour" else f"a {of.by}"
    words = f"mostly noise: the mean of {one} is uncertain by ± {half:,.0f} {unit}"
    words += f", the mean over all is {mean:,.0f} {unit}"
    if times is not None:
        words += f"; about {times * devices:,.0f} devices in place of {devices}"
        words += f" would bring that to ± {FINE:.0%}"
        words += f", or `query --by hour-of-day` over about {times:,.0f} days" * (of.by == "hour")
    return CurveNoise(half_width=half, mean=mean, devices=devices, times=times, words=words)


def curve_csv(view: CurveAnswer) -> str:
    """Return the spans as CSV, or the sums' periods where those are the answer's mode."""
    if view.sums is not None and view.mode == SUMS:
        return sums_csv(view.sums)
    return units.csv_text(COLUMNS, ({**asdict(row), "from": row.from_} for row in view.spans[1]))


def curve_text(view: CurveAnswer, zone: tzinfo = UTC) -> str:
    """Return a curve as people read it."""
    if view.sums is not None and view.mode == SUMS:
        return f"{view.stream}, {view.zone}\n{sums_text(view.sums, view.unit, zone)}"
    by, spans = view.spans
    lines = [f"{view.stream} by {by} ({view.zone}), {view.unit}; values above θ count as θ"]
    if view.noise is not None:
        lines.append(view.noise.words)
    has_energy = view.unit in units.ENERGIES
    used = ["energy kWh", "95 % from", "to"] if has_energy else [f"total {view.unit} × slots"]
    rows = [
        [
            units.clock_text(row.from_s, zone),
            *units.figures((row.mean, row.low, row.high)),
            *units.figures(units.energy_of(row) if has_energy else (row.total,)),
            "withheld: too few reporters" if row.n is None else f"{row.n:,}",
        ]
        for row in spans
    ]
    if rows:
        head = [by, f"mean {view.unit}", "95 % from", "to", *used]
        lines += ["", units.text_table([*head, "stream reports"], rows)]  # surveys are apart
    if view.sums is not None:
        lines += beside_text(view.sums.whole, view.unit, "homes' own sums")
    return "\n".join([*lines, ""])
