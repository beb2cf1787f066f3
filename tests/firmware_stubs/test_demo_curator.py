"""The demo of the curator mode: its figures from given answers, and a short run of all of it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firmware_stubs.data import load_year
from firmware_stubs.demo.curator.compare import KWH, Comparison, compare, to_json
from firmware_stubs.demo.curator.curator_demo import seconds_for
from firmware_stubs.demo.curator.picture import draw
from firmware_stubs.demo.curator.run import Played
from firmware_stubs.demo.curator.scenario import (
    BASE_WH,
    DAY_S,
    DAY_SLOTS,
    TAIL,
    THETA_DAYS,
    Scenario,
    registers_wh,
)
from firmware_stubs.demo.search import Leak, Searched

THETA = 3000
HALF = 8000 / KWH / 1000
DAYS = 14
SCENARIO = Scenario(DAYS, 10.0, 0.0)


def given(first: int, days: int, off: float = 0.0) -> dict[str, Any]:
    """Return a sum as the aggregator gives it, `off` half-widths beside the truth."""
    values = SCENARIO.values[(THETA_DAYS + first) * DAY_SLOTS :][: days * DAY_SLOTS]
    total = float(np.minimum(values, THETA).sum()) + off * HALF
    from_s = SCENARIO.first_published_s + first * DAY_S
    return {
        "from_s": from_s,
        "to_s": from_s + days * DAY_S,
        "total": total,
        "low": total - HALF,
        "high": total + HALF,
        "readings": days * DAY_SLOTS,
    }


def found(
    misses: int = 0, counted: int = DAYS * DAY_SLOTS, searched: Searched | None = None
) -> Comparison:
    def answer(rows: list[dict[str, Any]]) -> dict[str, Any]:
        return {"released": [{"theta": THETA, "sums": rows}]}

    row = dict.fromkeys(("rejected", "expired", "pending", "duplicates"), 0)
    played = Played(
        broker="mosquitto",
        daily=answer([given(day, 1, 1.5 if day < misses else 0.5) for day in range(DAYS)]),
        weekly=answer([given(0, 7), given(7, 7)]),
        whole=answer([given(0, DAYS)]),
        status={"curated": [{**row, "created": DAYS * DAY_SLOTS, "counted": counted}]},
        ledger={
            "curated": {
                "released": DAYS * DAY_SLOTS,
                "epsilon_per_slot": 0.1,
                "epsilon_if_one": 1.0,
            }
        },
        searched=searched or Searched(3, 1000, ()),
    )
    return compare(SCENARIO, played)


def test_the_bundled_year_is_whole_and_begins_on_a_monday() -> None:
    power_w, start_s = load_year()
    assert power_w.shape == ((28 + 365) * DAY_SLOTS,)
    assert power_w.min() > 0
    assert round(float(power_w.mean())) == 1069
    assert (start_s // DAY_S + 3) % 7 == 0
    assert start_s % DAY_S == 0


def test_rows_tell_truth_cut_and_released_in_kilowatt_hours() -> None:
    comparison = found()
    row = comparison.days[3]
    values = SCENARIO.values[(THETA_DAYS + 3) * DAY_SLOTS :][:DAY_SLOTS]
    assert row.truth == pytest.approx(values.sum() / 12_000)
    assert row.cut == pytest.approx(np.minimum(values, THETA).sum() / 12_000)
    assert row.cut < row.truth
    assert row.held
    assert comparison.whole.days == DAYS
    assert [week.day for week in comparison.weeks] == [0, 7]
    assert comparison.reasons == []
    assert to_json(comparison)["ok"]


def test_it_fails_when_more_intervals_miss_than_may() -> None:
    allowed = found().allowed_misses
    assert 0 < allowed < DAYS
    assert found(misses=allowed).reasons == []
    (reason,) = found(misses=allowed + 1).reasons
    assert "daily intervals miss" in reason


def test_it_fails_for_a_value_lost_or_a_reading_found() -> None:
    (lost,) = found(counted=DAYS * DAY_SLOTS - 1).reasons
    assert lost.startswith("accounting")
    spot = ("home-1/state.db", Leak("decimal text", 17))
    (leak,) = found(searched=Searched(3, 1000, (spot,))).reasons
    assert "home-1/state.db: decimal text at byte 17" in leak
    assert str(BASE_WH) not in leak


def test_the_picture_is_drawn(tmp_path: Path) -> None:
    draw(found(), tmp_path / "p.png")
    assert (tmp_path / "p.png").stat().st_size > 20_000


def test_registers_are_those_of_each_midnight() -> None:
    values = np.full(2 * DAY_SLOTS, 1200, np.int64)
    assert {BASE_WH, BASE_WH + 28_800, BASE_WH + 57_600} <= set(registers_wh(values))


@pytest.mark.slow
def test_a_short_run_of_the_whole_demo_passes(tmp_path: Path) -> None:
    words = ["demo", "--mode", "curator", "--days", "7", "--seconds", "6", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "edge_ldp.cli", *words, "--output", str(tmp_path / "report")],
        capture_output=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr.decode()
    facts = json.loads(done.stdout)
    assert facts["ok"]
    assert 0 <= facts["accounting"]["counted"] - 7 * DAY_SLOTS <= TAIL
    assert facts["search"]["readings_found"] == 0
    assert facts["privacy"]["ledger"]["epsilon_per_slot"] == 0.1
    assert len(facts["days"]) == 7
    assert (tmp_path / "report" / "curator.png").exists()
    assert json.loads((tmp_path / "report" / "curator.json").read_text())["ok"]


def test_a_busy_machine_is_given_more_time_and_never_less_than_asked() -> None:
    assert seconds_for(1, 42.0) == 42.0
    assert seconds_for(10**9, 42.0) > 10_000
