"""The pictures of docs and README: the demo's homes, counted by a service that is alive."""

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, expect

from aggregator.config import load_config
from aggregator.counting.members import named_wishes
from aggregator.plans import planner
from aggregator.running.process import keep_fleet_day
from aggregator.store.administration.registry import apply
from aggregator.store.contract import PlanRow
from aggregator.store.opening import open_session, open_store
from aggregator.store.rows import FLEET_DAYS, BeatRow, BeatTimes
from edge_ldp.service.clock import Clock
from edge_ldp.vectorized import perturb_many
from firmware_stubs.data import load_swiss
from tests.aggregator.console.conftest import PATIENCE_MS
from tests.aggregator.console.small_fleet import (
    DAY_S,
    END_S,
    SLOT_S,
    Fleet,
    _frames,
    make_fleet,
    send,
    serving,
)
from tests.aggregator.console.test_pages import looking

pytestmark = pytest.mark.skipif("SCREENSHOTS" not in os.environ, reason="make screenshots")
DAYS = 30
THETA_W = 16_800
FEEDERS = (("feeder-a", 0, 210), ("feeder-b", 210, 394), ("new-houses", 394, 400))
SHOTS = {  # name: address, width, height, whether all of it, dark
    "overview": ("/", 1280, 800, False, False),
    "dark": ("/", 1280, 800, False, True),
    "phone": ("/", 390, 844, False, True),
    "stream": ("/stream?since={week}&beside=week", 1280, 1150, False, False),
    "groups": ("/groups", 1280, 420, False, False),
}


def _demo_homes(place: Path) -> Fleet:
    """Return a fleet of the demo's homes, the last hour of which was just counted."""
    fleet = make_fleet(place)
    fleet.file.write_text(fleet.file.read_text().replace("ceiling = 5000", "ceiling = 43470"))
    (place / "a.db").unlink()
    fleet = Fleet(fleet.file, load_config(fleet.file))
    (stream,) = fleet.config.streams
    issued_s = END_S - DAYS * DAY_S - SLOT_S
    first = planner.first_plan("demo", stream, epoch=1, now_s=issued_s)
    drafted = planner.following(first, stream, stream.sums(THETA_W), share=(1, 4), now_s=issued_s)
    assert drafted is not None
    plan = planner.proved(drafted)
    with_plans = open_store(fleet.config, str(fleet.file))
    for row in (first, plan):
        with_plans.add_plan(PlanRow(1, row.epoch, row.issued_s, row.to_json()))
    with_plans.close()
    count = DAYS * DAY_S // SLOT_S
    homes = np.clip(load_swiss()[:, 48 : 48 + count].astype(np.int64), 0, stream.ceiling)
    is_survey = np.arange(count) % 4 == 0
    rng = np.random.default_rng(7)
    session = open_session(fleet.config, str(fleet.file))
    for feeder, begin, end in FEEDERS:
        names = [f"home-{at:03d}" for at in range(begin, end)]
        wishes = [replace(one, enrols=True) for one in named_wishes(names, group=feeder)]
        apply(session, wishes, END_S)
        for name, values in zip(names, homes[begin:end], strict=True):
            codes = perturb_many(plan.stream_mechanism, values, entropy=rng.bytes)
            surveys = perturb_many(plan.survey_mechanism, values, entropy=rng.bytes)
            both = np.where(is_survey, surveys + plan.stream_mechanism.code_count, codes)
            send(fleet, plan, _frames(name, plan.epoch, END_S // SLOT_S - count, both.tolist()))
    session.close()
    return fleet


def test_pictures_for_the_docs(browser: Browser, tmp_path: Path) -> None:
    fleet = _demo_homes(tmp_path)
    alive = open_store(fleet.config, str(fleet.file))  # as a service holds it
    for ago in reversed(range(FLEET_DAYS)):  # as who leads does
        keep_fleet_day(fleet.config, Clock(END_S - ago * DAY_S, time.time(), 1e-9), alive)
    alive.beat(BeatRow("", END_S, "ok", BeatTimes(report_s=END_S, receipt_s=END_S)))
    folder = Path(os.environ["SCREENSHOTS"])
    with serving(fleet) as (address, _):
        for name, (path, width, height, full, dark) in SHOTS.items():
            how: dict[str, Any] = {"viewport": {"width": width, "height": height}}
            with looking(browser, address, **how, color_scheme="dark" if dark else "light") as page:
                page.goto(path.format(week=END_S - 7 * DAY_S))
                expect(page.locator("#link")).to_have_text("live", timeout=PATIENCE_MS)
                for chart in page.locator("#curve, #profile").all():
                    expect(chart.locator("canvas")).to_have_count(1, timeout=PATIENCE_MS)
                expect(page.get_by_text("…", exact=True)).to_have_count(0, timeout=PATIENCE_MS)
                page.screenshot(path=folder / f"console-{name}.png", full_page=full)
    alive.close()
