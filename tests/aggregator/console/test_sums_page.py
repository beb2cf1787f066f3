"""Homes' own sums on the stream's page: beside reports, each number the command's."""

import csv
import re
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from aggregator.config import load_config
from aggregator.plans import planner
from aggregator.store.contract import PlanRow
from aggregator.store.opening import open_store
from tests.aggregator.console.conftest import PATIENCE_MS
from tests.aggregator.console.small_fleet import (
    Fleet,
    add_plans,
    add_reports,
    add_sums,
    make_fleet,
    serving,
)
from tests.aggregator.console.test_pages import CELLS_SHOWN, looking, serious, shoot, value

HOMES = 12
QUESTIONS_OF_SUMS = ["total", "week", "day", "part-of-day", "hour-of-day"]
NARROW = {"width": 390, "height": 844}


def _numbers(text: str) -> list[float]:
    return [float(one.replace(",", "")) for one in text.removesuffix(" %").split("\u00a0±\u00a0")]


def _near(*numbers: float) -> Any:
    return pytest.approx(numbers, abs=0.0501)  # a digit is shown, halves rounded either way


def test_sums_stand_beside_reports_and_say_what_a_liar_moves_REP_17(
    browser: Browser, tmp_path: Path
) -> None:
    fleet = make_fleet(tmp_path)
    plan = add_plans(fleet, 2)
    add_reports(fleet, plan, {"north": HOMES}, 2)
    add_sums(fleet, plan, [f"north-{at:04d}" for at in range(HOMES)], 2, scale=610, cells=6)
    answer = fleet.json("query", "--no-density")
    ((_, printed),) = fleet.ask(
        ["aggregator", "query", "-c", str(fleet.file), "--mode", "sums", "--csv"]
    )
    sums = answer["sums"]
    every = [sums["whole"], *sums["periods"], *sums["parts"]]
    with serving(fleet) as (address, _), looking(browser, address) as page:
        page.goto("/stream")
        lines = page.locator("#sums-table tbody tr")
        expect(lines).to_have_count(len(every), timeout=PATIENCE_MS)
        shown = lines.evaluate_all(CELLS_SHOWN)
        for row, cells in zip(every, shown, strict=True):
            names = ("mean", "energy_kwh", "full_kwh", "homes", "coverage")
            assert [float(value) for value, _ in cells[1:]] == [row[name] for name in names]
            for name, (_, text) in zip(names[:3], cells[1:4], strict=True):
                ends = (f"{name}_low", f"{name}_high") if "kwh" in name else ("low", "high")
                half = (row[ends[1]] - row[ends[0]]) / 2
                assert _numbers(text) == _near(row[name], half)
            assert cells[4][1] == f"{row['homes']}"
            assert _numbers(cells[5][1]) == [100 * row["coverage"]]
        assert [text for _, text in (cells[0] for cells in shown[-6:])] == [
            f"{at:02}:00 to {(at + 4) % 24:02}:00 UTC" for at in range(0, 24, 4)
        ]
        parts = [(row["mean"], f"{4 * at:02}:00") for at, row in enumerate(sums["parts"])]
        usual = f"Most at {max(parts)[1]}, 4 hours, by homes' sums, {max(parts)[0]:,.1f} ("
        expect(page.locator("#profile-said")).to_contain_text(usual)
        said = page.locator("#sums-said")
        assert answer["mode"] == "sums"
        expect(said).to_contain_text("the mean by homes' own sums.")
        moved = f"move the mean of all by {sums['whole']['mean_sway']:,.1f} W (n·R + 56b"
        expect(said).to_contain_text(moved)
        assert serious(page) == []
        shoot(page, "sums")
        page.set_viewport_size(NARROW)  # type: ignore[arg-type] # two whole numbers
        page.reload()
        expect(lines).to_have_count(len(every), timeout=PATIENCE_MS)
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]
        shoot(page, "sums-phone")
        page.goto("/stream?by=day")
        mean = sums["periods"][-1]["mean"]
        day = re.compile(rf"{mean:,.1f} W, 95 % from .*, sums of {HOMES} homes")
        expect(page.locator("#curve-said")).to_have_text(day, timeout=PATIENCE_MS)
        _look_at_tiles(page, fleet)
        text = httpx.get(f"{address}/api/v1/sums", params={"format": "csv"}).text
    given = list(csv.DictReader(text.splitlines()))
    kept = list(csv.DictReader(printed.splitlines()))
    for one in ("mean", "low", "high", "full_kwh", "coverage"):
        assert [row[one] for row in given] == [row[one] for row in kept]
    assert given[0]["group"] == "whole"


