"""How what homes' own sums say is shown: to people, and in spreadsheets."""

from collections.abc import Callable, Collection
from datetime import tzinfo

from msgspec.structs import asdict

from aggregator.answers import units
from aggregator.answers.parts import Interval
from aggregator.answers.sums_answer import VOLUME_KEYS, SumFigures, SumPart, SumPeriod, SumsAnswer

COLUMNS = (
    *("at", "mean", "low", "high", "energy_kwh", "energy_kwh_low", "energy_kwh_high"),
    *("full_kwh", "full_kwh_low", "full_kwh_high", "homes", "slots", "coverage", "withheld"),
    *VOLUME_KEYS,
)


def sums_csv(found: SumsAnswer) -> str:
    """Return the whole, periods and parts of the day as CSV, figures as in the JSON."""
    rows = _named(found, lambda one: str(one.from_))
    return units.csv_text(COLUMNS, ({**asdict(one), "at": at} for at, one in rows))


def sums_text(found: SumsAnswer, unit: str, zone: tzinfo) -> str:
    """Return what sums say as people read it."""
    whole, rows = found.whole, _named(found, lambda one: units.clock_text(one.from_s, zone))
    lines = ["homes' own sums, with noise", _table(rows, unit)]
    if any(one.withheld for _, one in rows):
        lines.append("withheld: fewer homes than [query] min_devices sent sums, or were left out")
    if whole.mean_sway is not None:
        lines.append(
            f"holds for honest homes, whatever they use; one that lies can move the mean of all by "
            f"up to {whole.mean_sway:,.1f} {unit}"
        )
    return "\n".join([*lines, *(f"warning: {one}" for one in found.warnings), ""])


def _named(found: SumsAnswer, named: Callable[[SumPeriod], str]) -> list[tuple[str, SumFigures]]:
    periods = ((named(one), one) for one in found.periods)
    return [("all", found.whole), *periods, *((_day_text(one), one) for one in found.parts)]


def beside_text(whole: Interval, unit: str, of: str) -> list[str]:
    """Return the line that tells the other mode's mean, which is never added to this one's."""
    if whole.mean is None or whole.low is None or whole.high is None:
        return []
    ends = f"95 % from {whole.low:,.1f} to {whole.high:,.1f}"
    return [f"beside, by {of}: mean {whole.mean:,.1f} {unit}, {ends}"]


def _table(rows: Collection[tuple[str, SumFigures]], unit: str) -> str:
    named, by = units.scale_of(unit, units.largest(row.mean for _, row in rows))
    head = ["", f"mean {named}", "95 % from", "to"]
    used = {name: _used(row) for name, row in rows}
    many = units.largest(one[1] for one in used.values())
    energy, energy_by = units.scale_of(units.amount_of(unit), many)
    if energy:
        head += [f"measured {energy}", f"of all homes {energy}", "95 % from", "to"]
    cells = []
    for name, row in rows:
        line = [name, *units.figures((row.mean, row.low, row.high), by)]
        if energy:
            line += units.figures(used[name], energy_by)
        share = "-" if row.coverage is None else f"{row.coverage:.0%}"
        cells.append([*line, units.number_text(row.homes), share])
    return units.text_table([*head, "homes", "coverage"], cells)


def _used(row: SumFigures) -> tuple[float | None, ...]:
    """Return what was measured, and of all homes with its interval: kWh, or m³."""
    if row.volume_m3 is None:
        return row.energy_kwh, row.full_kwh, row.full_kwh_low, row.full_kwh_high
    return row.volume_m3, row.full_m3, row.full_m3_low, row.full_m3_high


def _day_text(part: SumPart) -> str:
    ends = (part.from_day_s, part.to_day_s)
    return " to ".join(f"{at // 3600:02}:{at % 3600 // 60:02}" for at in ends) + " UTC"
