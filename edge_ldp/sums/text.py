"""A forecast as text for people and as a view for machines."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import NamedTuple

from edge_ldp.ratio import exact_epsilon
from edge_ldp.sums.forecast import Fleet, Forecast, ForecastRow
from edge_ldp.sums.law import Law
from edge_ldp.sums.modes import ModeChoice

TITLES = {"whole": "whole run", "week": "week", "day": "day", "hour-of-day": "hour of day"}
_FINE = 9.95  # per cent: below, one decimal is shown
_WHOLE = 100  # above, no decimals are shown


class ForecastStudy(NamedTuple):
    """What the command found: the fleet by numbers of homes, and its window's ε split otherwise.

    `modes`: which is better for each number of homes, none with one mode alone; `curve`: forecasts
    by rising numbers of homes, for a picture. `parts`: so many of the window's slots are one of the
    stream's, of which there are sums alone where they are several.
    """

    law: Law
    unit: str
    by_homes: Sequence[Forecast]
    splits: Sequence[Forecast]
    modes: Sequence[Sequence[ModeChoice]] = ()
    curve: Sequence[Forecast] = ()
    parts: int = 1


def study_text(study: ForecastStudy) -> str:
    """Return the study for people: one fleet's horizons and splits, or a table by homes."""
    first = study.by_homes[0]
    lines = [*asked_text(study), ""]
    if len(study.by_homes) > 1:
        lines += _by_homes(study.by_homes)
    else:
        lines += _horizons(first, study.unit)
    if len(study.splits) > 1:
        lines += ["", *_splits(study.splits, first)]
    return "\n".join(lines) + "\n"


def study_view(study: ForecastStudy) -> dict[str, object]:
    """Keys: values (low, ceiling, unit, mean, source); forecasts, one for each number of homes;
    splits, the same for other splits of the window's ε. A forecast: homes, days, slots_a_day,
    epsilon, window (reports, slots, streams), epsilon_a_window, epsilon_a_day, mechanism, theta,
    survey_share, horizon (that both are best for), guess_right, rows (horizon, homes, strata,
    reports in each, half_width in the unit, percent of the mean or null, few). Without --mode
    local: modes, one for each number of homes: homes, slot_seconds, choices (question, better:
    local, sums or null, its layout, reason, rows: mode, layout (days, cells, block, periods, scale)
    or null, half_width, percent, bytes_a_home, habits by name or null); with --mode sums or --parts
    nothing else.
    """  # noqa: D205 (the help shows it)
    law = study.law
    return {
        "values": {
            "low": law.low,
            "ceiling": law.ceiling,
            "unit": study.unit,
            "mean": law.mean,
            "source": law.source,
        },
        "forecasts": [_view(found) for found in study.by_homes],
        "splits": [_view(found) for found in study.splits],
    }


def window_text(fleet: Fleet) -> str:
    """Return a window as in `8 reports of ε 1 in any 97 slots`."""
    epsilon = f"{float(exact_epsilon(fleet.epsilon)):g}"
    reports, slots, streams = fleet.window.reports, fleet.window.slots, fleet.window.streams
    if reports == slots * streams:
        return f"every slot, ε {epsilon} a report"
    what = "1 report" if reports == 1 else f"{reports} reports"
    return f"{what} of ε {epsilon} in any {slots} slots"


def effect_text(effect: float) -> str:
    """Return what a design effect above 1 means, in words."""
    return (
        f"its slots come back at nearly the same times: of on/off loads {effect:.1f} reports tell "
        "as much as 1 at another time (design effect)"
    )


def percent_text(percent: float | None) -> str:
    """Return a half-width in per cent of the mean, short."""
    if percent is None:
        return "–"
    return f"{percent:.1f} %" if percent < _FINE else f"{percent:,.0f} %"


