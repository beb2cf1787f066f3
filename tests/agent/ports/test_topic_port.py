"""A topic of the household's broker as a port, by a real broker: read alone, and nothing kept."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from agent.config import parse_meter
from agent.errors import PortError
from agent.ports import topic_port
from agent.ports.open_port import open_meter, open_port, retry_s
from agent.ports.payload import MOST_BYTES
from agent.ports.port import Port
from edge_ldp.service.mqtt import Broker, Link, open_link
from firmware_stubs.meters import p1_telegram
from tests.agent.meters.samples import heard
from tests.integration.conftest import OPEN, RealBroker, broker, make_broker
from tests.integration.mqtt5 import Scripted, message

__all__ = ["broker", "make_broker"]  # fixtures

pytestmark = pytest.mark.integration
HOST = "127.0.0.1"
TOPIC = "tele/meter/SENSOR"
FIELDS = 'fields = [{ field = "ENERGY.Power", quantity = "power", unit = "W" }]'


def telegram(power_w: int) -> bytes:
    return p1_telegram(meter_id="E0043007052870318", time_s=1, import_wh=1, power_w=power_w)


def table_of(broker: RealBroker, *lines: str) -> Any:
    port = f"mqtt://{HOST}:{broker.port}/{TOPIC}"
    return parse_meter("\n".join([f'port = "{port}"', *lines]), "agent.toml")


@asynccontextmanager
async def publisher(broker: RealBroker) -> AsyncIterator[Link]:
    link = await open_link(Broker(host=HOST, port=broker.port, client_id="source"))
    try:
        yield link
    finally:
        await link.close()


async def powers(port: Port, table: Any, count: int) -> list[int]:
    return [one.shown["power"] for one in await heard(port, table, count)]


async def test_SER_41_messages_are_telegrams_and_what_was_kept_is_none(broker: RealBroker) -> None:
    table = table_of(broker)
    async with publisher(broker) as link:
        await link.publish(TOPIC, telegram(1), retain=True)
        with closing(await open_meter(table)) as port:
            await link.publish(TOPIC, telegram(2), retain=True)  # kept, too, but heard live
            await link.publish(TOPIC, telegram(3))
            assert await powers(port, table, 2) == [2, 3]


async def test_SER_41_json_in_many_lines_is_one_reading_and_what_is_none_costs_nothing_else(
    broker: RealBroker,
) -> None:
    table = table_of(broker, 'protocol = "lines"', FIELDS)
    spread = b'{"Time": "x",\r\n "ENERGY": {\r\n  "Power": %d}}'
    async with publisher(broker) as link:
        with closing(await open_meter(table)) as port:
            for payload in (
                *(spread % 7, b"", b"<html>", b'{"ENERGY":{"Power":NaN}}', b"\xff\xfe", b"{" * 999),
                *((spread % 9).decode().encode("utf-16"), b"\xef\xbb\xbf" + spread % 9),
                *(spread % 9 * 2, b'{"ENERGY": {"Power": "9 W"}}', b'{"ENERGY": {"Power": 9}'),
                *(spread[:20], b" " * MOST_BYTES + b"x", spread % 8, spread % 8),
            ):
                await link.publish(TOPIC, payload)
            assert await powers(port, table, 3) == [7, 8, 8]


async def test_SER_41_what_yesterday_kept_is_no_reading_however_often_it_is_asked_for(
    broker: RealBroker,
) -> None:
    """The source went away, its last word stayed: heard at the start, and after a broken link."""
    table = table_of(broker)
    async with publisher(broker) as link:
        await link.publish(TOPIC, telegram(1), retain=True)
    for again in range(2):
        with closing(await open_meter(table)) as port:
            async with publisher(broker) as link:
                await link.publish(TOPIC, telegram(2 + again))
            assert await powers(port, table, 1) == [2 + again]
    async with publisher(broker) as link:
        with closing(await open_meter(table)) as port:
            await link.publish(TOPIC, b"", retain=True)  # taken back: no telegram, and no end
            await link.publish(TOPIC, telegram(4))
            assert await powers(port, table, 1) == [4]


async def test_SER_51_a_broker_that_floods_costs_bounded_memory_and_no_telegram() -> None:
    """24 MB of junk, half a telegram and pieces out of order, faster than they are taken."""
    whole = telegram(7)
    pieces = [b"x" * 60_000] * 400 + [whole[:99], whole[99:], whole[99:] + whole[:99], whole]
    flood = b"".join(message(TOPIC.encode(), one) for one in pieces)
    async with Scripted(flood=flood) as scripted:
        table = parse_meter(f'port = "mqtt://{HOST}:{scripted.port}/{TOPIC}"', "agent.toml")
        with closing(await open_meter(table)) as port:
            assert await powers(port, table, 1) == [7]


async def test_SER_42_a_broker_that_goes_away_is_gone_and_a_topic_nobody_uses_quiet(
    broker: RealBroker,
) -> None:
    port = await open_port(table_of(broker).port, 9600, silence_s=0.05, quiet_s=0.0)
    with closing(port):
        assert await port.read() is None
        with pytest.raises(PortError, match="silent for too long; is the topic right"):
            await port.read()
        broker.kill()
        async with asyncio.timeout(300):
            with pytest.raises(PortError, match="is the broker on"):
                await port.read(60)
    with pytest.raises(PortError, match="cannot be reached"):
        await open_port(port.path, 9600)
    assert retry_s(port.path, 12) > 20


async def test_a_login_is_needed_where_the_broker_wants_one(
    make_broker: Callable[[str], RealBroker],
) -> None:
    broker = make_broker(OPEN.replace("allow_anonymous true", "allow_anonymous false"))
    with pytest.raises(PortError, match="cannot be reached"):
        await open_meter(table_of(broker))


async def test_PRV_26_nothing_is_ever_published_by_it(broker: RealBroker, tmp_path: Path) -> None:
    """By its own acts, as a listener to every topic sees them; and by what its file can name."""
    del tmp_path
    async with publisher(broker) as listener:
        await listener.subscribe(["#"])
        with closing(await open_meter(table_of(broker))) as port:
            with pytest.raises(PortError, match="nothing is sent to a meter"):
                port.write(b"x")
            await listener.publish(TOPIC, telegram(1))
            assert await powers(port, table_of(broker), 1) == [1]
        await listener.subscribe(["end"])  # its answer stands behind all else
        assert [one.topic for one in listener.receive_ready(99)] == [TOPIC]
    assert "publish(" not in inspect.getsource(topic_port)
