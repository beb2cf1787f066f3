"""A broker that floods: what is held of it is bounded by count and by bytes, and nothing stalls."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from edge_ldp.service.mqtt import LinkLostError, open_link
from edge_ldp.service.mqtt_socket import INBOX_BYTES, MAX_PACKET_BYTES, READ_BURST
from tests.edge_ldp.service.test_mqtt import PROTOCOLS, broker_at
from tests.integration.certificates import Authority
from tests.integration.conftest import OPEN, RealBroker, broker, make_broker
from tests.integration.mqtt5 import Scripted, message
from tests.integration.test_tls import serving

__all__ = ["broker", "make_broker"]  # fixtures
pytestmark = pytest.mark.integration


async def test_NET_30_a_flood_is_held_by_bytes_and_comes_in_order() -> None:
    """Messages of 64 KiB, three times what the inbox may hold, to who takes them all at once."""
    size = 1 << 16
    total, got = 3 * INBOX_BYTES // size, list[int]()
    bodies = (b"%d" % number + b" " * size for number in range(total))
    async with Scripted(flood=b"".join(message(b"t", body) for body in bodies)) as scripted:
        link = await open_link(broker_at(scripted.port))
        await link.subscribe(["t"])
        async with asyncio.timeout(300):
            while len(got) < total:
                held = [await link.receive(), *link.receive_ready(total)]
                assert sum(len(one.payload) for one in held) < INBOX_BYTES + 2 * size
                got += [int(one.payload) for one in held]
        await link.close()
    assert got == list(range(total))


async def test_NET_30_who_begins_a_boundless_message_is_left() -> None:
    head = message(b"t", b"x" * (1 << 20))
    boundless = head[:1] + b"\xff\xff\xff\x7f" + head[4:]  # it says 256 MB
    async with Scripted(flood=boundless) as scripted, asyncio.timeout(300):
        link = await open_link(broker_at(scripted.port))
        await link.subscribe(["t"])
        with pytest.raises(LinkLostError, match="larger than anybody may"):
            await link.receive()
        await link.close()


async def test_NET_30_what_tls_holds_is_read_without_another_byte(tmp_path: Path) -> None:
    """One record of TLS has more messages than are read at once."""
    authority, total = Authority(tmp_path), 3 * READ_BURST
    flood = b"".join(message(b"t", b"%d" % number) for number in range(total))
    context = serving(authority.issue("broker", "localhost"))
    async with Scripted(flood=flood, context=context) as scripted, asyncio.timeout(300):
        there = broker_at(scripted.port, tls=True, ca_file=str(authority.ca))
        link = await open_link(replace(there, host="localhost"))
        await link.subscribe(["t"])
        got = [int((await link.receive()).payload) for _ in range(total)]
        assert got == list(range(total))
        await link.close()


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_NET_30_ten_megabytes_are_cut_where_the_broker_keeps_to_no_limit(
    make_broker: Callable[[str], RealBroker], protocol: str
) -> None:
    broker = make_broker(OPEN)
    link = await open_link(broker_at(broker.port, "reads", protocol=protocol))
    await link.subscribe(["t"])
    writer = await open_link(broker_at(broker.port, "writes"))
    for payload in (b"x" * 10_000_000, b"x"):
        await writer.publish("t", payload)
    sizes = list[int]()
    async with asyncio.timeout(300):
        while sizes[-1:] != [1]:
            sizes.append(len((await link.receive()).payload))
    assert sizes == ([1] if protocol == "5" else [MAX_PACKET_BYTES + 1, 1])
    await link.close()
    await writer.close()
