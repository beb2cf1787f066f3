"""What `query` answers: its value, and how it is shown to people and in spreadsheets."""

from collections.abc import Iterable, Sequence
from datetime import UTC, tzinfo

from msgspec import field
from msgspec.structs import asdict

from aggregator.answers import units
from aggregator.answers.curves import Curve, QuantileRow, RangeRow, ShownDensity
from aggregator.answers.parts import M3, AnswerPart, InUnit, Iso, Kwh, Reports, Seconds, Share, Span
from aggregator.answers.plan_view import PlanTerms, plan_terms
from aggregator.answers.query import Answer, Facts, Figures, GroupFigures
from aggregator.answers.sums_answer import LOCAL, SUMS, SumsAnswer, narrower_mode
from aggregator.answers.sums_text import beside_text, sums_csv, sums_text
from aggregator.config import StreamTable
from aggregator.plans.revision import Revision

COLUMNS = (
    *("at", "mean", "low", "high", "total", "total_low", "total_high"),
    *("energy_kwh", "energy_kwh_low", "energy_kwh_high"),
    *("devices", "missing", "device_slots", "n", "surveys", "withheld"),
)


class AllTimeCounts(AnswerPart, frozen=True, kw_only=True):
    """Reports of all time: counted, rejected, duplicates; null where whole is withheld."""

    counted: Reports | None
    rejected: Reports | None
    duplicates: Reports | None


class BestFigures(AnswerPart, frozen=True, kw_only=True):
    """What is told of a range in one line.

    mode: by reports (local), or by sums where these are narrower and leave out no time that reports
    tell of; mean, low, high; energy_kwh, energy_kwh_low, energy_kwh_high of the slots in which
    devices were there (local), or that homes measured (sums), volume_m3 and its ends: the same of a
    volume, by sums; devices that were heard, or sent
    sums; withheld: the rest is null.
    """

    mode: str
    mean: InUnit | None
    low: InUnit | None
    high: InUnit | None
    energy_kwh: Kwh | None
    energy_kwh_low: Kwh | None
    energy_kwh_high: Kwh | None
    volume_m3: M3 | None = None
    volume_m3_low: M3 | None = None
    volume_m3_high: M3 | None = None
    devices: int | None
    withheld: bool


class QueryAnswer(AnswerPart, frozen=True, kw_only=True):
    """What `query` answers.

    stream, unit, slot_seconds, zone; from_s, to_s: the time covered (null: none), from, to the same
    by the zone's clocks; whole; groups[] by these clocks; spread (unit): how much groups differ
    above θ beyond noise, unseen: by how much they could unnoticed, or null; untold: share of the
    reports of devices that did not say how often, which count as alike; density, null without
    surveys or where it is not asked for; quantiles[], ranges[] as asked for, then bins; theta[]: as
    of `theta`; counts: reports of all time; curated_beside[]: devices that publish a stream of this
    name of their own, in no figure here; group as asked for, or null; warnings[]: how the answer
    differs from what was asked, as the time covered where counts were added up by day; sums: what
    homes' own sums of the range say, null without any or with --mode local; mode: whose means are
    narrower, of the whole or of the groups asked for: local (of reports, which all before is of) or
    sums, where these have such groups, or blocks of hours that they tell better (a warning says
    so); with --mode that one; best: what is told of the range where there is room for one line,
    whatever the groups' mode.
    """

    stream: str
    unit: str
    slot_seconds: Span
    from_s: Seconds | None
    to_s: Seconds | None
    zone: str
    from_: Iso | None = field(name="from")
    to: Iso | None
    whole: Figures
    groups: list[GroupFigures]
    spread: InUnit
    unseen: InUnit | None
    untold: Share
    density: ShownDensity | None
    quantiles: list[QuantileRow]
    ranges: list[RangeRow]
    theta: list[PlanTerms]
    counts: AllTimeCounts
    curated_beside: list[str]
    group: str | None
    warnings: list[str]
    sums: SumsAnswer | None
    mode: str
    best: BestFigures


