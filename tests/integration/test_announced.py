"""Sums on a real broker: announced by the service, retained, found by whoever subscribes later."""

import asyncio
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from aggregator.config import load_config
from edge_ldp.service.clock import Clock
from edge_ldp.service.mqtt import Broker, open_link
from tests.aggregator.console.small_fleet import (
    DAY_S,
    END_S,
    Fleet,
    add_plans,
    add_reports,
    make_fleet,
)
from tests.forked import Forked
from tests.integration.agent_bench import Agent
from tests.integration.conftest import OPEN, RealBroker

PATIENCE_S = 300
LATER_S = END_S + 60 * DAY_S  # the month of END_S is closed
ALONE = {"north": 12}
SUM = "edge-ldp/v1/demo/sum/power"
PLAN = "edge-ldp/v1/demo/plan/power"
HOUR, DAY = (f"homeassistant/sensor/edge-ldp-demo/power-{part}/config" for part in ("hour", "day"))
ANNOUNCE = '[announce]\ndelay_s = 0\ndiscovery = "homeassistant"\n'


@contextmanager
def running(fleet: Fleet) -> Iterator[Path]:
    log = fleet.file.with_suffix(".log")
    process = Forked(["aggregator", "run", "-c", str(fleet.file)], log=log)
    try:
        yield log
    finally:
        process.terminate()
        assert process.wait(PATIENCE_S) == 0


class Neighbour(Agent):
    """An agent of the fleet, in a group of it, with a tap; its meter is gone."""

    def __init__(self, directory: Path, broker: RealBroker, tap: RealBroker, group: str) -> None:
        tables = f'[tap]\nhost = "{tap.host}"\nport = {tap.port}\nallow_plaintext = true\n'
        clock = Clock(LATER_S, time.time(), 1.0)
        name = f"in-{group}"
        super().__init__(directory, broker, clock, name, tables=tables + "interval_s = 1\n")
        text = self.config.read_text().replace('fleet = "street"', 'fleet = "demo"')
        text = text.replace("[broker]", f'group = "{group}"\n[broker]', 1)
        self.config.write_text(text)


def fleet_at(place: Path, broker: RealBroker, more: str, homes: dict[str, int] = ALONE) -> Fleet:
    """Return a fleet, of 12 homes unless told, on this broker; its clock stands still."""
    fleet = make_fleet(place)
    add_reports(fleet, add_plans(fleet, 2), homes, 2)
    host = 'host = "127.0.0.1"\n'
    text = fleet.file.read_text().replace(host, f"{host}port = {broker.port}\n", 1)
    fleet.file.write_text(text.replace("[console]", f"{more}[console]"))
    return Fleet(fleet.file, load_config(fleet.file))


async def retained(broker: RealBroker, topics: Sequence[str]) -> dict[str, bytes]:
    """Return the first message at each of the topics, for one who subscribes now."""
    link = await open_link(Broker(broker.host, broker.port, "viewer"))
    found: dict[str, bytes] = {}
    try:
        await link.subscribe(["#"])
        async with asyncio.timeout(PATIENCE_S):
            while not set(topics) <= set(found):
                message = await link.receive()
                if message.payload:  # nothing stands at a topic that is cleared
                    found[message.topic] = message.payload
    finally:
        await link.close()
    return found


async def test_sums_are_announced_retained_and_found_by_home_assistant(
    broker: RealBroker, tmp_path: Path
) -> None:
    fleet = fleet_at(tmp_path, broker, ANNOUNCE)
    with running(fleet):
        await retained(broker, [SUM, HOUR, DAY])
    found = await retained(broker, [SUM, HOUR, DAY])  # of the broker alone: nobody sends now
    told = json.loads(found[SUM])
    asked = fleet.json("query", "--no-density", f"--since={END_S - 3600}", f"--until={END_S}")
    del told["hour"]["since_s"], told["hour"]["until_s"]
    assert told["hour"] == asked["whole"]
    assert told["day"]["devices"] == 12
    for at in (HOUR, DAY):
        assert json.loads(found[at])["state_topic"] == SUM


async def test_without_the_table_nothing_is_announced(broker: RealBroker, tmp_path: Path) -> None:
    fleet = fleet_at(tmp_path, broker, "")
    with running(fleet):
        await retained(broker, [PLAN])  # begun in the same moment as announcing would be
    found = set(await retained(broker, [PLAN]))
    assert {topic for topic in found if "/presence/" not in topic} == {PLAN}


async def test_a_groups_month_reaches_the_taps_of_its_homes_alone_AGG_44_NET_31(
    broker: RealBroker, make_broker: Callable[[str], RealBroker], tmp_path: Path
) -> None:
    fleet = fleet_at(
        tmp_path, broker, ANNOUNCE + "groups = true\n", {"north": 12, "west": 11, "south": 3}
    )
    text = fleet.file.read_text().replace(f"origin_s = {END_S}", f"origin_s = {LATER_S}")
    fleet.file.write_text(text)
    own, other = make_broker(OPEN), make_broker(OPEN)
    homes = [Neighbour(tmp_path / "a", broker, own, "north")]
    homes.append(Neighbour(tmp_path / "b", broker, other, "west"))
    north, west = (f"edge-ldp/v1/demo/group/{name}" for name in ("north", "west"))
    with running(fleet):
        told = json.loads((await retained(broker, [north]))[north])
        for home in homes:
            home.start()
        try:
            shown = await retained(own, ["edge-ldp-tap/in-north/group_power"])
            await retained(other, ["edge-ldp-tap/in-west/availability"])
        finally:
            for home in homes:
                assert home.end() == 0
    assert west not in await retained(broker, [north])
    facts = json.loads(shown["edge-ldp-tap/in-north/group_power"])
    (mean,) = told["streams"]
    assert mean["homes"] == 12
    assert {name: facts[name] for name in mean} == mean
    assert not any(
        "group_" in topic for topic in await retained(other, ["edge-ldp-tap/in-west/availability"])
    )


async def test_a_broker_that_refuses_is_said_and_stops_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "acl").write_text(f"topic readwrite {PLAN}\ntopic readwrite {SUM}\n")
    broker = RealBroker(tmp_path, OPEN + f"acl_file {tmp_path / 'acl'}\n")
    broker.start()
    try:
        fleet = fleet_at(tmp_path, broker, ANNOUNCE)
        with running(fleet) as log:
            assert set(await retained(broker, [PLAN, SUM])) == {PLAN, SUM}
            async with asyncio.timeout(PATIENCE_S):
                while "check the access list" not in log.read_text():  # noqa: ASYNC110 (a file)
                    await asyncio.sleep(0.05)
            said = log.read_text()
    finally:
        broker.kill()
    assert f"sums are not announced: broker refused {HOUR}" in said
    assert "connecting again" not in said
