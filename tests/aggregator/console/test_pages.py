"""The pages in Debian's Chromium: charts are drawn, numbers are the commands', nothing gets in."""

import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from aggregator.store.opening import open_store
from aggregator.store.rows import FleetDay
from edge_ldp.device.frame import encode
from edge_ldp.protocol.messages import topic
from edge_ldp.service.mqtt import Message
from tests import needs
from tests.aggregator.console.conftest import PATIENCE_MS
from tests.aggregator.console.small_fleet import (
    END_S,
    SLOT_S,
    Fleet,
    add_curated,
    add_looks,
    add_plans,
    add_reports,
    frame,
    make_fleet,
    send,
    serving,
    status,
)

PAGES = (
    *("/", "/stream", "/devices", "/device?name=north-0001", "/groups"),
    *("/privacy", "/plans", "/audit", "/dossier"),
)
DAY = ("total", "total_low", "total_high", "mean", "n", "surveys", "devices", "missing")
AXE = Path(__file__).parents[3] / ".node/node_modules/axe-core/axe.min.js"
# how many pixels of a chart are of the colour of its line
PIXELS = """node => {
  const canvas = node.querySelector("canvas");
  if (!canvas) return 0;
  const probe = document.createElement("canvas").getContext("2d");
  probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--mark");
  probe.fillRect(0, 0, 1, 1);
  const [r, g, b] = probe.getImageData(0, 0, 1, 1).data;
  const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let found = 0;
  for (let at = 0; at < data.length; at += 4) {
    const far = Math.abs(data[at] - r) + Math.abs(data[at + 1] - g) + Math.abs(data[at + 2] - b);
    if (far < 30 && data[at + 3] > 200) found++;
  }
  return found;
}"""


VIOLATIONS = """axe.run({resultTypes: ["violations"]}).then(found => found.violations.map(
  one => [one.id, one.impact, one.nodes.map(node => node.html)]))"""


@contextmanager
def looking(
    browser: Browser, address: str, *others: str, loses: bool = False, **how: Any
) -> Iterator[Page]:
    """Give a page; afterwards nothing must have been asked of others, and nothing gone wrong."""
    context = browser.new_context(base_url=address, **how)
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    asked: list[str] = []
    wrong: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    try:
        yield page
    finally:
        page.unroute_all(behavior="wait")  # an answer that is being changed needs its page
        context.close()
    assert all(url.startswith(tuple(f"{one}/" for one in (address, *others))) for url in asked)
    assert loses or wrong == []


def shoot(page: Page, name: str) -> None:
    """Keep a picture where SCREENSHOTS says, as `make screenshots` does for docs/console.md."""
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"console-{name}.png", full_page=True)


def value(page: Page, where: str) -> float:
    cell = page.locator(where)
    expect(cell).to_have_attribute("data-value", re.compile("."), timeout=PATIENCE_MS)
    return float(str(cell.get_attribute("data-value")))


def serious(page: Page) -> list[Any]:
    """Return what axe finds on a page that keeps somebody from using it."""
    if not AXE.exists():
        needs.missing("axe-core in .node")
    page.evaluate(AXE.read_text())
    return [one for one in page.evaluate(VIOLATIONS) if one[1] in ("serious", "critical")]


def test_every_number_is_the_commands_and_charts_are_drawn(
    browser: Browser, fleet: Fleet, console: str
) -> None:
    today = [
        "--since",
        str(END_S - END_S % 86_400),
        "--until",
        str(END_S - END_S % 86_400 + 86_400),
    ]
    answers = fleet.ask(
        fleet.aggregator("query", "--stream", "power", "--bins", "8"),
        fleet.aggregator("load-curve", "--stream", "power"),
        fleet.aggregator("query", "--stream", "power", *today),
        fleet.aggregator("status"),
        fleet.aggregator("query", "--by", "hour-of-day", "--no-density", "--until", today[1]),
        fleet.aggregator("load-curve", "--by", "day"),
    )
    whole, curve, day, status, hours, days = (json.loads(out) for _, out in answers)
    ((_, printed),) = fleet.ask(["aggregator", "load-curve", "-c", str(fleet.file)])
    with looking(browser, console) as page:
        page.goto("/stream")
        for name in ("mean", "low", "high", "total", "total_low", "total_high"):
            key = name.replace("total", "energy_kwh")
            assert value(page, f"#whole [data-cell={name}]") == whole["whole"][key]
        rows = page.locator("#quantiles tbody tr")
        expect(rows).to_have_count(len(whole["quantiles"]))
        for at, row in enumerate(whole["quantiles"]):
            told = [
                float(cell.get_attribute("data-value") or "nan")
                for cell in rows.nth(at).locator("th,td").all()
            ]
            assert told == [row["share"], row["value"], row["low"], row["high"]]
        found = page.locator("#curve-table tbody tr").evaluate_all(
            "rows => rows.map(row => [...row.cells].map(cell => Number(cell.dataset.value)))"
        )
        assert found == [
            [row[k] for k in ("from_s", "mean", "low", "high", "n")] for row in curve["hours"]
        ]
        noise = page.locator("#curve-noise").inner_text()
        assert f"\n{noise}\n" in printed
        assert noise.startswith("mostly noise: the mean of an hour is uncertain by ±")
        for chart in ("#curve", "#profile", "#density-chart", "#history-chart"):
            assert page.locator(chart).evaluate(PIXELS) > 300, chart
        spread = page.locator("#density tbody tr").evaluate_all(CELLS_SHOWN)
        assert [[float(value) for value, _ in cells] for cells in spread] == [
            [row[k] for k in ("low", "share", "share_low", "share_high")] for row in whole["ranges"]
        ]
        assert len(spread) == 8
        assert spread[-1][0][1].endswith(" and more")
        page.locator("#history-chart").focus()
        page.keyboard.press("End")
        page.keyboard.press("ArrowLeft")
        expect(page.locator("#history-said")).to_contain_text(
            "θ 2,000 W, surveys from 0 to 5,000; expected: hour-of-day ± 600.0 W"
        )
        legend = "".join(page.locator("#history-chart .u-legend").inner_text().split())
        assert "surveysto5,000from0expected" in legend  # not the least that is drawn, 100
        _moves_and_zooms(page, [row["from_s"] for row in curve["hours"]])
        page.goto("/")
        line = "#day-today"
        for name in DAY:
            key = name.replace("total", "energy_kwh")
            assert value(page, f"{line} [data-cell={name}]") == day["whole"][key]
        (stream,) = status["streams"]
        for name in ("created", "counted", "rejected", "expired", "pending", "duplicates"):
            shown = page.locator(f'[data-figure="power.{name}"]').inner_text()
            assert shown == f"{stream[name]:,}"
        assert page.locator('[data-figure="devices.enrolled"]').inner_text() == "26"
        for name in ("created", "counted", "rejected", "expired", "pending"):
            shown = page.locator(f'[data-figure="flow.{name}"]').inner_text()
            assert shown == f"{stream[name]:,}"
        most = max(hours["groups"], key=lambda row: row["mean"])
        expect(page.locator("#profile-said")).to_contain_text(
            f"Most at {most['at']}, {most['mean']:,.1f} ({most['low']:,.1f} to {most['high']:,.1f})"
        )
        expect(page.locator("#heard")).to_have_attribute(
            "aria-label", re.compile(", ".join(f"{row['device_slots']:,}" for row in days["days"]))
        )
        assert "Cut at 2,000 W" in page.locator("#cut").inner_text()
        assert curve["noise"] is not None
        expect(page.locator("#board")).to_have_class(re.compile("noisy"))  # a usual day is larger