def query_answer(  # noqa: PLR0913 (what is known)
    stream: StreamTable,
    answer: Answer,
    facts: Facts,
    revisions: Iterable[Revision] = (),
    *,
    zone: tzinfo = UTC,
    group: str | None = None,
    beside: Sequence[str] = (),
    warnings: Sequence[str] = (),
    sums: SumsAnswer | None = None,
    mode: str | None = None,
    by: str = "none",
) -> QueryAnswer:
    """Return what `query` answers of these facts."""
    first, last = answer.first_bucket, answer.last_bucket
    from_s = None if first is None else first * stream.bucket_s
    to_s = None if last is None else (last + 1) * stream.bucket_s
    told, curve = None if answer.whole.withheld else facts.records, answer.curve or Curve()
    better = mode or narrower_mode([answer.whole], sums)
    of_groups = better if mode or by == "none" else narrower_mode(answer.groups, sums, by)
    block = sums.block_hours if sums is not None and of_groups == SUMS else 0
    blocks = [f"homes' own sums tell blocks of {block} hours; each hour by reports: --mode local"]
    return QueryAnswer.of(
        stream,
        answer,
        curve,
        stream=stream.name,
        from_s=from_s,
        to_s=to_s,
        zone=str(zone),
        from_=units.iso(from_s, zone),
        to=units.iso(to_s, zone),
        theta=plan_terms(facts.plans, revisions),
        counts=AllTimeCounts(
            **{
                name: None if told is None else sum(getattr(row, name) for row in told)
                for name in AllTimeCounts.__struct_fields__
            }
        ),
        curated_beside=list(beside),
        group=group,
        warnings=[*warnings, *(blocks if by == "hour-of-day" and block > 1 else ())],
        sums=sums,
        mode=of_groups,
        best=_best(answer.whole, sums, better, None if mode else (from_s, to_s)),
    )


def _best(
    whole: Figures, sums: SumsAnswer | None, mode: str, span: tuple[int | None, int | None] | None
) -> BestFigures:
    """Return the one mode's figures: of sums only if they are of all the time of reports."""
    if sums is not None and mode == SUMS and (span is None or sums.is_all_of(*span)):
        return BestFigures.of(sums.whole, mode=SUMS, devices=sums.whole.homes)
    return BestFigures.of(whole, mode=LOCAL)


def query_csv(view: QueryAnswer) -> str:
    """Return the whole range and its groups as CSV: figures as in the JSON, in the unit.

    Where sums are the answer's mode, theirs.
    """
    if view.sums is not None and view.mode == SUMS:
        return sums_csv(view.sums)
    rows = ({**asdict(row), "at": name} for name, row in _named(view))
    return units.csv_text(COLUMNS, rows)


