"""A large fleet: pages stay small, sums stay exact, and no process does what nobody waits for."""

import asyncio
import signal
from collections.abc import Iterator

import httpx
import pytest

from aggregator.console.pages import PAGE
from tests.aggregator.console.conftest import DEVICES
from tests.aggregator.console.small_fleet import Fleet, serving
from tests.processes import below, wait_for_end

pytestmark = pytest.mark.slow
VIEWERS = 200


@pytest.fixture(scope="module")
def address(large: Fleet) -> Iterator[str]:
    with serving(large) as (found, _):
        yield found


def test_pages_of_100000_devices_are_small_and_right(address: str) -> None:
    with httpx.Client(base_url=address, timeout=240) as client:
        for path in ("/", "/stream", "/devices", "/groups", "/privacy", "/plans", "/metrics"):
            assert len(client.get(path).content) < 60_000, path
        last = client.get("/devices", params={"page": DEVICES // PAGE, "sort": "device"}).text
        assert f'data-device="home-{DEVICES - 1:06d}"' in last
        assert last.count("<tr data-device=") == PAGE
        assert f">{DEVICES:,}</span> of {DEVICES:,} devices" in last
        some = client.get("/devices", params={"q": "home-0999", "sort": "counted"}).text
        assert some.count("<tr data-device=") == PAGE
        assert ">100</span> of" in some
        metrics = client.get("/metrics").text
        assert f'edge_ldp_reports_total{{what="counted"}} {2 * DEVICES}' in metrics
        assert sum(not line.startswith("#") for line in metrics.splitlines()) <= 50


async def test_the_same_of_200_viewers_is_asked_once(address: str) -> None:
    limits = httpx.Limits(max_connections=VIEWERS)
    async with httpx.AsyncClient(base_url=address, timeout=240, limits=limits) as client:
        before = await _answered(client)
        path = "/devices?state=silent&sort=seen"
        pages = await asyncio.gather(*(client.get(path) for _ in range(VIEWERS)))
        after = await _answered(client)
    assert {page.status_code for page in pages} == {200}
    assert len({page.text for page in pages}) == 1
    assert after - before <= 2  # the page, and the metrics themselves


async def _answered(client: httpx.AsyncClient) -> int:
    text = (await client.get("/metrics")).text
    return int(float(text.partition("\nedge_ldp_console_answers_total ")[2].split()[0]))


def test_its_processes_end_with_it_even_by_sigkill(large: Fleet) -> None:
    with serving(large) as (address, process):
        assert httpx.get(f"{address}/privacy", timeout=240).status_code == 200
        every = below(process.pid)
        assert every
        process.send_signal(signal.SIGKILL)
        process.wait(300)
        for pid in every:
            wait_for_end(pid)
