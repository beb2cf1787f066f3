"""Which mode answers what, as text for people and as a view for machines."""

from collections.abc import Sequence

from edge_ldp.period_sums.habits import HABITS
from edge_ldp.sums.modes import ModeChoice, ModeRow, SumsShape
from edge_ldp.sums.text import aligned, percent_text

ASKED = {
    "total": "a total",
    "week": "a week",
    "day": "a day",
    "part-of-day": "part of day",
    "hour-of-day": "hour of day",
    "density": "how values are spread",
    "theta": "θ",
}
NAMES = {"local": "reports", "sums": "sums at home"}


def modes_text(found: Sequence[ModeChoice], *, only_sums: bool = False) -> str:
    """Return the choices for people, and what one home gives away in each way."""
    if only_sums:
        asked = [(one, row) for one in found for row in one.rows if row.shape is not None]
        table = [(ASKED[one.question], _percent(row), _shape(row.shape)) for one, row in asked]
        lines = aligned([("question", "sums at home", ""), *table])
        return "\n".join(["expected 95 % intervals, sums at home", *lines]) + "\n"
    rows: list[tuple[str, ...]] = [("question", "reports", "sums at home", "", "better")]
    rows += [_line(choice) for choice in found]
    lines = ["which mode, under the same ε in any window: expected 95 % intervals", *aligned(rows)]
    lines += [f"{ASKED[one.question]}: {one.reason}" for one in found if one.rows]
    return "\n".join([*lines, *_leaks(found)]) + "\n"


def modes_view(found: Sequence[ModeChoice]) -> list[dict[str, object]]:
    """Return the choices for machines."""
    return [
        {
            "question": choice.question,
            "better": choice.best and choice.best.mode,
            "layout": choice.best and _layout(choice.best),
            "reason": choice.reason,
            "rows": [
                {
                    "mode": row.mode,
                    "layout": _layout(row),
                    "half_width": row.half,
                    "percent": row.percent,
                    "bytes_a_home": row.home_bytes,
                    "habits": row.leak and row.leak.by_habit,
                }
                for row in choice.rows
            ],
        }
        for choice in found
    ]


def best_sums(choice: ModeChoice) -> ModeRow | None:
    """Return the sums that a choice is about: those that are better, else the narrowest."""
    if choice.best is not None and choice.best.shape is not None:
        return choice.best
    return next((row for row in choice.rows if row.shape is not None), None)


def _line(choice: ModeChoice) -> tuple[str, ...]:
    local = next((row for row in choice.rows if row.shape is None), None)
    sums, best = best_sums(choice), choice.best
    if choice.question in {"density", "theta"}:
        cells = ("yes" if local else "–", "no", "")
    else:
        shape = "" if sums is None else _shape(sums.shape)
        cells = (_percent(local), _percent(sums), shape)
    return (ASKED[choice.question], *cells, "–" if best is None else NAMES[best.mode])


def _leaks(found: Sequence[ModeChoice]) -> list[str]:
    """Return what one home gives away, a line for each way that was measured."""
    ways: dict[str, tuple[str, ...]] = {}
    for choice in found:
        for row in choice.rows:
            if row.leak is not None:
                cells = (f"{one:.2f}" for one in row.leak.found)
                way = "reports" if row.shape is None else _shape(row.shape._replace(periods=1))
                ways[way] = (way, *cells, f"{row.home_bytes:,}")
    if not ways:
        return []
    head = "one home: how often who knows its usual life tells rightly which of two months has …"
    note = "0.50 is a guess; measured on 40 homes, good to 0.03; bytes: of a home"
    return [head, *aligned([("", *HABITS, "bytes"), *ways.values()]), note]


def _percent(row: ModeRow | None) -> str:
    return "–" if row is None else f"± {percent_text(row.percent)}"


def _shape(shape: SumsShape | None) -> str:
    if shape is None:
        return ""
    days = "1 day" if shape.days == 1 else f"{shape.days} days"
    many = "a sum of" if shape.periods == 1 else f"{shape.periods} sums of"
    cells = f", {shape.cells} cells" if shape.cells > 1 else ""
    return f"{many} {days}{cells}" + (f", blocks of {shape.block} h" if shape.block > 1 else "")


def _layout(row: ModeRow) -> dict[str, int] | None:
    return None if row.shape is None else {**row.shape._asdict(), "scale": row.scale}
