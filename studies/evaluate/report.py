"""What a finished study says: to machines, in Markdown, and as files beside its rows."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from studies.evaluate.figure import draw_figure
from studies.evaluate.summary import drawn_in, summarise, summary_csv

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from studies.evaluate.study import Options, Panel, Study, StudyRow, Values
    from studies.evaluate.summary import Point

MOST_COLUMNS = 16  # of a table: what has more points is for the pictures


def view(
    study: Study, sets: Sequence[Values], options: Options, rows: Sequence[StudyRow], command: str
) -> dict[str, object]:
    """Return the object that `--json` prints: what was run, on what, and every point's summary."""
    return {
        "study": study.name,
        "version": study.version,
        "command": command,
        "options": asdict(options),
        "data": [
            {
                "name": values.name,
                "n": len(values.values),
                "low": values.low,
                "ceiling": values.ceiling,
                "unit": values.unit,
                "source": values.source,
                "digest": values.digest(),
            }
            for values in sets
        ],
        "tasks": len(rows),
        "cpu_s": round(sum(row.cpu_s for row in rows), 3),
        "points": [asdict(point) for point in summarise(rows)],
    }


def write_report(
    study: Study,
    points: Sequence[Point],
    folder: Path,
    drawn: Sequence[Panel],
    units: Mapping[str, str],
) -> list[Path]:
    """Write STUDY-summary.csv, STUDY.md and the figures of `drawn`; return their paths."""
    summary, page = folder / f"{study.name}-summary.csv", folder / f"{study.name}.md"
    summary.write_text(summary_csv(points), encoding="utf-8")
    page.write_text(tables(drawn, points), encoding="utf-8")
    written = [summary, page]
    for figure in dict.fromkeys(panel.figure for panel in drawn):
        panels = [panel for panel in drawn if panel.figure == figure]
        stem = folder / f"{study.name}-figure-{figure}"
        title = f"edge-ldp evaluate {study.name}: figure {figure}"
        written += draw_figure(panels, points, title, stem, units)
    return written


def tables(panels: Sequence[Panel], points: Sequence[Point]) -> str:
    """Return a table of each panel that has points and not too many of them."""
    found = [(panel, drawn_in(panel, points)) for panel in panels]
    return "\n".join(_panel(panel, of) for panel, of in found if of)


def markdown_table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; columns after the first are set to the right."""
    rules = ["---", *("---:" for _ in heads[1:])]
    return "\n".join(f"| {' | '.join(line)} |" for line in (heads, rules, *lines)) + "\n"


def _panel(panel: Panel, points: Sequence[Point]) -> str:
    """Return a line for each data set and series, and a column for each x."""
    cells = {(point.data, point.series, point.x): _cell(point) for point in points}
    across = sorted({point.x for point in points})
    if len(across) > MOST_COLUMNS:
        return ""
    lines = [
        [data, series, *(cells.get((data, series, x), "") for x in across)]
        for data, series in dict.fromkeys((point.data, point.series) for point in points)
    ]
    title = ", ".join(filter(None, (panel.title, panel.y_label)))
    heads = ["data", "series", *(f"{panel.x_label} {x:g}" for x in across)]
    return f"### Figure {panel.figure}: {title}\n\n{markdown_table(heads, lines)}"


def _cell(point: Point) -> str:
    error = point.standard_error
    return f"{point.mean:.3g}" + ("" if error is None else f" ± {error:.2g}")
