"""`edge-ldp estimate` reads counts, says what it found, and names the line that is wrong."""

import json
from pathlib import Path

import pytest

from edge_ldp import SquareWave
from edge_ldp.gateway import ems
from edge_ldp.gateway.estimate_command import main

SURVEY = ["--epsilon", "1", "--high", "99", "--size", "10"]
WAVE = SquareWave(epsilon=1, low=0, high=99, size=10)
COUNTS = [40, 50, 60, 50, 30, 20, 10, 10, 10, 10, 10, 10, 10, 10]


def written(path: Path, lines: str) -> Path:
    path.write_text(lines)
    return path


@pytest.fixture
def counts(tmp_path: Path) -> Path:
    lines = "".join(f"{code},{count}\n" for code, count in enumerate(COUNTS))
    return written(tmp_path / "counts.csv", "code,count\n" + lines)


def test_for_machines_it_is_the_estimate(counts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert WAVE.code_count == len(COUNTS)
    assert main([str(counts), *SURVEY, "--json"]) == 0
    found, expected = json.loads(capsys.readouterr().out), ems(WAVE, COUNTS)
    assert found["probabilities"] == list(expected.probabilities)
    assert found["edges"] == list(range(0, 101, 10))
    assert (found["n"], found["mean"]) == (sum(COUNTS), expected.mean())
    assert found["quantiles"]["0.5"] == expected.quantile(0.5)


def test_for_people_it_is_a_few_lines(counts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(counts), *SURVEY]) == 0
    shown = capsys.readouterr().out
    assert f"reports  {sum(COUNTS)}\n" in shown
    assert "  50%    " in shown


def test_codes_that_are_left_out_were_not_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "one.csv", "3, 1\n\n")
    assert main([str(path), *SURVEY]) == 0
    assert "warning: all reports are of one code" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("code,count\n0,1\nx,2\n", ":3: expected two integers"),
        ("0,1,2\n", ":1: expected two integers"),
        ("0,-1\n", ":1: expected two integers"),
        ("0,1.5\n", ":1: expected two integers"),
        ("0," + "9" * 5000 + "\n", ":1: expected two integers"),
        ("0,\u0661\n", ":1: expected two integers"),
        ("14,1\n", ":1: expected a code of 0..13, once"),
        ("0,1\n0,1\n", ":2: expected a code of 0..13, once"),
        ("", "counts: expected 1 to 2**53 reports"),
    ],
)
def test_lines_that_are_no_counts_are_named(
    tmp_path: Path, lines: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "bad.csv", lines)
    assert main([str(path), *SURVEY]) == 2
    assert told in capsys.readouterr().err


def test_files_and_surveys_that_are_none_are_told(
    tmp_path: Path, counts: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path / "missing.csv"), *SURVEY]) == 2
    assert "No such file" in capsys.readouterr().err
    assert main([str(counts), "--epsilon", "0", "--high", "99"]) == 2
    assert "epsilon" in capsys.readouterr().err