FIGURES = """all => Object.fromEntries(all.map(one => [one.dataset.figure, one.textContent]))"""
CELLS_SHOWN = """rows => rows.map(row => [...row.cells].map(
  one => [one.dataset.value, one.textContent]))"""
CELLS = """rows => rows.map(row => Object.fromEntries(
  [...row.querySelectorAll("[data-cell]")].map(one => [one.dataset.cell, one.innerText.trim()])))"""


# how many lines of text a cell is high
LINES = """node => {
  const range = document.createRange();
  range.selectNodeContents(node);
  return range.getBoundingClientRect().height / parseFloat(getComputedStyle(node).lineHeight);
}"""


def _troubled(place: Path) -> Fleet:
    """Return a fleet in which another number of devices is in every state, for two days."""
    fleet = make_fleet(place)
    plan = add_plans(fleet, 2)
    add_reports(fleet, plan, {"north": 12}, 2)
    add_looks(fleet, (900.0, 700.0))
    slots = range(END_S // 900 - 4, END_S // 900 - 2)
    gap = Message(topic("demo", "report", "gap-1"), encode(1, 3, plan.epoch, slots, [1, 2]))
    refuses = [status(f"refuses-{at}", refusals=("ratio",)) for at in range(4)]
    marked = [frame(plan, f"marked-{at}", [0] * 90) for at in range(4)]
    rejected = frame(plan, "rejected-1", [3, 60_000, 7])
    send(fleet, plan, [*refuses, status("expires-1", expired=40), gap, rejected], marked, marked)
    at = ["-c", str(fleet.file)]
    fleet.ask(
        ["aggregator", "devices", "enrol", *at, "new-1"],
        ["aggregator", "devices", "quarantine", *at, "marked-0", "north-0001"],
        ["aggregator", "devices", "revoke", *at, "north-0002"],
    )
    return fleet


def _minute(at_s: int) -> str:
    return f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%d %H:%M}"


def test_what_the_server_writes_is_the_commands_too(browser: Browser, tmp_path: Path) -> None:
    fleet = _troubled(tmp_path)
    noon_s = END_S - END_S % 86_400
    days = ["--since", str(noon_s - 86_400), "--until", str(noon_s)]
    answers = fleet.ask(
        ["dossier", "-c", str(fleet.file), "--json"],
        *(fleet.aggregator(name) for name in ("theta", "status", "completeness")),
        fleet.aggregator("devices", "list"),
        fleet.aggregator("query", "--stream", "power", *days),
    )
    dossier, theta, told, accounts, listed, day = (json.loads(out) for _, out in answers)
    store, today = open_store(fleet.config, str(fleet.file)), datetime.fromtimestamp(END_S, UTC)
    for ago in (13, 1):  # and one of a fortnight ago, in whose place another comes
        for before, missing in ((14, 9), (0, ago)):
            store.beat(FleetDay(today.toordinal() - ago - before, 20, missing, 4))
    store.close()
    with serving(fleet) as (address, _), looking(browser, address) as page:
        page.goto("/devices")
        _has_what_is_up_in_sight(page)
        page.goto("/")
        marked = page.locator(".alarm", has_text="DevicesMarked").locator("pre").inner_text()
        assert marked == "edge-ldp aggregator status -c aggregator.toml"  # three: it lists them
        _shows_how_devices_are(page, told, listed)
        for name, most in (("missing", "13"), ("refusing", "4")):
            label = page.locator(f"#{name}-days").get_attribute("aria-label")
            assert label is not None
            among = ["13" if name == "missing" else "4", *["not known"] * 11]
            told_days = [*among, "1" if name == "missing" else "4", "not known"]
            assert label.endswith(f"14 days: {', '.join(told_days)}")
            expect(page.locator(f"#{name}-days + .note")).to_have_text(f"most {most}")
        for name in DAY:
            key = name.replace("total", "energy_kwh")
            found = value(page, f"#day-yesterday [data-cell={name}]")
            assert found == day["whole"][key]
        page.goto("/devices")
        _shows_each_device(page, told, accounts, listed)
        _gives_each_devices_own_commands(page, fleet)
        page.goto("/plans")
        assert page.locator("#plan-table tbody tr").evaluate_all(CELLS) == [
            {
                "issued": _minute(row["issued_s"]),
                "theta": f"{row['theta']:,}",
                "survey": f"{row['survey_low']:,} to {row['survey_high']:,}",
                "share": f"{row['survey_share']:.4f}",
                "expected": "\n".join(
                    f"{one['question']}: ±\u00a0{one['half_width']:,.1f}"
                    for one in row["forecast"] or ()
                ),
                "why": "; ".join(row["reasons"] or ()),
            }
            for row in theta["theta"][::-1]
        ]
        expected = page.locator("#plan-table tbody tr:first-child [data-cell=expected]")
        many = len(theta["theta"][-1]["forecast"])
        assert many > 1
        assert round(expected.evaluate(LINES)) == many
        _keeps_its_units_on_a_phone(page)
        page.goto("/privacy")
        (stream,) = dossier["streams"]
        epsilon, plan = stream["epsilon"], stream["plan"]
        assert page.locator("[data-figure]").evaluate_all(FIGURES) == {
            "power.report": str(epsilon["report"]),
            "power.window": str(epsilon["window"]),
            "power.day": f"{epsilon['day']:,.2f}",
            "power.year": f"{epsilon['year']:,.0f}",
            "power.every_slot": f"{epsilon['every_slot']:,.0f}",
            "power.digest": plan["digest"],
            "power.ratio": plan["ratio"],
            "power.epsilon": str(plan["epsilon"]),
            "power.guess": f"{100 * plan['guess']:.1f}",
            "power.shift": f"{plan['shift_per_percent']:,.1f}",
            "power.codes": f"{plan['codes']:,}",
        }


