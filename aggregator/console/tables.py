"""The rows of an answer as comma-separated values, safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import json
from io import StringIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_of(view: Mapping[str, Any], keys: Sequence[str]) -> str:
    """Return the rows of a view, those of the whole first; what is nested in them is JSON.

    `keys`: where rows may stand. Times are seconds UTC; numbers are as in the JSON.
    """
    rows = [row for key in keys for row in _listed(view.get(key))]
    if "whole" in view:
        rows = [{"group": "whole", **view["whole"]}, *rows]
    names = list(dict.fromkeys(name for row in rows for name in row))
    out = StringIO()
    writer = csv.writer(out)
    writer.writerow(names)
    writer.writerows([_cell(row.get(name)) for name in names] for row in rows)
    return out.getvalue()


def _listed(found: Any) -> list[dict[str, Any]]:
    if isinstance(found, dict):
        return [found]
    return [row for row in found or () if isinstance(row, dict)]


def _cell(value: Any) -> Any:
    if isinstance(value, list | dict):
        return json.dumps(value)
    if isinstance(value, str) and value.startswith(FORMULA):
        return f"'{value}"
    return value
