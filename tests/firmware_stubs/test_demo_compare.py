"""The verdict of the demo: what fails it, what its figures are, and what its page holds."""

import io
import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from firmware_stubs.demo.ask import AskError
from firmware_stubs.demo.compare import (
    Comparison,
    Reconciliation,
    compare,
    privacy,
    reconcile,
    to_json,
)
from firmware_stubs.demo.main import JSON_KEYS
from firmware_stubs.demo.page import page
from firmware_stubs.demo.run import Played
from firmware_stubs.demo.scenario import BINS_W, CEILING_W, MONDAY, Scenario
from firmware_stubs.demo.search import Leak, Searched
from firmware_stubs.demo.shipped import Expected, expect
from firmware_stubs.demo.table import facts, passed, show
from firmware_stubs.demo.truth import Plain, Truth

SCENARIO = Scenario(weeks=1, homes=20, seconds=6.0, started_s=0.0)
ORIGIN_S = int(MONDAY.timestamp())
DAY_S = 86_400
HOMES = 22
MEAN_W = 1_000.0


def told(device: str, **counts: int) -> dict[str, Any]:
    zero = dict.fromkeys(("counted", "rejected", "expired", "pending", "duplicates"), 0)
    return {"device": device, "stream": "power", **zero, **counts}


def answer(mean: float, half: float, slots: int) -> dict[str, Any]:
    low, high = mean - half, mean + half
    totals = {"total": mean * slots, "total_low": low * slots, "total_high": high * slots}
    return {"mean": mean, "low": low, "high": high, **totals}


def theta(epoch: int, theta_w: int, after_s: int, share: float, high: int) -> dict[str, Any]:
    issued = {"epoch": epoch, "theta": theta_w, "issued_s": ORIGIN_S + after_s}
    return {**issued, "survey_share": share, "survey_low": 0, "survey_high": high}


def summed(off: float) -> dict[str, Any]:
    """Sums of 7 days, each off by so many parts of its half-width, which is a tenth."""
    days = [
        {"from_s": ORIGIN_S + at * DAY_S, **kwh(480.0 * (1 + off / 10), 48.0)} for at in range(7)
    ]
    return {"whole": {"homes": 20, **kwh(3360 * (1 + off / 10), 100.0)}, "periods": days}


def kwh(total: float, half: float) -> dict[str, float]:
    ends = {"energy_kwh_low": total - half, "energy_kwh_high": total + half}
    return {"energy_kwh": total, **ends}


def played(*, off_w: float = 0.0, sums_off: float | None = 0.5, **changes: Any) -> Played:
    """An answer for days 1 to 6 that is off by so much, with intervals of ± 60 W."""
    per_hour = HOMES * 6 * 4
    found = Played(
        broker="mosquitto",
        query={
            "from_s": ORIGIN_S + DAY_S,
            "whole": answer(MEAN_W + off_w, 60, 24 * per_hour),
            "groups": [{"group": h, **answer(MEAN_W + off_w, 60, per_hour)} for h in range(24)],
            "theta": [
                theta(1, CEILING_W, -900, 1.0, CEILING_W),
                theta(2, 9000, DAY_S, 0.1, 16_384),
                theta(3, 9900, 8 * DAY_S, 0.1, 16_384),
            ],
            "ranges": [
                {"low": low, "high": high, "share": 0.5, "share_low": 0.4, "share_high": 0.6}
                for low, high in BINS_W
            ],
            "density": {
                "edges": [0, 1000, 2000, CEILING_W],
                "probabilities": [0.1, 0.8, 0.1],
                "low": [0.0, 0.7, 0.0],
                "high": [0.2, 0.9, 0.2],
                "n": 2112,
                "iterations": 30,
                "method": "EMS",
                "warnings": [],
            },
            "sums": None if sums_off is None else summed(sums_off),
        },
        status={"completeness": [told("agent-1", counted=670), told("home-001", counted=672)]},
        created={"agent-1": 670, "home-001": 672},
        searched=Searched(9, 80_000, ()),
    )
    return replace(found, **changes)


