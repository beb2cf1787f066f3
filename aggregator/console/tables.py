"""The rows of an answer as tables: comma-separated values safe in a spreadsheet, Arrow, Parquet."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from aggregator.answers.units import csv_text

FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_of(view: Mapping[str, Any], keys: Sequence[str]) -> str:
    """Return the rows of a view, those of the whole first; what is nested in them is JSON.

    `keys`: where rows may stand. Times are seconds UTC; numbers are as in the JSON.
    """
    rows, names = _rows(view, keys)
    return csv_text(names, ({name: _cell(value) for name, value in row.items()} for row in rows))


def arrow_of(view: Mapping[str, Any], keys: Sequence[str], *, as_file: bool = False) -> bytes:
    """Return the same rows as a stream of Arrow, or a file of Parquet.

    ModuleNotFoundError without pyarrow.

    The numbers of the JSON to the bit. A column is of texts if one of its values is, and of floats
    where it has none. What stands beside the rows is in the schema's metadata, as JSON.
    """
    import pyarrow as pa  # noqa: PLC0415 (an extra)

    rows, names = _rows(view, keys)
    arrays = {name: pa.array(*_column([row.get(name) for row in rows])) for name in names}
    beside = {key: json.dumps(view[key]) for key in view if not isinstance(view[key], list | dict)}
    made = pa.table(arrays).replace_schema_metadata(beside)
    out = pa.BufferOutputStream()
    if as_file:
        import pyarrow.parquet as pq  # noqa: PLC0415 (an extra)

        pq.write_table(made, out)
        return bytes(out.getvalue().to_pybytes())
    with pa.ipc.new_stream(out, made.schema) as stream:
        stream.write_table(made)
    done: bytes = out.getvalue().to_pybytes()
    return done


def _rows(view: Mapping[str, Any], keys: Sequence[str]) -> tuple[list[dict[str, Any]], list[str]]:
    rows = [row for key in keys for row in _listed(_found(view, key))]
    if keys[0].endswith("whole") and rows:
        rows[0] = {"group": "whole", **rows[0]}
    return rows, list(dict.fromkeys(name for row in rows for name in row))


def _found(view: Mapping[str, Any], key: str) -> Any:
    """Return a field, or with a dot that of a part, None where there is no such part."""
    part, dot, name = key.rpartition(".")
    return (view.get(part) or {}).get(name) if dot else view.get(key)


def _listed(found: Any) -> list[dict[str, Any]]:
    if isinstance(found, dict):
        return [found]
    return [row for row in found or () if isinstance(row, dict)]


def _column(values: Sequence[Any]) -> tuple[list[Any], str | None]:
    """Return a column's values, and its type where they do not say it."""
    found = [_nested(value) for value in values]
    if any(isinstance(value, str) for value in found):
        return [None if value is None else str(value) for value in found], "string"
    return found, "float64" if all(value is None for value in found) else None


def _nested(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list | dict) else value


def _cell(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(FORMULA):
        return f"'{value}"
    return _nested(value)
