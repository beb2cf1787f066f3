"""The command from end to end: results, machines' output, going on after a kill, wrong usage."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from edge_ldp import cli
from studies.evaluate.main import EXIT_STOPPED, EXIT_USAGE, main

TINY = ["--ceiling", "127", "--epsilon", "2", "--seeds", "2", "--only", "7"]
LONG = ["--ceiling", "2047", "--epsilon", "1", "--seeds", "400", "--only", "7"]
A_MINUTE = 60


@pytest.fixture
def own(tmp_path: Path) -> str:
    values = np.random.default_rng(0).binomial(127, 0.3, 500)
    np.savez(tmp_path / "own.npz", power_w=values)
    return f"{tmp_path / 'own.npz'}:power_w"


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "sw.csv").open() as file:
        return [{**row, "cpu_s": ""} for row in csv.DictReader(file)]


def test_a_run_leaves_rows_summary_tables_and_figures(
    own: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["evaluate", "sw", "--values", own, *TINY, "--out", str(tmp_path / "r")]) == 0
    names = {"sw.csv", "sw-summary.csv", "sw.md", "sw-figure-7.png", "sw-figure-7.svg"}
    assert {path.name for path in (tmp_path / "r").iterdir()} == names
    assert "### Figure 7" in capsys.readouterr().out


def test_json_is_one_object_that_says_what_was_run_and_found(
    own: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    args = ["sw", "--values", own, *TINY, "--unit", "W", "--out", str(tmp_path), "--json"]
    assert main(args) == 0
    view = json.loads(capsys.readouterr().out)
    assert view["command"].startswith("edge-ldp evaluate sw --values")
    assert view["options"] == {"epsilons": [2.0], "seeds": 2, "quick": False, "jobs": 1}
    (given,) = view["data"]
    assert [given[key] for key in ("name", "n", "ceiling", "unit")] == ["power_w", 500, 127, "W"]
    (point,) = view["points"]
    assert (point["figure"], point["series"], point["n"]) == ("7", "128 buckets", 2)
    assert 0 < point["mean"] < 0.2
    assert view["tasks"] == 2


@pytest.mark.parametrize(
    ("stop", "code"),
    [
        (signal.SIGKILL, -signal.SIGKILL),
        pytest.param(signal.SIGINT, EXIT_STOPPED, marks=pytest.mark.slow),
    ],
)
def test_a_stopped_run_goes_on_where_it_was(
    own: str, tmp_path: Path, stop: signal.Signals, code: int
) -> None:
    """Killed in the middle of its rows, then the same command with fewer repeats: same rows.

    Its processes go with it: one that stayed would hold the pipe, and `communicate` never end.
    """
    out = ["--values", own, "--out", str(tmp_path / "r")]
    command = [sys.executable, "-m", "edge_ldp.cli", "evaluate", "sw"]
    with subprocess.Popen(
        [*command, *out, *LONG, "--jobs", "2"],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ,
    ) as running:
        deadline = time.monotonic() + A_MINUTE
        path = tmp_path / "r" / "sw.csv"
        while not path.exists() or path.read_bytes().count(b"\n") < 4:
            assert time.monotonic() < deadline
            assert running.poll() is None
            time.sleep(0.02)
        running.send_signal(stop)
        _, told = running.communicate(timeout=A_MINUTE)
    assert running.returncode == code
    assert (b"give the same command again" in told) == (stop == signal.SIGINT)
    kept = rows(tmp_path / "r")
    assert 3 <= len(kept) < 1600
    fewer = [*LONG[:5], "4", *LONG[6:]]
    assert main(["sw", *out, *fewer]) == 0
    assert main(["sw", "--values", own, *fewer, "--out", str(tmp_path / "whole")]) == 0
    whole = rows(tmp_path / "whole")
    assert rows(tmp_path / "r")[: len(whole)] == whole


@pytest.mark.parametrize(
    ("args", "about"),
    [
        (["--seeds", "0"], "--seeds, its value: too small; give 1 or more"),
        (["--epsilon", "1e-7"], "give numbers above 2**-16, at most 10"),
        (["--jobs", "0"], "--jobs, its value: too small; give 1 or more"),
        (["--epsilon", "-1"], "--epsilon, -1: not a budget"),
        (["--sets", "gamma"], "--sets, gamma: no such data set"),
        (["--sets", "pums"], "not bundled, as its licence is unclear"),
        (["--only", "8,2"], "--only, 8: no such figure; give some of 2, 3, 4, 5, 6, 7, new"),
        (["--values", "none.npz:a", "--ceiling", "9"], "none.npz, a: no such file"),
        (["--values", "none.npz:a"], "--ceiling, its value: needed with --values"),
    ],
)
def test_wrong_usage_names_the_option_and_the_remedy(
    args: list[str], about: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sw", *args, "--out", str(tmp_path / "r")]) == EXIT_USAGE
    assert about in capsys.readouterr().err
    assert not (tmp_path / "r").exists()


def test_a_folder_that_cannot_be_written_is_named(
    own: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    args = ["sw", "--values", own, *TINY, "--out", str(tmp_path / "file")]
    assert main(args) == EXIT_USAGE
    assert "file" in capsys.readouterr().err


def test_quick_takes_few_values_of_a_built_in_set(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    args = ["sw", "--quick", "--sets", "beta", "--only", "7", "--epsilon", "2", "--seeds", "1"]
    assert main([*args, "--out", str(tmp_path), "--json"]) == 0
    (given,) = json.loads(capsys.readouterr().out)["data"]
    assert given["n"] == 20_000
    assert given["source"].startswith("the first 20000 of")


def test_only_the_figures_that_are_asked_for_are_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Figures 2, 3, 4 and the newer methods' share their estimates."""
    args = ["sw", "--quick", "--sets", "beta", "--only", "3", "--epsilon", "2", "--seeds", "1"]
    assert main([*args, "--out", str(tmp_path)]) == 0
    drawn = sorted(path.name for path in tmp_path.iterdir() if "figure" in path.name)
    assert drawn == ["sw-figure-3.png", "sw-figure-3.svg"]
    told = capsys.readouterr().out
    assert "### Figure 3" in told
    assert "### Figure 2" not in told
    assert "### Figure 2" not in (tmp_path / "sw.md").read_text()