def test_gas_by_the_hour_is_told_in_cubic_metres_and_as_sums_alone(
    browser: Browser, tmp_path: Path
) -> None:
    made = make_fleet(tmp_path, units="W dm3")
    unit = 'unit = "dm3"\n'
    own = unit + "slot_seconds = 3600\nbucket_slots = 1\n"
    own += "home_sums = { share = 0.125, days = 7 }\n"
    made.file.write_text(made.file.read_text().replace(unit, own))
    fleet = Fleet(made.file, load_config(made.file))
    plan = add_plans(fleet, 2)
    homes = [f"north-{at:04d}" for at in range(HOMES)]
    add_reports(fleet, plan, {"north": HOMES}, 2)
    _add_plan_of_gas(fleet)
    add_sums(fleet, plan, homes, 3, scale=2000, at_stream=1)
    sums = fleet.json("query", "--no-density", "--stream", "power1")["sums"]
    with serving(fleet) as (address, _), looking(browser, address) as page:
        page.goto("/?stream=power1")
        expect(page.locator("#cut")).to_contain_text("Homes give sums of it alone")
        assert "power1 has no plan" not in page.locator("#rings").inner_text()
        told = page.locator("#day-yesterday .pm")
        expect(told).to_have_text(re.compile(r"± [0-9.,]+ m3, by homes' sums$"))
        yesterday = value(page, '#day-yesterday [data-cell="total"]')
        assert yesterday == sums["periods"][-1]["volume_m3"]
        days = re.compile(r"^[0-9-]+ 00:00 to [0-9-]+ 00:00")  # of a month three days are known
        expect(page.locator("#day-month .compared")).to_have_text(days)
        assert value(page, '#day-month [data-cell="total"]') == sums["whole"]["volume_m3"]
        page.goto("/groups?stream=power1")
        total = page.locator('#groups [data-cell="total"]')
        expect(total).to_have_text(f"{sums['whole']['volume_m3']:,.1f} m3")
        page.goto("/stream?stream=power1")
        lines = page.locator("#sums-table tbody tr")
        every = [sums["whole"], *sums["periods"], *sums["parts"]]
        expect(lines).to_have_count(len(every), timeout=PATIENCE_MS)
        expect(page.locator("#sums-table thead")).to_contain_text("measured m3")
        names = ("mean", "volume_m3", "full_m3")
        for row, cells in zip(every, lines.evaluate_all(CELLS_SHOWN), strict=True):
            assert [float(one) for one, _ in cells[1:4]] == [row[name] for name in names]
        assert "θ" not in page.locator("main").inner_text()
        page.goto("/privacy")
        told = page.get_by_role("region", name="power1")
        expect(told).to_contain_text("Homes are asked for their sums of 7 days, at 0.125 of a wind")
        expect(told).to_contain_text("No device that is invited reports a single value of it.")
        expect(told.get_by_role("table")).to_have_count(0)
        page.goto("/plans?stream=power1")
        expect(page.locator("#plans")).to_contain_text("there is no θ to choose")
        assert page.locator("#next-head").count() == 0
        page.get_by_role("button", name="Forecast").click()
        said = page.locator("#forecast-said")
        expect(said).to_contain_text("over slots of 3,600 s", timeout=3 * PATIENCE_MS)
        assert page.locator("#forecast-command").inner_text().endswith("--parts 4")
        shown = page.locator("#forecast-table tbody tr").evaluate_all(CELLS_SHOWN)
        assert [cells[0][0] for cells in shown] == QUESTIONS_OF_SUMS
        assert page.locator("#splits").is_hidden()


def _add_plan_of_gas(fleet: Fleet) -> None:
    """Issue a plan as older versions did, which nobody goes by."""
    with closing(open_store(fleet.config, str(fleet.file))) as store:
        first = planner.first_plan("demo", fleet.config.streams[1], epoch=1, now_s=0)
        store.add_plan(PlanRow(2, 1, first.issued_s, first.to_json()))


def _look_at_tiles(page: Page, fleet: Fleet) -> None:
    """Yesterday is told by the sums of it, which are narrower; today has reports alone."""
    page.goto("/")
    row = _best_of(page, fleet, "yesterday")
    told = page.locator("#day-yesterday .pm")
    expect(told).to_have_text(re.compile(r"± [0-9.,]+ kWh, by homes' sums$"))
    shown = float(re.sub(r"[^0-9.]", "", told.inner_text().partition(" kWh")[0]))
    half = (row["energy_kwh_high"] - row["energy_kwh_low"]) / 2
    assert shown == pytest.approx(half, rel=0.051)  # two digits are shown
    _best_of(page, fleet, "today")
    expect(page.locator("#day-today .pm")).to_have_text(re.compile(r"kWh$"))


def _best_of(page: Page, fleet: Fleet, name: str) -> Any:
    """Return what the command answers for a tile's time, whose total the tile shows."""
    total = value(page, f'#day-{name} [data-cell="total"]')
    query = str(page.locator(f"#day-{name}").get_attribute("data-query")).partition("?")[2]
    asked = dict(parse_qsl(query))
    times = (f"--{end}={asked[end]}" for end in ("since", "until"))
    best = fleet.json("query", "--no-density", *times)["best"]
    assert best["mode"] == {"yesterday": "sums", "today": "local"}[name]
    assert total == best["energy_kwh"]
    return best