def _shows_how_devices_are(page: Page, told: Any, listed: Any) -> None:
    """Compare the tiles; each has a number that no other has."""
    devices, held = told["devices"], {row["device"] for row in told["devices"]["held"]}
    expected = {
        "enrolled": devices["enrolled"],
        "online": devices["online"],
        "silent": sum(_state(row) == "silent" for row in listed["devices"]),
        "refusing": len(devices["refusing"]),
        "marked": len({row["device"] for row in told["marked"]} - held),
        "held": len(held),
        "revoked": len(devices["revoked"]),
    }
    assert len(set(expected.values()) - {0}) == len(expected)
    found = page.locator("[data-figure^='devices.']").evaluate_all(FIGURES)
    assert found == {f"devices.{name}": f"{many:,}" for name, many in expected.items()}


def _state(row: dict[str, Any]) -> str:
    is_silent = row["state"] == "unknown" or END_S - row["seen_s"] > 86_400
    return "silent" if is_silent else str(row["state"])


def _shows_each_device(page: Page, told: Any, accounts: Any, listed: Any) -> None:
    names = page.locator("#devices tbody th").all_inner_texts()
    assert names == [row["device"] for row in listed["devices"]]
    shown = dict(zip(names, page.locator("#devices tbody tr").evaluate_all(CELLS), strict=True))
    for row in listed["devices"]:
        cells = shown[row["device"]]
        assert cells["group"] == row["group"]
        assert cells["state"] == _state(row)
        assert cells["seen"] == ("-" if row["state"] == "unknown" else _minute(row["seen_s"]))
        for key, word in (("revoked_s", "revoked"), ("held_s", "in quarantine since")):
            is_told = row[key] is not None and f"{word} {_minute(row[key])}" in cells["up"]
            assert is_told == (word in cells["up"])
    counted = ("created", "counted", "rejected", "expired", "pending")
    for one in accounts["devices"]:
        cells = shown[one["device"]]
        expected = {name: "–" if one[name] is None else f"{one[name]:,}" for name in counted}
        expected |= {"stream": one["stream"], "gaps": "–"}  # withheld: by whom reports are
        assert {name: cells[name] for name in expected} == expected
    assert all("stream" in shown[one["device"]] for one in accounts["devices"])
    for one in told["devices"]["refusing"]:
        assert f"refused: {'; '.join(one['reasons'])}." in shown[one["device"]]["up"]
    for one in told["marked"]:
        evidence = f"{one['seen']:,} of {one['reports']:,} reports in {one['name']}, honest at most"
        evidence += f" {one['bound']:.4f}, chance {one['chance']:.1e}"
        assert evidence in shown[one["device"]]["up"]
    marked = {name for name, cells in shown.items() if "marked in" in cells["up"]}
    assert marked == {one["device"] for one in told["marked"]}


def _keeps_its_units_on_a_phone(page: Page) -> None:
    """There each cell says what stands at the head of its column, the unit too."""
    heads = page.locator("#plan-table thead th").all_inner_texts()
    page.set_viewport_size({"width": 390, "height": 844})
    cells = page.locator("#plan-table tbody tr:first-child td")
    labels = cells.evaluate_all("all => all.map(one => getComputedStyle(one, '::before').content)")
    assert labels == [f'"{head}: "' for head in heads[1:]]
    page.set_viewport_size({"width": 1280, "height": 720})


def _has_what_is_up_in_sight(page: Page) -> None:
    """Nothing is to be moved sideways for it: on a usual screen, nor on a phone."""
    up = page.locator('[data-device="marked-0"] [data-cell="up"]')
    for width in (1280, 360):
        page.set_viewport_size({"width": width, "height": 740})
        box = up.bounding_box()
        assert box is not None
        assert 0 <= box["x"] < box["x"] + box["width"] <= width
        assert page.locator(".scroll:has(#devices)").evaluate(WIDER) == 0
    page.set_viewport_size({"width": 1280, "height": 720})
    shoot(page, "devices")


