"""What the demo shows while it runs, from the log of the simulated homes."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from firmware_stubs.demo.children import Usage
from firmware_stubs.demo.watch import FleetLog, Lines, LiveView, Snapshot


def snapshot(phase: str = "playing", day: float = 3.5, *, thetas: int = 2) -> Snapshot:
    return Snapshot(
        elapsed_s=7.2,
        phase=phase,
        day=day,
        days=49,
        created=1000,
        confirmed=900,
        thetas=((1, 43_470), (2, 9_000), (3, 9_500))[:thetas],
        usages=(Usage("agent-1", 4711, "running", 1.5, 30.2), Usage("homes", 2, "done", 1, 40)),
    )


def test_the_log_is_read_as_it_grows_and_half_lines_wait(tmp_path: Path) -> None:
    path = tmp_path / "homes.out"
    end = {"event": "end", "created": 192, "confirmed": 192, "reports": {"home-001": 190}}
    end["sums"] = 2
    path.write_text('{"event": "link", "state": "up"}\n{"event": "plan", "epoch": 1, "theta": 43')
    log = FleetLog(path)
    log.update()
    assert log.thetas == []
    with path.open("a") as file:
        file.write('470, "day": 0}\n{"event": "day", "day": 1, "created": 96, "confirmed": 0}\n')
    log.update()
    log.update()
    assert (log.thetas, log.created, log.confirmed) == ([(1, 43_470)], 96, 0)
    with path.open("a") as file:
        file.write(json.dumps(end) + "\n")
    log.update()
    assert (log.confirmed, log.homes) == (192, {"home-001": 192})


def test_a_snapshot_says_the_simulated_date_and_the_plan() -> None:
    assert snapshot().date == "Thu 31 Oct, 12:00"
    assert snapshot(thetas=0).theta == "no plan yet"
    assert snapshot(thetas=1).theta == "epoch 1: every report is a survey over 0 to 43.5 kW"
    assert snapshot(thetas=2).theta == "epoch 2: θ = 9.0 kW"


def test_plain_lines_say_only_what_is_new() -> None:
    out = io.StringIO()
    with Lines(Console(file=out, width=100)) as view:
        for shown in (snapshot(), snapshot(), snapshot(day=7.1, thetas=3), snapshot("stopping", 8)):
            view.show(shown)
    lines = [line.strip() for line in out.getvalue().splitlines()]
    assert lines == [
        "7 s  playing …",
        "Thu 31 Oct, 12:00: epoch 2: θ = 9.0 kW",
        "Mon 04 Nov, 02:00: epoch 3: θ = 9.5 kW",
        "Mon 04 Nov, 02:00: 1,000 reports of simulated homes, 900 confirmed",
        "7 s  stopping …",
        "Tue 05 Nov, 00:00: epoch 2: θ = 9.0 kW",
    ]


def test_the_live_view_shows_reports_plan_and_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")  # a dumb one is never drawn over
    out = io.StringIO()
    with LiveView(Console(file=out, width=100, force_terminal=True)) as view:
        view.show(snapshot())
    for text in ("1,000 reports", "θ = 9.0 kW", "43.5 → 9.0", "agent-1", "4711", "done"):
        assert text in out.getvalue()
