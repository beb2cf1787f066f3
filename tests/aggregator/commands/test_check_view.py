"""What an operator is told of a configuration before anything runs."""

import json
from pathlib import Path

import pytest

from aggregator.main import main

EXAMPLE = Path(__file__).parents[3] / "config" / "aggregator.toml"


def test_the_example_says_what_it_means(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "-c", str(EXAMPLE)]) == 0
    shown = capsys.readouterr().out
    assert "power (id 1): 0 to 43,470 W, ε 1 a report" in shown
    assert "θ adaptive, tuned reports" in shown
    assert main(["check", "-c", str(EXAMPLE), "--json"]) == 0
    (stream,) = json.loads(capsys.readouterr().out)["streams"]
    assert stream["values"] == [0, 43_470]
    assert stream["noise_at_ceiling"] > 10_000


def test_what_homes_are_asked_to_add_up_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, told, asked = tmp_path / "aggregator.toml", [], []
    for sums in ("", "home_sums = { share = 0.5, days = 7, cells = 24, block_hours = 4 }\n"):
        file.write_text(f"{EXAMPLE.read_text()}\n{sums}")
        assert main(["check", "-c", str(file)]) == 0
        told.append(capsys.readouterr().out)
        assert main(["check", "-c", str(file), "--json"]) == 0
        asked.append(json.loads(capsys.readouterr().out)["streams"][0]["home_sums"])
    assert "homes are asked for no sums" in told[0]
    assert "sums of 7 days in 24 parts of the day, 4 h of which share a noise, at 0.5 of" in told[1]
    wanted = {"share": "0.5", "days": 7, "cells": 24, "block_hours": 4, "offset_s": 0}
    assert asked == [None, wanted]


def test_a_wrong_file_is_named_with_its_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "aggregator.toml"
    bad.write_text(EXAMPLE.read_text().replace("epsilon = 1 ", "epsilon = -1 "))
    assert main(["check", "-c", str(bad)]) == 2
    assert "epsilon" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("epsilon = 1 ", "epsilon = 9 ", "ε 9 hides little: one report may make one value 8,103"),
        ("ceiling = 43470", "ceiling = 9", "is the ceiling in kW by mistake?"),
    ],
)
def test_what_is_hardly_meant_is_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, told: str
) -> None:
    file = tmp_path / "aggregator.toml"
    text = EXAMPLE.read_text().replace(old, new).replace('mechanism = "tuned"', "survey_size = 8")
    file.write_text(text)
    assert main(["check", "-c", str(file)]) == 0
    (line,) = (row for row in capsys.readouterr().out.splitlines() if "warning" in row)
    assert line.startswith("warning: power: ")
    assert told in line
    assert main(["check", "-c", str(EXAMPLE), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["warnings"] == []
