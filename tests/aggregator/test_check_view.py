"""What an operator is told of a configuration before anything runs."""

import json
from pathlib import Path

import pytest

from aggregator.main import main

EXAMPLE = Path(__file__).parents[2] / "config" / "aggregator.toml"


def test_the_example_says_what_it_means(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "-c", str(EXAMPLE)]) == 0
    shown = capsys.readouterr().out
    assert "power (id 1): 0 to 43,470 W, ε 1 a report" in shown
    assert "θ adaptive, tuned reports" in shown
    assert main(["check", "-c", str(EXAMPLE), "--json"]) == 0
    (stream,) = json.loads(capsys.readouterr().out)["streams"]
    assert stream["values"] == [0, 43_470]
    assert stream["noise_at_ceiling"] > 10_000


def test_a_wrong_file_is_named_with_its_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "aggregator.toml"
    bad.write_text(EXAMPLE.read_text().replace("epsilon = 1 ", "epsilon = -1 "))
    assert main(["check", "-c", str(bad)]) == 2
    assert "epsilon" in capsys.readouterr().err
