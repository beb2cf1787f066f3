"""The tap beside the agent, on two real brokers: readings to the one, codes to the other."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from dsmr_parser import telegram_specifications
from dsmr_parser.clients.telegram_buffer import TelegramBuffer
from dsmr_parser.parsers import TelegramParser

from agent.meters.reading import Reading, Telegram
from agent.tap.link import Tap
from agent.tap.messages import LocalReading
from edge_ldp.service.mqtt import Broker, Message, open_link
from firmware_stubs.meters.products import TWINS
from firmware_stubs.meters.twin import TopicTwin
from tests.agent.samples import DEVICE, make_config, make_plan
from tests.integration.agent_bench import (
    Agent,
    fast_clock,
    listening,
    part,
    playing,
    until,
)
from tests.integration.conftest import OPEN, RealBroker, free_port
from tests.reached import reached

MARKER_W = 3_141
TABLE = '[tap]\nhost = "{}"\nport = {}\nallow_plaintext = true\ninterval_s = 1\n'
MARKER = re.compile(rb"(?<![0-9a-f])0*3\.?1410*(?![0-9a-f])")  # no part of a number that is drawn


class Sourced(Agent):
    """An agent whose meter tells by the broker of the tap, and always the marker."""

    def __init__(self, directory: Path, broker: RealBroker, own: RealBroker, tables: str) -> None:
        super().__init__(directory, broker, fast_clock(200), tables=tables)
        self.source = self.twin = TopicTwin(TWINS["esphome"], "127.0.0.1", own.port)
        text = self.config.read_text()
        self.config.write_text(text.replace(str(self.port.link), self.twin.name))

    async def play(self, powers_w: Callable[[int], int] = lambda _: MARKER_W) -> None:
        await self.twin.plug()
        try:
            await super().play(powers_w)
        finally:
            self.twin.unplug()


@asynccontextmanager
async def hearing(broker: RealBroker) -> AsyncIterator[list[Message]]:
    """Give everything that a broker passes on."""
    heard: list[Message] = []
    link = await open_link(Broker(broker.host, broker.port, "ear"))
    await link.subscribe(["#"])

    async def listen() -> None:
        while True:
            heard.append(await link.receive())

    task = asyncio.create_task(listen())
    try:
        yield heard
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await link.close()


async def test_readings_reach_the_household_and_nothing_else_PRV_03_PRV_27_PRV_30(
    tmp_path: Path, broker: RealBroker, make_broker: Callable[[str], RealBroker]
) -> None:
    """A marker in every telegram: found at the tap and the share, and nowhere outside of them.

    The readings come from the very broker that the tap tells them to.
    """
    own, share_port = make_broker(OPEN), free_port()
    tables = TABLE.format("127.0.0.1", own.port) + f"[share]\nport = {share_port}\n"
    agent = Sourced(tmp_path / "a", broker, own, tables)
    async with (
        hearing(broker) as outside,
        hearing(own) as inside,
        listening(broker) as hub,
        playing(agent),
    ):
        await hub.publish(make_plan())
        agent.start()
        await until(lambda: any(m.payload == b"3141" for m in inside))
        assert await used_kw(share_port) == Decimal("3.141")
        await until(lambda: len(hub.slots(agent.device)) >= 5)
        assert agent.process is not None
        ports = (broker.port, own.port, share_port)
        others = [str(n).encode() for n in (agent.process.pid, *ports)]
        await part(hub, agent)
        await until(lambda: any(m.payload == b"offline" for m in inside))
    configs = [m for m in inside if m.topic.endswith("/config")]
    assert {m.topic for m in configs} >= {f"homeassistant/sensor/edge-ldp-{DEVICE}/power/config"}
    ours = ("homeassistant/", "edge-ldp-tap/", agent.twin.name.rpartition(f"{own.port}/")[2])
    assert all(m.topic.startswith(ours) for m in inside)
    assert not any(m.topic.startswith(("homeassistant", "edge-ldp-tap")) for m in outside)
    reports = [m for m in outside if "/report/" in m.topic]
    assert reports
    everything = b"\n".join(m.payload for m in outside if m not in reports)
    left = [path for path in (tmp_path / "a").iterdir() if path.is_file() and path != agent.config]
    for content in (everything, *(path.read_bytes() for path in left)):
        for number in others:
            content = content.replace(number, b" ")  # noqa: PLW2901
        assert not MARKER.search(content)
    assert agent.log.read_text().count("raw readings go to") == 2


async def used_kw(port: int) -> Decimal:
    """Return the power that another reader's own client understands from the share."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    buffer, parser = TelegramBuffer(), TelegramParser(telegram_specifications.V5)
    async with asyncio.timeout(300):
        while True:
            buffer.append((await reader.read(4096)).decode("ascii"))
            for text in buffer.get_all():
                writer.close()
                return Decimal(parser.parse(text).CURRENT_ELECTRICITY_USAGE.value)


