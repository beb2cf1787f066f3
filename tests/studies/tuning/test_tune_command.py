"""`edge-ldp tune`: a table for any ε, as a plan carries it."""

import json
from pathlib import Path

import pytest

from edge_ldp import from_plan
from edge_ldp.cli import EXIT_USAGE
from edge_ldp.ratio import floor_ratio
from studies.tuning.main import main

ASKED = ("--epsilon", "0.7", "--high", "4000", "--bits", "3")


def test_the_printed_mechanism_is_one_that_a_plan_may_carry(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([*ASKED, "--json"]) == 0
    made = from_plan(json.loads(capsys.readouterr().out))
    assert made.max_ratio <= floor_ratio("0.7").num / floor_ratio("0.7").den
    assert (made.low, made.high, made.code_count) == (0, 4000, 8)


def test_a_density_changes_what_is_best(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "density.csv"
    file.write_text("share\n0.8\n0.15\n0.05\n")
    assert main([*ASKED, "--density", f"{file}:share"]) == 0
    said = capsys.readouterr().out
    assert "5 knots, 8 codes" in said or "9 knots, 8 codes" in said
    assert "of the hybrid's" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*ASKED, "--density", "file.csv"), "give FILE.csv:COLUMN"),
        (("--epsilon", "0", "--high", "9"), "epsilon"),
        (("--epsilon", "1", "--low", "9", "--high", "9"), "low"),
    ],
)
def test_what_no_table_can_be_made_of_is_named(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == EXIT_USAGE
    shown = capsys.readouterr().err
    assert shown.startswith("edge-ldp tune: ")
    assert said in shown