def _gives_each_devices_own_commands(page: Page, fleet: Fleet) -> None:
    """What stands in a row does to its device what it says, as it is typed; then it is undone."""
    assert "NAME" not in page.locator("main").inner_text()
    row = page.locator('[data-device="north-0001"]')
    row.locator("summary").click()
    for width in (1280, 360):  # and no column is pushed out of sight
        page.set_viewport_size({"width": width, "height": 740})
        assert page.locator(".scroll:has(#devices)").evaluate(WIDER) == 0
    page.set_viewport_size({"width": 1280, "height": 720})
    held, revoke, move = row.locator("pre").all_inner_texts()
    at = "-c aggregator.toml"
    assert held == f"edge-ldp aggregator devices release {at} north-0001"
    assert move == f"edge-ldp aggregator devices group {at} --to GROUP north-0001"
    row = page.locator('[data-device="north-0002"]')
    row.locator("summary").click()
    hold, reinstate, _ = row.locator("pre").all_inner_texts()
    typed = [
        one.replace("aggregator.toml", str(fleet.file)).split()[1:]
        for one in (held, revoke, hold, reinstate)
    ]
    assert [code for code, _ in fleet.ask(*typed)] == [0] * 4
    page.reload()  # while the focus is in them, they stay
    expect(row.locator("pre").first).to_have_text(
        f"edge-ldp aggregator devices release {at} north-0002", timeout=PATIENCE_MS
    )


def _moves_and_zooms(page: Page, hours: list[int]) -> None:
    """Move about the load curve by keys and buttons; what is shown is what the axis says."""
    said, chart = page.locator("#curve-said"), page.locator("#curve")

    def reads(hour: int) -> None:
        at = datetime.fromtimestamp(hour, UTC)
        expect(said).to_contain_text(f"{at:%Y-%m-%d %H:%M} UTC", timeout=PATIENCE_MS)

    def shows(first_s: float, last_s: float) -> None:
        page.wait_for_function(
            "([a, b]) => { const [x, y] = document.getElementById('curve').dataset.span.split(' ');"
            " return Math.abs(x - a) < 1 && Math.abs(y - b) < 1; }",
            arg=[first_s, last_s],
            timeout=PATIENCE_MS,
        )

    day, first, last = 86_400, hours[0], hours[-1] + 3600  # the last one is shown to its end
    shows(first, last)
    page.get_by_role("button", name="Last day").click()
    shows(last - day, last)
    chart.focus()
    page.keyboard.press("End")
    page.keyboard.press("PageUp")
    shows(last - 1.5 * day, last - 0.5 * day)
    reads(last - day)
    for _ in range(13):  # beyond what is shown: it comes along
        page.keyboard.press("ArrowLeft")
    reads(last - day - 13 * 3600)
    shows(last - day - 13 * 3600 - day / 2, last - day - 13 * 3600 + day / 2)
    page.keyboard.press("+")
    shows(last - day - 13 * 3600 - day / 4, last - day - 13 * 3600 + day / 4)
    page.keyboard.press("Home")
    reads(first)
    shows(first, first + day / 2)
    page.keyboard.press("PageUp")  # there is nothing before
    shows(first, first + day / 2)
    page.get_by_role("button", name="Last week").click()  # longer than all that there is
    shows(first, last)
    page.get_by_role("button", name="Last day").click()
    page.get_by_role("button", name="All").click()
    shows(first, last)


WIDER = "node => node.scrollWidth - node.clientWidth"


def test_curves_are_compared_and_hours_without_a_figure_say_why(
    browser: Browser, tmp_path: Path
) -> None:
    fleet = make_fleet(tmp_path)
    add_reports(fleet, add_plans(fleet, 1), {"north": 12, "south": 12}, 1)
    first, *_, last = fleet.json("load-curve", "--group", "north")["hours"]

    def answer(route: Route) -> None:
        reply = route.fetch()
        found = reply.json()
        del found["hours"][3:6]
        found["hours"][4] |= {"mean": None, "low": None, "high": None, "n": None, "withheld": True}
        route.fulfill(response=reply, json=found)

    with serving(fleet) as (address, _), looking(browser, address) as page:
        page.route(re.compile(r"load-curve\?((?!since|group).)*$"), answer)
        page.goto("/stream?beside=week&beside=%3Dnorth")
        expect(page.locator("#curve-gaps")).to_have_text(
            "Hatched: no reports; withheld: too few homes ([query] min_devices)."
            " a week before: no reports.",
            timeout=PATIENCE_MS,
        )
        assert [one.is_checked() for one in page.locator("[name=beside]").all()] == [
            value in ("week", "=north")
            for value in page.locator("[name=beside]").evaluate_all("all => all.map(o => o.value)")
        ]
        said = page.locator("#curve-said")
        expect(said).to_contain_text(f"north {last['mean']:,.1f}")
        page.locator("#curve").focus()
        page.keyboard.press("Home")
        expect(said).to_contain_text(f"north {first['mean']:,.1f}")
        for words in ("W, 95 %", "W, 95 %", "15:00 UTC to 2023-11-14 18:00 UTC: no reports"):
            page.keyboard.press("ArrowRight")
            expect(said).to_contain_text(words)
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        expect(said).to_contain_text("withheld: too few homes")
        assert page.locator("#map .few").count() == 48 - 24 + 4  # of two dates, and these
        with page.expect_download() as kept:
            page.get_by_role("button", name="Picture").click()
        assert kept.value.suggested_filename == "power.png"
        assert Path(kept.value.path()).read_bytes()[:4] == b"\x89PNG"