def tap_of(
    directory: Path,
    port: int,
    kind: type[Tap] = Tap,
    outgoing: str | None = None,
    outgoing_peer: Callable[[], tuple[str, int] | None] = lambda: None,
) -> Tap:
    tables = TABLE.format("127.0.0.1", port)
    config = make_config(directory / "s.db", broker_port=port + 1, tables=tables)
    if outgoing is not None:  # which the file may not say
        config = replace(config, broker=replace(config.broker, host=outgoing, port=port))
    return kind(config, None, outgoing_peer)


TELEGRAM = Telegram("E01", None, (Reading("power", MARKER_W),))


@asynccontextmanager
async def tapping(tap: Tap) -> AsyncIterator[None]:
    task = asyncio.create_task(tap.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("by", ["resolving", "socket"])
async def test_the_outgoing_broker_under_another_name_is_found_out(
    tmp_path: Path, broker: RealBroker, caplog: pytest.LogCaptureFixture, by: str
) -> None:
    """The file names two brokers; the resolver, or at last the sockets, say that they are one."""
    if by == "resolving":
        tap = tap_of(tmp_path, broker.port, outgoing="localhost")
    else:
        tap = tap_of(tmp_path, broker.port, outgoing_peer=lambda: ("127.0.0.1", broker.port))
    async with hearing(broker) as heard, tapping(tap):
        tap.offer(TELEGRAM)
        await until(lambda: "reports go to: nothing is sent" in caplog.text)
        await asyncio.sleep(0.5)
    assert heard == []
    assert str(MARKER_W) not in caplog.text


async def test_one_broker_at_two_addresses_is_not_found_out(
    tmp_path: Path, broker: RealBroker
) -> None:
    """A limit, as docs/security.md says: neither names nor sockets tell of it."""
    other = "127.0.0.2"
    tap = tap_of(tmp_path, broker.port, outgoing=other, outgoing_peer=lambda: (other, broker.port))
    async with hearing(broker) as heard, tapping(tap):
        tap.offer(TELEGRAM)
        await until(lambda: bool(heard))


class Misled(Tap):
    """A tap whose peer turns out to be far away."""

    def _check_peer(self, peer: tuple[str, int] | None) -> None:
        super()._check_peer(("93.184.216.34", 1883) if peer else None)


async def test_a_name_that_turns_out_to_be_far_away_gets_nothing(
    tmp_path: Path, broker: RealBroker, caplog: pytest.LogCaptureFixture
) -> None:
    tap = tap_of(tmp_path, broker.port, Misled)
    async with hearing(broker) as heard, tapping(tap):
        tap.offer(TELEGRAM)
        await until(lambda: "not of a local network" in caplog.text)
        await asyncio.sleep(0.5)
    assert heard == []


async def test_a_telegram_offered_while_the_tap_is_away_is_not_kept(
    tmp_path: Path, make_broker: Callable[[str], RealBroker]
) -> None:
    own = make_broker(OPEN)
    own.kill()
    tap = tap_of(tmp_path, own.port)
    async with tapping(tap):
        for value in range(1000):
            tap.offer(Telegram("E01", None, (Reading("power", value),)))
        assert sum(isinstance(one, LocalReading) for one in reached(tap)) == 1
        await asyncio.sleep(0.3)
        assert tap.health == "degraded: tap link down"
        own.start()
        async with hearing(own) as heard:
            await until(lambda: tap.health == "ok")
            tap.offer(TELEGRAM)
            await until(lambda: any(m.payload == b"3141" for m in heard))
    assert not any(m.payload == b"999" for m in heard)