def comparison(found: Played) -> Comparison:
    slots = SCENARIO.slots
    truth = Truth(HOMES, np.full(slots, int(HOMES * MEAN_W)), HOMES * slots, 3)
    plain = Plain(HOMES, np.full(slots, HOMES * MEAN_W), np.full(slots, HOMES * MEAN_W**2 * 400))
    return compare(SCENARIO, found, truth, plain, Expected((0.48,) * 7, 30.0, 90.0))


def test_daily_sums_stand_beside_what_reports_would_tell() -> None:
    found = comparison(played()).shipped
    assert found is not None
    assert found.lines == (
        ("whole run", "3.4", "3.5", "no", "3.0", "30.0"),
        ("single days", "", "", "7 of 7", "10", "90"),
    )
    assert found.whole.truth == pytest.approx(3.36)
    wrong = comparison(played(sums_off=1.5)).shipped
    assert wrong is not None
    assert (wrong.held, wrong.reasons) == (0, [])  # of so few days chance might do that
    many = replace(wrong, days=wrong.days * 3)
    assert many.reasons == ["21 of 21 days' sums miss the truth; 14 may"]
    assert comparison(played(sums_off=None)).shipped is None


def test_readings_are_added_up_by_the_days_of_their_sums() -> None:
    found = expect(np.full((20, SCENARIO.slots), 1000), SCENARIO)
    assert found.days == pytest.approx((0.48,) * 7)
    assert 0 < found.whole_percent < found.day_percent


def test_hours_without_an_answer_are_told_with_the_remedy() -> None:
    found = played()
    groups = [group for group in found.query["groups"] if group["group"] not in (0, 7)]
    short = replace(found, query={**found.query, "groups": groups})
    with pytest.raises(AskError, match="to 2 of 24 hours: play more --weeks, or give it more"):
        comparison(short)


def test_sums_are_compared_over_the_slots_they_are_about() -> None:
    found = comparison(played())
    assert found.first_slot == 96
    assert found.whole.truth == MEAN_W
    mwh = MEAN_W * HOMES * 6 * 24 / 1e6
    assert found.whole.true_total == pytest.approx(mwh)
    assert found.whole.total.mean == pytest.approx(mwh)
    assert found.hours[7].true_total == pytest.approx(mwh / 24)
    assert found.held == 24
    assert found.reasons == []


def test_more_than_nine_misses_fail_the_demo_and_nine_do_not() -> None:
    found = played()
    groups = found.query["groups"]
    for hour in range(9):
        groups[hour] |= {"low": 1001.0, "high": 1100.0}
    assert comparison(found).reasons == []
    groups[9] |= {"low": 900.0, "high": 999.0}
    missed = comparison(found)
    assert missed.held == 14
    assert missed.reasons == ["10 of 24 intervals miss the truth; 9 may"]


@pytest.mark.parametrize(
    ("row", "missing", "surplus"),
    [
        (told("agent-1", counted=669), 1, 0),
        (told("agent-1", counted=671), 0, 1),
        (told("agent-1", counted=669, pending=1), 0, 0),
        (told("agent-1", counted=669, rejected=1), 0, 0),
        (told("agent-1", counted=669, expired=1), 0, 0),
    ],
)
def test_a_report_lost_refused_waiting_or_counted_twice_fails_the_demo(
    row: dict[str, Any], missing: int, surplus: int
) -> None:
    rows = [row, told("home-001", counted=672, duplicates=4)]
    found = comparison(played(status={"completeness": rows}))
    assert (found.account.missing, found.account.surplus) == (missing, surplus)
    assert not found.account.exact
    assert "accounting" in found.reasons[0]


def test_one_lost_and_another_counted_twice_do_not_cancel_out() -> None:
    account = reconcile({"a": 5, "b": 5}, [told("a", counted=4), told("b", counted=6)])
    assert account == Reconciliation(10, 10, 0, 0, 0, 0, missing=1, surplus=1)
    assert not account.exact


