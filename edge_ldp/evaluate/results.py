"""A study's results on disk: summary, tables and figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edge_ldp.evaluate.figure import draw
from edge_ldp.evaluate.summary import summarise, summary_csv

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from edge_ldp.evaluate.study import Study, StudyRow


def write(study: Study, rows: Sequence[StudyRow], folder: Path) -> list[Path]:
    """Write STUDY-summary.csv, STUDY.md and the figures; return their paths."""
    points = summarise(rows)
    summary, tables = folder / f"{study.name}-summary.csv", folder / f"{study.name}.md"
    summary.write_text(summary_csv(points), encoding="utf-8")
    tables.write_text(study.tables(rows), encoding="utf-8")
    written = [summary, tables]
    for figure in study.figures:
        panels = [panel for panel in study.panels if panel.figure == figure]
        stem = folder / f"{study.name}-figure-{figure}"
        written += draw(panels, points, f"edge-ldp evaluate {study.name}: figure {figure}", stem)
    return written
