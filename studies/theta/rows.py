"""Rows of a study in a CSV file: appended when a run is done, so that a study can go on."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path


def read(path: Path) -> list[dict[str, str]]:
    """Return the rows there are."""
    return list(csv.DictReader(path.open())) if path.exists() else []


def append(path: Path, rows: Iterable[Mapping[str, object]]) -> None:
    """Append the rows of a run, all of the same fields."""
    found = list(rows)
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, list(found[0]), lineterminator="\n")
        if not file.tell():
            writer.writeheader()
        writer.writerows(found)


def table(head: Iterable[str], lines: Iterable[Iterable[object]]) -> str:
    """Return a Markdown table."""
    rows = [list(head), *([str(entry) for entry in line] for line in lines)]
    rows.insert(1, ["---"] * len(rows[0]))
    return "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n"