def test_groups_have_the_commands_sizes_and_figures_or_are_withheld(
    browser: Browser, tmp_path: Path
) -> None:
    fleet = make_fleet(tmp_path)
    add_reports(fleet, add_plans(fleet, 3), {"north": 14, "south": 12, "few": 3}, 3)
    noon_s = END_S - END_S % 86_400
    week = ("--since", str(noon_s - 7 * 86_400), "--until", str(noon_s), "--no-density")
    sizes = {one["group"]: one["devices"] for one in fleet.json("devices", "groups")["groups"]}
    with serving(fleet) as (address, _), looking(browser, address) as page:
        page.goto("/groups")
        rows = page.locator("#groups tbody tr")
        assert rows.evaluate_all("all => all.map(one => one.dataset.group)") == sorted(
            name for name, devices in sizes.items() if name or devices
        )
        for name in ("north", "south", "few"):
            row = rows.locator(f"xpath=self::*[@data-group='{name}']")
            whole = fleet.json("query", "--group", name, *week)["whole"]
            assert row.locator("[data-figure=size]").inner_text() == f"{sizes[name]:,}"
            expect(row.locator("[data-cell=total]")).not_to_have_text("…", timeout=PATIENCE_MS)
            assert whole["withheld"] == (name == "few")
            if whole["withheld"]:
                assert row.locator("[data-cell=total]").inner_text() == "withheld"
                continue
            for cell in ("total", "total_low", "total_high", "mean", "devices", "missing"):
                told = float(str(row.locator(f"[data-cell={cell}]").get_attribute("data-value")))
                assert told == whole[cell.replace("total", "energy_kwh")]
        assert serious(page) == []
        page.goto("/groups?q=nor")
        expect(rows).to_have_count(1)


def test_curated_streams_stand_beside_the_total_and_are_in_no_figure_of_it(
    browser: Browser, fleet: Fleet, console: str, tmp_path: Path
) -> None:
    own = make_fleet(tmp_path)
    plan = add_plans(own, 3)
    add_reports(own, plan, {"north": 20, "south": 6}, 3)
    add_curated(own, plan, ("school", "town-hall"), 40)
    since = ["--since", str(END_S - 10 * SLOT_S)]
    answers = own.ask(
        *(own.aggregator("released", "--stream=power", *more) for more in ([], since)),
        own.aggregator("query", "--stream", "power", "--no-density"),
    )
    *released, beside = (json.loads(out) for _, out in answers)
    whole, late = (one["released"] for one in released)
    keys = ("energy_kwh", "energy_kwh_low", "energy_kwh_high", "mean", "readings", "missing")
    with serving(own) as (address, _), looking(browser, address) as page:
        for path, found in (("/stream", whole), (f"/stream?since={END_S - 10 * SLOT_S}", late)):
            page.goto(path)
            rows = page.locator("#curated tbody tr")
            expect(rows).to_have_count(2, timeout=PATIENCE_MS)
            assert rows.locator("th").all_inner_texts() == ["school", "town-hall"]
            for row, stream in zip(rows.all(), found, strict=True):
                told = [str(cell.get_attribute("data-value")) for cell in row.locator("td").all()]
                (expected,) = stream["sums"]
                figures = [*(expected[key] for key in keys), stream["epsilon_per_reading"]]
                assert [float(one) for one in told] == figures
        page.goto("/stream")
        boxes = [page.locator(table).bounding_box() for table in ("#whole", "#curated")]
        assert boxes[0] is not None
        assert boxes[1] is not None
        assert boxes[0]["x"] + boxes[0]["width"] < boxes[1]["x"]
        assert page.locator(".scroll:has(#whole)").evaluate(WIDER) == 0
        assert abs(boxes[0]["y"] - boxes[1]["y"]) < 200
        assert "never added" in page.locator("section:has(#curated)").inner_text()
        command = page.locator("pre", has_text="aggregator released").inner_text()
        assert (
            command == "edge-ldp aggregator released -c aggregator.toml --stream power --zone UTC"
        )
        assert serious(page) == []
        mean = value(page, "#whole [data-cell=mean]")
    with looking(browser, console) as page:  # the same reports without them
        page.goto("/stream")
        assert page.locator("#curated").count() == 0
        expect(page.locator("#whole-said")).to_contain_text("26 devices", timeout=PATIENCE_MS)
        expect(page.locator("#whole-said")).to_contain_text("each by its time")
    alone = fleet.json("query", "--stream", "power", "--no-density")
    assert alone["curated_beside"] == []
    assert (beside["curated_beside"], beside["whole"]["mean"]) == (["school", "town-hall"], mean)


def test_times_are_of_the_fleets_zone_and_show_those_of_utc_when_pointed_at(
    browser: Browser, tmp_path: Path
) -> None:
    fleet = make_fleet(tmp_path)
    zoned = fleet.file.read_text().replace("[query]", '[query]\nzone = "Asia/Tokyo"')
    fleet.file.write_text(zoned)
    add_reports(fleet, add_plans(fleet, 1), {"north": 12}, 1)
    add_looks(fleet, (900.0, 700.0))
    at = ["-c", str(fleet.file)]
    fleet.ask(["aggregator", "devices", "quarantine", *at, "north-0001"])
    said = fleet.ask(*(["aggregator", name, *at] for name in ("theta", "audit")))
    (theta, audit), told = (out for _, out in said), "2023-11-15 21:00"
    assert f"\n{told}" in audit
    with serving(fleet) as (address, _), looking(browser, address) as page:
        for path, where in (
            ("/", "#alive time"),
            ("/devices", '[data-device="north-0001"] [data-cell="seen"] time'),
            ("/devices", '[data-device="north-0001"] [data-cell="up"] time'),
            ("/audit", "#changes tbody tr:first-child time"),
        ):
            page.goto(path)
            shown = page.locator(where).first
            assert shown.inner_text() == told, path
            assert shown.get_attribute("title") == "2023-11-15 12:00 UTC"
            assert "Asia/Tokyo" in page.locator("main").inner_text()
        for path in ("/plans", "/stream"):
            page.goto(path)
            issued = page.locator("#plan-table, #theta").locator("time").last
            assert f" {issued.text_content()} " in theta
        page.locator("#history-chart").focus()
        page.keyboard.press("Home")
        expect(page.locator("#history-said")).to_contain_text(
            f"{theta.splitlines()[1].split()[2]} 20:45 Asia/Tokyo: θ"
        )
        page.goto("/?zone=UTC")
        asked = str(page.locator("#day-today").get_attribute("data-query"))
        assert f"since={END_S - 43_200}&until={END_S + 43_200}&" in asked
        page.goto("/devices?zone=UTC")
        assert page.locator("#devices time").last.inner_text() == "2023-11-15 12:00"


