"""What is withheld is marked so, and null, wherever figures leave: one fleet, every way out."""

import csv
import io
import json
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pyarrow.ipc
import pyarrow.parquet
import pytest

from aggregator.answers.query import WITHHELD
from aggregator.console.answering import Desk
from aggregator.console.questions import QUESTIONS
from aggregator.console.server import as_table
from tests.aggregator.console.small_fleet import (
    Fleet,
    add_plans,
    add_reports,
    add_sums,
    make_fleet,
)

if TYPE_CHECKING:
    from pathlib import Path

FIGURES = {
    *("mean", "low", "high", "total", "n", "energy_kwh", "total_low", "total_high"),
    *("homes", "slots", "full_kwh", "full_m3", "volume_m3", "coverage"),
}
OF = (("group", "tiny"),)
WAYS = [
    (name, (*by, *of))
    for name in ("query", "load-curve")
    for by in ((), (("by", "day"),))
    for of in ((), OF)
]
WAYS += [("sums", ()), ("sums", OF)]


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    """Give a fleet of three homes, where figures have to be of ten."""
    place: Path = tmp_path_factory.mktemp("few")
    made = make_fleet(place)
    plan = add_plans(made, 1)
    add_reports(made, plan, {"north": 3, "tiny": 2}, 1)
    add_sums(made, plan, ["north-0000", "tiny-0000"], 1)
    made.file.write_text(made.file.read_text() + "[announce]\n")
    return made


def rows_of(form: str, body: bytes) -> list[dict[str, Any]]:
    if form == "csv":
        found = csv.DictReader(io.StringIO(body.decode()))
        return [{key: value or None for key, value in row.items()} for row in found]
    if form == "arrow":
        return list(pyarrow.ipc.open_stream(body).read_all().to_pylist())
    return list(pyarrow.parquet.read_table(pyarrow.BufferReader(body)).to_pylist())


@pytest.mark.parametrize(("name", "given"), WAYS)
def test_AGG_13_withheld_is_marked_in_every_form_of_an_answer(
    few: Fleet, name: str, given: tuple[tuple[str, str], ...]
) -> None:
    with closing(Desk(str(few.file))) as desk:
        reply = desk.ask(name, given)
    view = json.loads(reply.out)
    told = [row for key in QUESTIONS[name].rows for row in _listed(at(view, key))]
    forms = {"json": told}
    for form in ("csv", "arrow", "parquet"):
        made = as_table(reply, QUESTIONS[name].rows, form)
        forms[form] = rows_of(form, bytes(made.body))
    for form, rows in forms.items():
        assert len(rows) == len(told) > 0, form
        for row in rows:
            assert row["withheld"] in (True, "True", "true"), form
            assert {row[key] for key in FIGURES & {*row}} == {None}, form


def test_AGG_13_withheld_is_marked_in_what_is_announced(few: Fleet) -> None:
    ((_, message),) = few.json("announced")["announced"].items()
    for part in ("hour", "day"):
        assert message[part]["withheld"] is True
        assert {message[part][key] for key in FIGURES & {*WITHHELD.__struct_fields__}} == {None}


def test_AGG_13_metrics_have_no_figure(few: Fleet) -> None:
    """They count devices and reports; what values say is in none, withheld or not."""
    with closing(Desk(str(few.file))) as desk:
        summary = desk.make("summary", ())
    assert not FIGURES & {*json.loads(summary.out)}


def at(view: dict[str, Any], key: str) -> Any:
    """Return what stands at a key, with a dot in a part."""
    part, _, name = key.rpartition(".")
    return (view.get(part) or {} if part else view).get(name)


def _listed(found: Any) -> list[dict[str, Any]]:
    return [found] if isinstance(found, dict) else found or []
