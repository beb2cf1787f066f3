"""Figures in the units that people use: energy in kWh, power in W or kW, time of their own zone."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, tzinfo
from typing import Any

from aggregator.config import StreamTable
from edge_ldp.protocol.released import PublicDesign
from edge_ldp.protocol.utc import utc

HOUR_S = 3600
KWH_WH = 1000
ENERGIES = ("W", "kW", "Wh", "kWh")  # units of a stream whose totals are energies
VOLUMES = {"dm3": 1000, "m3": 1}  # units of a stream whose totals are volumes: so many are 1 m³
LARGER = {  # and from which figure on
    "W": ("kW", 1e4),
    "Wh": ("kWh", 1e4),
    "kWh": ("MWh", 1e6),
    "dm3": ("m3", 1e4),
}


def energy_kwh(stream: StreamTable | PublicDesign, total: float | None) -> float | None:
    """Return the energy of a total (unit × slots), kWh; None where the unit tells of none.

    A load in W or kW lasts a slot; an energy in Wh or kWh is what a slot used.
    """
    hours = stream.slot_seconds / HOUR_S
    per_slot_wh = {"W": hours, "kW": KWH_WH * hours, "Wh": 1.0, "kWh": KWH_WH}.get(stream.unit)
    if total is None or per_slot_wh is None:
        return None
    return total * per_slot_wh / KWH_WH


def energies(
    stream: StreamTable | PublicDesign, total: float | None, low: float | None, high: float | None
) -> dict[str, float | None]:
    """Return a total and its interval as energy, by the keys of every JSON with totals."""
    return ends("energy_kwh", *(energy_kwh(stream, one) for one in (total, low, high)))


def amount_of(unit: str) -> str:
    """Return what totals of a stream in this unit are told in: kWh, m3 or "" for neither."""
    return "kWh" if unit in ENERGIES else "m3" if unit in VOLUMES else ""


def volume_m3(stream: StreamTable, total: float | None) -> float | None:
    """Return the volume of a total (unit × slots), m³; None where the unit tells of none."""
    of_one = VOLUMES.get(stream.unit)
    return None if total is None or of_one is None else total / of_one


def energy_of(row: Any) -> tuple[float | None, ...]:
    """Return the energy of an answer's part, with its interval."""
    return row.energy_kwh, row.energy_kwh_low, row.energy_kwh_high


def total_of(row: Any) -> tuple[float | None, ...]:
    """Return the total of an answer's part, with its interval."""
    return row.total, row.total_low, row.total_high


def ends(
    name: str, value: float | None, low: float | None, high: float | None
) -> dict[str, float | None]:
    """Return a figure and its interval by their keys."""
    return {name: value, f"{name}_low": low, f"{name}_high": high}


def scale_of(unit: str, most: float) -> tuple[str, float]:
    """Return the unit to show figures up to `most` in, and by what to divide them."""
    larger, many = LARGER.get(unit, (unit, float("inf")))
    return (larger, 1000.0) if abs(most) >= many else (unit, 1.0)


def largest(values: Iterable[float | None]) -> float:
    """Return the largest of the figures that there are, by its size; 0 for none."""
    return max((abs(value) for value in values if value is not None), default=0.0)


def figures(values: Iterable[float | None], divisor: float = 1.0) -> list[str]:
    """Return figures as people read them, - for none."""
    return ["-" if value is None else f"{value / divisor:,.1f}" for value in values]


def iso(seconds: int | None, zone: tzinfo = UTC) -> str | None:
    """Return a time as ISO 8601 of a zone, with its offset."""
    return None if seconds is None else utc(seconds).astimezone(zone).isoformat()


def clock_text(seconds: int | None, zone: tzinfo = UTC) -> str:
    """Return a time as people of a zone read it, - for none."""
    return "-" if seconds is None else f"{utc(seconds).astimezone(zone):%Y-%m-%d %H:%M}"


def csv_text(columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> str:
    """Return rows as CSV with a head, for spreadsheets; what there is not is empty."""
    text = _Text()
    made = csv.writer(text, lineterminator="\n")
    made.writerow(columns)
    made.writerows([row.get(column) for column in columns] for row in rows)
    return "".join(text)


def text_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a plain text table, - for None: the first column left, the others right."""
    cells = [["-" if cell is None else str(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if at == 0 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    )


def number_text(number: int | None) -> str:
    """Return a number as people read it, - where it is withheld."""
    return "-" if number is None else f"{number:,}"


class _Text(list[str]):
    """What a CSV writer writes to."""

    def write(self, line: str) -> None:
        self.append(line)


def age_text(seconds: float) -> str:
    """Return an age as people tell it: to the minute, hour or day."""
    for length, name in ((86_400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * length:
            return f"{seconds / length:,.0f} {name}"
    return f"{max(0, seconds):.0f} s"