def asked_text(study: ForecastStudy) -> list[str]:
    """Return what is asked about: days, window and values."""
    fleet, law, unit = study.by_homes[0].fleet, study.law, f" {study.unit}".rstrip()
    streams = fleet.window.streams
    shared = f", shared by {streams} streams" if streams > 1 else ""
    each = f" each {study.parts} of the window's" if study.parts > 1 else ""
    days = f"{fleet.days} days of {fleet.slots_a_day // study.parts} slots{each}"
    about = f"{days}; {window_text(fleet)}{shared}"
    values = f"values {law.low:,} to {law.ceiling:,}{unit}, mean {_number(law.mean)}{unit}"
    told = [f"{about}: ε {fleet.a_day:.3g} a day", f"{values} ({law.source})"]
    if fleet.effect > 1:
        told.append(effect_text(fleet.effect))
    return told


def _horizons(found: Forecast, unit: str) -> list[str]:
    fleet = found.fleet
    rows = [("mean of a value by", "parts", "reports in each", unit, "")]
    rows += [
        (
            TITLES.get(row.horizon) or f"whole run, {row.homes:,} homes",
            str(row.strata),
            f"{row.reports:,.0f}",
            f"± {_number(row.half)}",
            _starred(row),
        )
        for row in found.rows
    ]
    choice = f"θ = {found.theta:,} and {100 * found.share:.0f} % surveys ({found.mechanism})"
    return [
        f"{fleet.homes:,} homes, {fleet.reports:,.0f} reports: expected 95 % intervals",
        *aligned(rows),
        *_few(found.rows),
        f"with {choice}, the best for {TITLES[found.horizon]}",
    ]


def _by_homes(by_homes: Sequence[Forecast]) -> list[str]:
    names = [row.horizon for row in by_homes[0].rows if row.horizon in TITLES]
    rows = [("homes", *(TITLES[name] for name in names))]
    for found in by_homes:
        cells = [_starred(row) for row in found.rows if row.horizon in names]
        rows.append((f"{found.fleet.homes:,}", *cells))
    every = [row for found in by_homes for row in found.rows if row.horizon in names]
    head = (
        f"expected 95 % intervals of the mean, by homes; θ best for {TITLES[by_homes[0].horizon]}"
    )
    return [head, *aligned(rows), *_few(every)]


def _splits(splits: Sequence[Forecast], first: Forecast) -> list[str]:
    fleet = first.fleet
    head = f"the same ε {float(fleet.total):g} in any {fleet.window.slots} slots, split otherwise"
    rows = [("reports of ε", f"± {TITLES[first.horizon]}", "one report: guess right", "")]
    for found in splits:
        is_asked = found.fleet.window == fleet.window
        rows.append(
            (
                split_text(found),
                "± " + percent_text(found.asked.percent),
                f"{100 * found.guess:.4g} %",
                "as asked" if is_asked else "",
            )
        )
    return [
        head,
        *aligned(rows),
        "guess right: how often one report tells two values apart, at most (chance: 50 %)",
        "every line promises the same for all reports of a window together, not for one of them",
    ]


def split_text(found: Forecast) -> str:
    """Return reports × ε."""
    return f"{found.fleet.window.reports} × {float(exact_epsilon(found.fleet.epsilon)):.3g}"


def _starred(row: ForecastRow) -> str:
    return f"± {percent_text(row.percent)}" + ("*" if row.few else "")


def _few(rows: Sequence[ForecastRow]) -> list[str]:
    if not any(row.few for row in rows):
        return []
    return ["* fewer than 100 reports of a kind in a part: the interval may be a fifth off"]


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= _WHOLE else f"{value:.3g}"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines, the first column to the left and the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *others in rows:
        cells = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        lines.append("  ".join(["  " + first.ljust(widths[0]), *cells]).rstrip())
    return lines


def _view(found: Forecast) -> dict[str, object]:
    fleet = found.fleet
    return {
        "homes": fleet.homes,
        "days": fleet.days,
        "slots_a_day": fleet.slots_a_day,
        "epsilon": float(exact_epsilon(fleet.epsilon)),
        "window": asdict(fleet.window),
        "epsilon_a_window": float(fleet.total),
        "epsilon_a_day": fleet.a_day,
        "design_effect": fleet.effect,
        "mechanism": found.mechanism,
        "theta": found.theta,
        "survey_share": found.share,
        "horizon": found.horizon,
        "guess_right": found.guess,
        "rows": [
            {"half_width" if name == "half" else name: one for name, one in row._asdict().items()}
            for row in found.rows
        ],
    }