def test_a_device_that_nobody_started_or_heard_of_fails_the_demo() -> None:
    stranger = reconcile({"a": 5}, [told("a", counted=5), told("z", counted=1)])
    assert (stranger.surplus, stranger.exact) == (1, False)
    silent = reconcile({"a": 5, "b": 5}, [told("a", counted=5)])
    assert (silent.missing, silent.exact) == (5, False)


def test_a_reading_found_fails_the_demo_without_being_shown() -> None:
    found = comparison(
        played(searched=Searched(1, 9, (("agent-1/state.db-wal", Leak("<u4 Wh", 77)),)))
    )
    assert found.reasons == ["a reading in agent-1/state.db-wal: <u4 Wh at byte 77"]


def test_plans_issued_after_the_last_reading_are_not_shown() -> None:
    assert [row["epoch"] for row in comparison(played()).thetas_played] == [1, 2]


def test_epsilon_per_day_is_told_for_the_demo_and_for_what_ships() -> None:
    told_of = privacy()
    assert told_of["epsilon_per_report"] == pytest.approx(1, abs=1e-5)
    assert told_of["epsilon_per_day"] == 96
    assert told_of["default_window"] == {"reports": 8, "slots": 97, "period": 107}
    assert told_of["default_epsilon_per_day"] == pytest.approx(8 * 96 / 107, abs=0.01)


def test_the_json_has_its_documented_keys() -> None:
    fields = json.loads(json.dumps(to_json(comparison(played(off_w=10)))))
    assert set(fields) == {
        "ok", "reasons", "run", "privacy", "whole", "hours", "held", "missed_allowed", "theta",
        "density", "shares", "shipped", "accounting", "search",
    }  # fmt: skip
    assert fields["ok"] is True
    assert len(fields["hours"]) == 24
    assert fields["hours"][5]["hour"] == 5
    assert fields["whole"]["mean_w"] == 1010
    assert fields["whole"]["half_width_percent"] == 6
    assert fields["run"]["clamped_readings"] == 3
    assert fields["accounting"]["exact"] is True


def test_every_key_of_the_json_is_in_the_help() -> None:
    def keys(found: object) -> set[str]:
        if isinstance(found, dict):
            return set(found).union(*(keys(value) for value in found.values()))
        return set().union(*(keys(item) for item in found)) if isinstance(found, list) else set()

    assert {key for key in keys(to_json(comparison(played()))) if key not in JSON_KEYS} == set()


def test_the_table_and_facts_fit_a_terminal_of_eighty_columns() -> None:
    console = Console(width=80, record=True, file=io.StringIO())
    found = comparison(played())
    show(found, console)
    text = console.export_text()
    assert "…" not in text
    line = next(line.split() for line in text.splitlines() if "00-01" in line)
    assert line[:6] == ["00-01", "1,000", "1,000", "940–1,060", "yes", "6.0"]
    assert set(facts(found)) == {
        "Intervals", "Total", "Readings", "θ", "Privacy", "Accounting", "Search",
    }  # fmt: skip
    assert facts(found)["θ"].startswith("epoch 1 from day 0.0: surveys only; epoch 2 from day 1.0")
    assert "fall with 1/√homes" in facts(found)["Intervals"]
    assert passed(found).startswith("Passed: 24 of 24")


def test_the_page_needs_nothing_from_elsewhere() -> None:
    html = page(comparison(played()), b"\x89PNG")
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!data:)|url\(|@import|<script""", html)
    assert 'src="data:image/png;base64,iVBORw=="' in html
    assert html.count("<tr") == 26 + 3
    assert '<p class="verdict ok">' in html


def test_the_page_says_what_failed() -> None:
    html = page(comparison(played(off_w=500)), b"")
    assert '<p class="verdict failed">Failed: 24 of 24 intervals miss' in html
    assert '<td class="no">NO</td>' in html