def test_the_forecast_is_the_commands(browser: Browser, fleet: Fleet, console: str) -> None:
    words = ["forecast", "--json", "--homes=300", "--epsilon=2", "--window=8/97", "--low=0"]
    ((_, printed),) = fleet.ask([*words, "--ceiling=5000", "--days=28", "--slots-a-day=96"])
    told = json.loads(printed)
    with looking(browser, console) as page:
        page.goto("/plans")
        assert page.locator("[name=homes]").input_value() == "26"  # those that there are
        page.fill("[name=homes]", "300")
        page.fill("[name=epsilon]", "2")
        page.click("#forecast button")
        rows = page.locator("#forecast-table tbody tr")
        expect(rows).to_have_count(len(told["forecasts"][0]["rows"]), timeout=3 * PATIENCE_MS)
        for table, column, expected in (
            ("forecast", 2, [row["half_width"] for row in told["forecasts"][0]["rows"]]),
            ("forecast", 3, [row["percent"] for row in told["forecasts"][0]["rows"]]),
            ("splits", 2, [_asked(split)["percent"] for split in told["splits"]]),
            ("splits", 4, [split["guess_right"] for split in told["splits"]]),
        ):
            cells = page.locator(f"#{table}-table tbody tr :nth-child({column})[data-value]").all()
            assert [float(str(cell.get_attribute("data-value"))) for cell in cells] == expected
        assert page.locator("#forecast-chart").evaluate(PIXELS) > 300
        assert page.locator("#splits-table .asked th").inner_text() == "8 × 2"
        assert page.locator("#habits").is_hidden()  # not measured at such an ε
        _tells_which_mode(page, told["modes"][0]["choices"])
        command = page.locator("#forecast-command").inner_text()
        assert command.startswith("edge-ldp forecast --homes 300 --epsilon 2 --window 8/97")
        assert serious(page) == []
        shoot(page, "plans")


def _tells_which_mode(page: Page, choices: list[dict[str, Any]]) -> None:
    shown = page.locator("#modes-table tbody tr").evaluate_all(CELLS_SHOWN)
    assert [(cells[0][0], cells[5][0] or None, cells[6][0]) for cells in shown] == [
        (one["question"], one["better"], one["reason"]) for one in choices
    ]
    for one, cells in zip(choices, shown, strict=True):
        reports = [row["percent"] for row in one["rows"] if row["layout"] is None]
        sums = [row["percent"] for row in one["rows"] if row["layout"] is not None]
        if one["layout"] is not None:
            sums = [row["percent"] for row in one["rows"] if row["layout"] == one["layout"]]
        for (told, _), expected in zip(cells[1:3], (reports, sums), strict=True):
            assert [float(told)] == expected[:1] if expected else told == ""


def _asked(split: dict[str, Any]) -> dict[str, Any]:
    """Return the row of the horizon that θ was chosen for."""
    found: dict[str, Any] = next(row for row in split["rows"] if row["horizon"] == split["horizon"])
    return found


def test_devices_are_filtered_sorted_and_paged(browser: Browser, console: str) -> None:
    with looking(browser, console) as page:
        page.goto("/devices")
        assert page.locator("#devices tbody tr").count() == 26
        page.fill("[name=q]", "south")
        page.get_by_role("button", name="Show").click()
        expect(page.locator("#devices tbody tr")).to_have_count(6)
        assert page.locator("[name=group]").input_value() == "*"
        page.get_by_role("link", name="device", exact=True).click()
        names = page.locator("#devices tbody th").all_inner_texts()
        assert names == [f"south-{at:04d}" for at in range(5, -1, -1)]
        counted = page.locator('[data-device="south-0001"] [data-cell="counted"]')
        assert counted.inner_text() == "–"  # who reported when is not told
        page.goto("/devices?group=")
        assert "No device is so" in page.locator("#found").inner_text()  # all are in a group
        page.goto("/devices?group=north")
        assert page.locator("[name=group]").input_value() == "north"
        assert page.locator('[data-figure="found"]').inner_text() == "20"
        page.locator('[data-device="north-0001"] summary').click()
        page.get_by_role("link", name="its last 30 days").first.click()
        assert page.get_by_role("heading", level=1).inner_text() == "north-0001"
        days = page.locator(".thirty li").all_inner_texts()
        assert [*map(len, days)] == [1] * 30
        assert page.request.get("/device?name=nobody").status == 400
        page.goto("/devices?page=99999999")
        assert "page 1 of 1" in page.locator("#found").inner_text()


def test_the_certificate_is_shown_and_kept_and_proves_itself_again(
    browser: Browser, fleet: Fleet, console: str, tmp_path: Path
) -> None:
    with looking(browser, console) as page:
        page.goto("/privacy")
        with page.expect_download() as kept:
            page.get_by_role("link", name="the certificate").click()
        assert kept.value.suggested_filename == "certificate-power.json"
        file = tmp_path / "certificate-power.json"
        kept.value.save_as(file)
        digest = page.locator("section p code").first.inner_text()
        commands = page.locator("pre.command").all_inner_texts()
    assert "edge-ldp certify --check certificate-power.json" in commands
    ((code, text),) = fleet.ask(["certify", "--check", str(file)])
    assert code == 0
    assert digest in text


