"""What a finished study says: to machines, and in Markdown that its own tables stand in."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from edge_ldp.evaluate.summary import summarise

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from edge_ldp.evaluate.study import Options, Study, StudyRow, Values


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


def table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; columns after the first are set to the right."""
    rules = ["---", *("---:" for _ in heads[1:])]
    return "\n".join(f"| {' | '.join(line)} |" for line in (heads, rules, *lines)) + "\n"