def query_text(view: QueryAnswer, zone: tzinfo = UTC, notes: Iterable[str] = ()) -> str:
    """Return the answer as people read it; `notes`: of its range, a line each."""
    unit, whole = view.unit, view.whole
    if view.sums is not None and view.mode == SUMS:
        lines = [f"{view.stream}, {view.zone}", sums_text(view.sums, unit, zone)]
        lines += [*beside_text(whole, unit, "reports"), *_spread_lines(view), *_last_lines(view)]
        return "\n".join([*lines, ""])
    if view.from_s is None:
        return "\n".join([f"{view.stream}, no reports in this range", *_last_lines(view), ""])
    times = (units.clock_text(at_s, zone) for at_s in (view.from_s, view.to_s))
    heard, missing = map(units.number_text, (whole.devices, whole.missing))
    lines = [
        f"{view.stream}, {' to '.join(times)} {view.zone}",
        f"devices heard {heard}, missing {missing}",
        *notes,
        "",
        _figures_table(view),
    ]
    if whole.withheld or any(group.withheld for group in view.groups):
        lines.append("withheld: fewer devices than [query] min_devices reported, or were left out,")
        lines.append("or the whole and the other groups together would show so few")
    elif whole.mean is not None and not whole.corrected:
        lines.append("no surveys: the interval allows for all that may lie above θ")
    elif whole.mean is not None:
        lines.append(
            "about these devices' values in these slots; a device counts by its time there,"
        )
        lines.append("not by its reports. Holds for honest devices and any distribution")
    if view.untold:
        lines.append(
            f"{view.untold:.0%} of the reports are from devices that did not say how often they "
            "report: all of these count alike"
        )
    if view.groups and view.unseen is not None:
        lines.append(
            f"between groups, what lies above θ differs by {view.spread:,.1f} {unit} beyond noise; "
            f"up to {view.unseen:,.1f} {unit} might not show"
        )
        lines.append("it is estimated from all together: groups need not add up to the whole")
    if any(_is_outside(row) for _, row in _named(view)):
        lines.append("a mean lies outside its 95 %: it is unbiased, so that groups add up;")
        lines.append("only the ends take into account that what lies above θ is not negative")
    lines += _spread_lines(view)
    if view.sums is not None:
        lines += beside_text(view.sums.whole, unit, "homes' own sums")
    return "\n".join([*lines, *_last_lines(view), ""])


def _spread_lines(view: QueryAnswer) -> list[str]:
    """Return how values are spread, which reports alone tell."""
    lines = []
    if view.density is not None and view.quantiles:
        cells = (
            [f"{row.share * 100:g} %", *units.figures((row.value, row.low, row.high))]
            for row in view.quantiles
        )
        lines += ["", units.text_table(["share below", view.unit, "95 % from", "to"], cells)]
        lines.append(f"from {view.density.n:,} reports: {view.density.method}")
        lines += [f"warning: {warning}" for warning in view.density.warnings]
        lines.append("")
    return lines + [
        f"share of values from {row.low:g} to below {row.high:g} {view.unit}: {row.share:.4f}, "
        f"95 % from {row.share_low:.4f} to {row.share_high:.4f}"
        for row in view.ranges
    ]


def _is_outside(row: Figures) -> bool:
    if row.mean is None or row.low is None or row.high is None:
        return False
    return not row.low <= row.mean <= row.high


def _named(view: QueryAnswer) -> list[tuple[str, Figures]]:
    return [("all", view.whole), *((group.at, group) for group in view.groups)]


def _figures_table(view: QueryAnswer) -> str:
    """Return means, and energies where the unit tells of any, each in a unit that fits."""
    rows = _named(view)
    unit, by = units.scale_of(view.unit, units.largest(row.mean for _, row in rows))
    energy, energy_by, has_energy = f"total {view.unit} × slots", 1.0, view.unit in units.ENERGIES
    if has_energy:
        named, energy_by = units.scale_of("kWh", units.largest(row.energy_kwh for _, row in rows))
        energy = f"energy {named}"
    head = ["", f"mean {unit}", "95 % from", "to", energy, "95 % from", "to", "reports"]
    cells = (
        [
            name,
            *units.figures((row.mean, row.low, row.high), by),
            *units.figures((units.energy_of if has_energy else units.total_of)(row), energy_by),
            "-" if row.n is None or row.surveys is None else f"{row.n + row.surveys:,}",
        ]
        for name, row in rows
    )
    return units.text_table(head, cells)


def _last_lines(view: QueryAnswer) -> list[str]:
    """Return what is told of all time, and of curated streams of the same name, in no figure."""
    counts = asdict(view.counts).items()
    lines = [
        f"reports of all time: {', '.join(f'{key} {units.number_text(n)}' for key, n in counts)}"
    ]
    if view.curated_beside:
        lines.append(
            f"not in these figures: {len(view.curated_beside)} curated streams of this name; "
            "`edge-ldp aggregator released` shows them"
        )
    return lines