def test_changes_are_shown_newest_first(browser: Browser, tmp_path: Path) -> None:
    evil = '<img src=x onerror="window.pwned=1">'
    fleet = make_fleet(tmp_path)
    with serving(fleet) as (address, _), looking(browser, address) as page:
        page.goto("/audit")
        assert "Nothing was changed" in page.locator("#changes").inner_text()
        at = ["-c", str(fleet.file)]
        fleet.ask(["aggregator", "devices", "enrol", *at, "home-1"])
        page.reload()
        one = "1 change by a command, newest first."
        expect(page.locator("#changes")).to_contain_text(one, timeout=PATIENCE_MS)
        answers = fleet.ask(
            ["aggregator", "devices", "enrol", *at, "home-2", "--group", evil],
            ["aggregator", "plan", "hold", *at],
            fleet.aggregator("audit"),
        )
        page.reload()
        kept = json.loads(answers[-1][1])["audit"]
        rows = page.locator("#changes tbody tr")
        expect(rows).to_have_count(len(kept), timeout=PATIENCE_MS)
        shown = [row.locator("td").all_inner_texts() for row in rows.all()]
        assert shown == [[row["who"], row["command"]] for row in kept[::-1]]
        assert "home-1" in shown[-1][1]
        assert page.evaluate("window.pwned") is None
        page.goto("/audit?q=hold")
        expect(rows).to_have_count(1)


def test_by_keyboard_on_a_phone_in_the_dark(browser: Browser, console: str) -> None:
    small: Any = {"viewport": {"width": 360, "height": 740}, "color_scheme": "dark"}
    with looking(browser, console, **small) as page:
        for path in PAGES:
            page.goto(path)
            width = page.evaluate("document.documentElement.scrollWidth")
            assert width <= 360, path
        page.goto("/stream")
        said = page.locator("#curve-said")
        expect(said).to_contain_text("stream reports", timeout=PATIENCE_MS)
        last = said.inner_text()
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the figures"
        page.locator("#curve").focus()
        page.keyboard.press("End")
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("ArrowLeft")
        expect(said).not_to_have_text(last)
        assert page.locator("#curve").evaluate(PIXELS) > 100
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.emulate_media(color_scheme="light")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") != dark


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_axe_finds_nothing_serious(browser: Browser, console: str, scheme: str) -> None:
    with looking(browser, console, color_scheme=scheme) as page:
        for path in PAGES:
            page.goto(path)
            expect(page.locator("#link")).to_contain_text("live", timeout=PATIENCE_MS)
            assert serious(page) == [], path


def test_few_devices_no_data_and_wrong_words_are_said(browser: Browser, console: str) -> None:
    with looking(browser, console) as page:
        page.goto("/stream?group=south")
        expect(page.locator("#curve-said")).to_contain_text("Withheld", timeout=PATIENCE_MS)
        expect(page.locator("#whole-said")).to_contain_text("min_devices", timeout=PATIENCE_MS)
        assert page.locator("#curve canvas").count() == 0
        page.goto("/stream?since=2030-01-01T00:00")
        expect(page.locator("#curve-said")).to_contain_text(
            "No stream reports", timeout=PATIENCE_MS
        )
    with looking(browser, console, loses=True) as page:  # the browser itself notes the status 400
        page.goto("/stream?stream=nothing")
        assert "expected one of power" in page.locator("#why").inner_text()


def test_an_empty_store_then_one_report_then_no_store_then_another(
    browser: Browser, tmp_path: Path
) -> None:
    fleet = make_fleet(tmp_path, least=1, units="kW")
    with serving(fleet) as (address, _), looking(browser, address, loses=True) as page:
        page.goto("/")
        assert "NoPlan" in page.locator("#rings").inner_text()
        mend, *firsts = page.locator("#alive pre").all_inner_texts()
        assert mend == "systemctl status edge-ldp-aggregator"
        assert firsts == [
            "edge-ldp aggregator devices invite -c aggregator.toml home-1",
            "edge-ldp simulate homes --of aggregator.toml",
        ]
        verdict = page.locator('[data-figure="verdict"]').inner_text()
        assert verdict.startswith("No service runs on this store: nothing is counted. ServiceDown")
        assert "And 1 more." in verdict
        page.goto("/devices")
        assert page.locator("#found pre").all_inner_texts() == firsts
        page.goto("/stream")
        assert "No plan was issued yet" in page.locator("#history").inner_text()
        page.goto("/")
        expect(page.locator("#link")).to_contain_text("live", timeout=PATIENCE_MS)
        expect(page.locator("#profile-said")).to_contain_text("No ", timeout=PATIENCE_MS)
        expect(page.locator("#profile")).to_have_css("min-height", "0px")  # and no blank below it
        add_reports(fleet, add_plans(fleet, 1), {"alone": 1}, 1, slots=2)  # a survey and a report
        # live: nobody loads the page again
        expect(page.locator('[data-figure="power.counted"]')).to_have_text("2", timeout=PATIENCE_MS)
        page.goto("/stream")
        expect(page.locator("#curve-said")).to_contain_text("1 stream reports", timeout=PATIENCE_MS)
        whole = fleet.json("query")["whole"]
        assert value(page, "#whole [data-cell=mean]") == whole["mean"]
        assert value(page, "#whole [data-cell=total]") == whole["energy_kwh"]
        shown = page.locator("#whole [data-cell=total]").inner_text()
        assert shown == f"{whole['energy_kwh']:,.1f} kWh"
        away = tmp_path / "away.db"
        (tmp_path / "a.db").rename(away)
        page.goto("/")  # one that takes long is first shown as it was
        expect(page.locator("#why")).to_contain_text("does not exist", timeout=PATIENCE_MS)
        away.rename(tmp_path / "a.db")  # as a restore puts a file in place
        expect(page.locator('[data-figure="power.counted"]')).to_have_text("2", timeout=PATIENCE_MS)


