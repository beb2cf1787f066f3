"""`edge-ldp forecast` says what to expect, and names the field that is wrong."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from edge_ldp.extras import pip_install
from edge_ldp.sums import Fleet, forecast, homes_law, law_of, splits
from edge_ldp.sums.forecast_command import main
from edge_ldp.sums.text import percent_text
from tests.tables import each

PNG = b"\x89PNG"


def test_for_people_it_is_horizons_splits_and_the_choice(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--homes", "402", "--days", "49"]) == 0
    shown = capsys.readouterr()
    found = forecast(Fleet(402, 49, group=30), homes_law(0, 43_470))
    assert "8 reports of ε 1 in any 97 slots: ε 7.18 a day" in shown.out
    assert f"θ = {found.theta:,} and {100 * found.share:.0f} % surveys" in shown.out
    for title in ("whole run", "week", "day", "hour of day", "whole run, 30 homes"):
        assert f"\n  {title} " in shown.out
    for split in ("1 × 8", "2 × 4", "4 × 2", "8 × 1"):
        assert f"\n  {split} " in shown.out
    assert shown.out.count("as asked") == 1
    assert shown.err == ""  # progress is for terminals


def test_for_machines_it_is_the_forecast(capsys: pytest.CaptureFixture[str]) -> None:
    fleet = Fleet(100, 28, "2", group=10)
    arguments = ["--homes", "100", "--epsilon", "2", "--group", "10", "--json"]
    assert main(arguments) == 0
    view = json.loads(capsys.readouterr().out)
    found = forecast(fleet, homes_law(0, 43_470))
    assert view["values"]["mean"] == homes_law(0, 43_470).mean
    (ours,) = view["forecasts"]
    assert (ours["theta"], ours["survey_share"]) == (found.theta, found.share)
    assert [row["half_width"] for row in ours["rows"]] == [row.half for row in found.rows]
    assert [row["horizon"] for row in ours["rows"]][-1] == "group"
    assert ours["window"] == {"reports": 8, "slots": 97, "streams": 1, "period": 107}
    assert [split["epsilon"] for split in view["splits"]] == [
        float(fleet.total / each.window.reports) for each in splits(fleet)
    ]
    assert all(split["epsilon_a_window"] == 16 for split in view["splits"])


def test_several_numbers_of_homes_make_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--homes", "1,40000", "--window", "every", "--horizon", "whole"]) == 0
    shown = capsys.readouterr().out
    assert "every slot, ε 1 a report: ε 96 a day" in shown
    assert "\n  40,000 " in shown
    assert "split" not in shown
    assert "* fewer than 100 reports" in shown


def test_a_sample_of_readings_takes_the_place_of_the_guess(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    readings = [100, 200, 300, 4000]
    expected = forecast(Fleet(50, 28, group=30), law_of(readings, 0, 5000))
    column = tmp_path / "home.csv"
    column.write_text("time, power\n1,100\n\n2,200\n3,300\n4,4000\n")
    array = tmp_path / "home.npy"
    np.save(array, np.array(readings).reshape(2, 2))
    for given in (f"{column}:power", str(array)):
        arguments = ["--values", given, "--ceiling", "5000", "--homes", "50", "--json"]
        assert main(arguments) == 0
        view = json.loads(capsys.readouterr().out)
        assert view["values"]["source"] == "4 readings"
        assert view["forecasts"][0]["rows"][0]["half_width"] == expected.rows[0].half
        arguments += ["--slots-a-day", "1", "--horizon", "whole"]
        assert main([*arguments, "--pilot-days", "2"]) == 0
        told = json.loads(capsys.readouterr().out)["values"]["source"]
        assert told == "4 readings in time"
        assert main([*arguments, "--pilot-days", "3"]) == 2
        assert "--pilot-days: expected what divides 4 readings" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("percent", "told"), [(0.04, "0.0 %"), (9.94, "9.9 %"), (9.96, "10 %"), (12_345.6, "12,346 %")]
)
def test_a_percent_has_a_decimal_below_ten(percent: float, told: str) -> None:
    assert percent_text(percent) == told


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_the_picture_is_drawn_without_a_display(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    path = tmp_path / f"forecast.{kind}"
    assert main(["--picture", str(path), "--days", "14"]) == 0
    assert path.read_bytes().startswith(PNG if kind == "png" else b"<?xml")


def test_without_matplotlib_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "edge_ldp.sums.picture", None)
    assert main(["--picture", str(tmp_path / "forecast.png")]) == 2
    assert f": {pip_install('edge-ldp[plot]')}\n" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("told", "arguments"),
    each(
        ("homes: expected a whole number from 1 to 100,000,000", "--homes 0"),
        ("days: expected a whole number from 1 to 36,500", "--days 0"),
        ("epsilon: expected a finite number", "--epsilon 0"),
        ("epsilon: expected 0.05 to 10 a report", "--epsilon 20"),
        ("window reports: expected 1 to slots", "--window 98/97"),
        ("window slots: expected", "--streams 0"),
        ("low, ceiling: expected low < ceiling", "--low 5 --ceiling 5"),
        ("mean: expected a number between 0 and 43470", "--mean -1"),
        ("--mean: expected no --values beside it", "--values x.npy --mean 1"),
        ("horizon: expected one of whole, day, hour-of-day", "--horizon week --days 7"),
        ("--parts: expected what divides 96 slots, as 4", "--parts 0", "--parts 5"),
        ("--mode: expected sums with --parts", "--parts 4 --mode local"),
        ("group: expected 1 to 400", "--group 401"),
        ("--picture: expected a file that ends with one of .png, .svg", "--picture x.jpg"),
        ("--values: expected FILE.csv:COLUMN or FILE.npy", "--values x.csv"),
        ("missing.csv: No such file", "--values missing.csv:power"),
        ("--pilot-days: expected --values beside it", "--pilot-days 7"),
        ("missing.npy: No such file", "--values missing.npy"),
        ("missing/x.png: No such file", "--picture missing/x.png"),
        *(
            ("slots_a_day: expected a whole number from 1 to 86,400", f"--slots-a-day {slots}")
            for slots in (0, -1, 86_401)
        ),
        ("expected 1 to 20 whole numbers", "--homes 1,x", "--homes " + ",".join("1" * 21)),
        ("expected", "--window 8", "--window x/97", "--window 8/x", "--window 8/"),
    ),
)
def test_wrong_input_is_named_with_what_it_may_be(
    arguments: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code: object = main(arguments.split())
    except SystemExit as ended:  # of argparse
        code = ended.code
    assert code == 2
    error = capsys.readouterr().err
    assert error.startswith(("edge-ldp forecast: ", "usage: "))
    assert told in error


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("csv", b"time,load\n1,2\n", ":1: expected a column 'power' in ['time', 'load']"),
        ("csv", b"power\n1\nx\n", ":3, power: expected a number"),
        ("csv", b"a,power\n1\n", ":2, power: expected a number"),
        ("csv", b'power\n1\n" "\n', ":power: expected numbers; 1 of 2 are missing"),
        ("csv", b"power\n", ":power: expected a list of one reading or more"),
        ("csv", b"", ":power: expected a list of one reading or more"),
        ("csv", b"power\n9\n50000\n", "1 of 2 lie outside: give another low or ceiling, or clamp"),
        ("csv", b"power\n\xff\n", "expected a CSV file in UTF-8"),
        ("npy", b"no array", "expected numbers as numpy.save writes them"),
        ("npy", b"", "expected numbers as numpy.save writes them"),
    ],
)
def test_a_file_that_is_no_sample_is_named_by_line(
    name: str, content: bytes, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"home.{name}"
    path.write_bytes(content)
    assert main(["--values", f"{path}:power" if name == "csv" else str(path)]) == 2
    assert told in capsys.readouterr().err
