"""The dossier: every number in it computed again, another way."""

from __future__ import annotations

import json
from fractions import Fraction
from math import exp, log
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from aggregator.console.dossier import main
from edge_ldp.mechanisms import from_plan
from tests.aggregator.console.small_fleet import make_fleet

if TYPE_CHECKING:
    from tests.aggregator.console.small_fleet import Fleet

ROOT = Path(__file__).parents[3]


def test_its_numbers_are_those_of_the_plans_integers(
    fleet: Fleet, console: str, tmp_path: Path
) -> None:
    message = httpx.get(f"{console}/api/v1/plan/message", params={"stream": "power"}).json()
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(message))
    (_, printed), (_, proof), (_, text) = fleet.ask(
        ["dossier", "-c", str(fleet.file), "--json"],
        ["certify", "--plan", str(file), "--json"],
        ["dossier", "-c", str(fleet.file)],
    )
    view = json.loads(printed)
    assert httpx.get(f"{console}/api/v1/dossier").json() == view
    (stream,) = view["streams"]
    plan, proved = stream["plan"], json.loads(proof)
    ratio = Fraction(0)
    for name in ("stream_mechanism", "survey_mechanism"):
        mechanism = from_plan(message[name])
        laws = [mechanism.probabilities(value) for value in (0, 1, 137, mechanism.high)]
        for column in zip(*laws, strict=True):
            ratio = max(ratio, max(column) / min(column))
    assert Fraction(plan["ratio"]) == ratio  # by the laws of some values, the ends among them
    assert ratio <= Fraction(exp(1))
    assert plan["epsilon"] == pytest.approx(log(ratio), rel=1e-12)
    assert plan["guess"] == pytest.approx(float(ratio / (ratio + 1)), rel=1e-12)
    assert (plan["digest"], plan["holds"]) == (proved["digest"], proved["holds"])
    assert plan["epoch"] == message["epoch"]
    epsilon = stream["epsilon"]
    assert epsilon["window"] == 8
    assert epsilon["every_slot"] == 96
    assert epsilon["day"] == pytest.approx(96 * 8 / 97)
    assert epsilon["year"] == pytest.approx(365 * 96 * 8 / 97)
    assert view["devices"] == len(fleet.json("devices", "list")["devices"]) == 26
    assert view["access"]["least_devices"] == 10
    for shown in (plan["ratio"], plan["digest"], "ε 8 in any window", "7.92 a day", "26 devices"):
        assert shown in text
    page = httpx.get(f"{console}/dossier").text
    assert plan["digest"] in page


def test_the_attackers_errors_are_those_of_the_study_PLN_14(console: str) -> None:
    """A slow test of tests/studies/prying computes the study's table again."""
    table = (ROOT / "docs/results/prying.md").read_text()
    found = httpx.get(f"{console}/api/v1/dossier").json()["attacker"]
    assert "ε = 1, 8 reports a day" in table
    assert (found["epsilon"], found["reports_a_day"], found["ceiling"]) == (1, 8, 43_470)
    page, privacy = (httpx.get(f"{console}/{name}").text for name in ("dossier", "privacy"))
    for one in found["errors"]:
        row = f"| {one['load']} | {one['days']:,} | {one['reports']:,} |"
        (line,) = (line for line in table.splitlines() if line.startswith(row))
        assert f" {one['error_w']:,.1f} W | {one['honest_w']:,.1f} W |" in line
        assert f"{one['error_w']:g} W after {one['days']:,} days" in page
        assert f"<td>{one['error_w']:,.1f} W</td><td>{one['honest_w']:,.1f} W</td>" in privacy
    assert found["unlike"] == ["power"]  # whose values end at 5,000 W
    assert "Not measured for power" in privacy


def test_without_a_plan_or_a_store_it_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet = make_fleet(tmp_path)
    assert main(["-c", str(fleet.file)]) == 0
    assert "no plan was issued yet" in capsys.readouterr().out
    (tmp_path / "a.db").unlink()
    assert main(["-c", str(fleet.file)]) == 4
    assert "does not exist" in capsys.readouterr().err
    assert main(["-c", str(tmp_path / "none.toml")]) == 2