def test_a_store_that_is_restored_beside_it_is_the_backup_on_the_page(
    browser: Browser, tmp_path: Path
) -> None:
    fleet, kept = make_fleet(tmp_path, least=1), str(tmp_path / "kept.db")
    plan, at = add_plans(fleet, 1), ["-c", str(fleet.file)]
    send(fleet, plan, [frame(plan, "home-1", [1, 2, 3])])
    assert fleet.ask(["aggregator", "backup", *at, kept])[0][0] == 0
    send(fleet, plan, [frame(plan, "home-2", [4, 5])])
    with serving(fleet) as (address, _), looking(browser, address, loses=True) as page:
        page.goto("/")
        expect(page.locator("#link")).to_contain_text("live", timeout=PATIENCE_MS)
        counted = page.locator('[data-figure="power.counted"]')
        expect(counted).to_have_text("5", timeout=PATIENCE_MS)
        command = [sys.executable, "-m", "edge_ldp.cli", "aggregator", "restore", *at, kept]
        with subprocess.Popen(command) as restoring:
            while restoring.poll() is None:  # all the while every answer is a page of ours
                told = page.request.get("/devices")
                assert told.status in (200, 503)
                assert "<h1>" in told.text()
        assert restoring.returncode == 0
        expect(counted).to_have_text("3", timeout=PATIENCE_MS)  # nobody loads the page again
        expect(page.locator('[data-figure="devices.enrolled"]')).to_have_text("1")
        newest = fleet.json("plan", "show")["plan"]["epoch"]
        assert newest > plan.epoch
        page.goto("/plans")
        expect(page.locator("#plan-table tbody th").first).to_have_text(f"{newest} (in force)")


def test_the_first_screen_says_whether_all_is_well_and_what_yesterday_was(
    browser: Browser, fleet: Fleet, console: str
) -> None:
    with looking(browser, console, viewport={"width": 1280, "height": 800}) as page:
        page.goto("/")
        row = page.locator("#day-yesterday")
        expect(row.locator('[data-cell="total"]')).not_to_have_text("…", timeout=PATIENCE_MS)
        expect(page.locator("#profile canvas")).to_have_count(1, timeout=PATIENCE_MS)
        verdict = page.locator('[data-figure="verdict"]')
        assert "ServiceDown, critical" in verdict.inner_text()
        for what in (verdict, row, *page.locator("#board > section").all()):
            box = what.bounding_box()
            assert box is not None
            assert box["y"] + box["height"] <= 800
        asked = dict(parse_qsl(str(row.get_attribute("data-query")).partition("?")[2]))
        whole = fleet.json("query", *(f"--{name}={asked[name]}" for name in ("since", "until")))
        for cell, key in (("total", "energy_kwh"), ("total_low", "energy_kwh_low")):
            assert value(page, f'#day-yesterday [data-cell="{cell}"]') == (whole["whole"][key])
        cost = re.match(r"Yesterday: ([0-9,]+(?:\.[0-9]+)?) .*EUR\n", row.inner_text())
        assert cost is not None
        paid = 0.3 * whole["whole"]["energy_kwh"]
        assert abs(float(cost[1].replace(",", "")) - paid) < 0.05 * paid


def test_days_are_a_calendar_of_weeks_from_monday(browser: Browser, console: str) -> None:
    def answer(route: Route) -> None:
        found = route.fetch().json()
        for at, row in enumerate(found["days"]):
            row.update(mean=100.0 * at, low=100.0 * at - 1, high=100.0 * at + 1)
        route.fulfill(json=found)

    with looking(browser, console) as page:
        page.route(re.compile(r"load-curve\?.*by=day"), answer)
        page.goto("/stream?by=day")
        weeks = page.locator("#map tbody tr")
        expect(weeks).to_have_count(2, timeout=PATIENCE_MS)
        assert weeks.locator("th").all_inner_texts() == ["11-06", "11-13"]
        days = weeks.evaluate_all("all => all.map(r => [...r.cells].slice(1).map(c => c.title))")
        assert days == [
            ["no figure"] * 6 + ["0.0"],
            ["100.0", "200.0", "300.0", *["no figure"] * 4],
        ]


def test_events_that_end_are_said_and_found_again(browser: Browser, console: str) -> None:
    with looking(browser, console, loses=True) as page:
        ends = {"content_type": "text/event-stream", "body": "retry: 100\n\n"}
        page.route("**/events", lambda route: route.fulfill(**ends))
        page.goto("/")
        link, alive = page.locator("#link"), page.locator("#alive")
        expect(link).to_contain_text("The connection is lost", timeout=PATIENCE_MS)
        assert "lost" in str(link.get_attribute("class"))
        assert "Last commit" in alive.inner_text()  # what was there stays
        page.unroute("**/events")
        expect(link).to_contain_text("live", timeout=PATIENCE_MS)
        expect(link).not_to_have_class(re.compile("lost"))


def test_hostile_names_are_shown_and_do_nothing_REP_14(browser: Browser, tmp_path: Path) -> None:
    evil = '"><img src=x onerror="window.pwned=1"><script>window.pwned=1</script>{{7*7}}'
    fleet = make_fleet(tmp_path, least=1, units="<b>&")
    add_reports(fleet, add_plans(fleet, 1), {"north": 3}, 1)
    with sqlite3.connect(tmp_path / "a.db") as db:
        db.execute("UPDATE devices SET software = ?, state = ?", (evil, evil))
        db.execute("UPDATE groups SET name = ? WHERE id > 0", (evil,))
        db.execute("INSERT INTO refused VALUES (?, 1, 1, 1)", (evil,))
    db.close()
    with serving(fleet) as (address, _), looking(browser, address) as page:
        for path in (
            "/",
            "/stream",
            "/devices",
            "/device?name=north-0001",
            "/privacy",
            "/devices?q=%22%3E%3Cscript%3Ewindow.pwned=1%3C/script%3E",
        ):
            page.goto(path)
            expect(page.locator("#link")).to_contain_text("live", timeout=PATIENCE_MS)
            assert page.evaluate("window.pwned") is None
            assert page.locator("main img, main script, main b").count() == 0
            if path == "/devices":
                assert evil in page.locator("#devices").inner_text()
            if path == "/":
                assert evil in page.locator("#streams").inner_text()
