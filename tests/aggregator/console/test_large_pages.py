"""Devices of a large fleet in Chromium: found, put in order and paged through, in bounded time."""

import sys
import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, Page, expect

from aggregator.console.pages import PAGE
from tests.aggregator.console.conftest import DEVICES, PATIENCE_MS
from tests.aggregator.console.small_fleet import Fleet, serving
from tests.aggregator.console.test_pages import looking

pytestmark = pytest.mark.slow
BOUND_S = 10.0  # of a page shown, on a machine that does other things too; 0.6 to 2.4 s were seen


def test_devices_of_100000_are_filtered_sorted_and_paged(browser: Browser, large: Fleet) -> None:
    took: dict[str, float] = {}

    def timed(name: str, act: Callable[[], object], first: str, found: int) -> None:
        """Act, and wait until the page shows these devices."""
        begun = time.monotonic()
        act()
        rows = page.locator("#devices tbody tr")
        expect(rows.first).to_have_attribute("data-device", first, timeout=PATIENCE_MS)
        expect(page.locator("[data-figure=found]")).to_have_text(f"{found:,}")
        took[name] = time.monotonic() - begun
        assert rows.count() == min(PAGE, found)

    def search(page: Page, text: str) -> None:
        page.fill("[name=q]", text)
        page.get_by_role("button", name="Show").click()

    with serving(large) as (address, _), looking(browser, address) as page:
        timed("first", lambda: page.goto("/devices"), "home-000000", DEVICES)
        device = page.get_by_role("link", name="device", exact=True)
        timed("sort", device.click, f"home-{DEVICES - 1:06d}", DEVICES)
        timed("page", page.get_by_role("link", name="Next").click, "home-099949", DEVICES)
        timed("filter", lambda: search(page, "home-0420"), "home-042000", 100)
        timed("next", page.get_by_role("link", name="Next").click, "home-042050", 100)
        # what a row shows is what the command says of that device
        (told,) = large.json("completeness", "--device", "home-042050")["devices"]
        row = page.locator('[data-device="home-042050"]')
        for name in ("created", "counted", "rejected", "expired", "pending"):
            assert row.locator(f"[data-cell={name}]").inner_text() == f"{told[name]:,}"
        last = f"/devices?sort=device&page={DEVICES // PAGE}"
        timed("last", lambda: page.goto(last), f"home-{DEVICES - PAGE:06d}", DEVICES)
        timed("counted", lambda: page.goto("/devices?sort=counted&q=99999"), "home-099999", 1)
        states = page.goto("/devices?state=silent&sort=seen")
        assert states is not None
        assert states.ok
        assert page.locator("[data-figure=found]").inner_text() == f"{DEVICES:,}"  # no status came
    sys.stdout.write(f"{took}\n")  # pytest -s shows it
    assert max(took.values()) < BOUND_S, took
