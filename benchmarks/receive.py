"""What one process receives from a broker, and what its intake makes durable of it.

`python -m benchmarks.receive [--messages 40000] [--reports 1 50 100]` starts mosquitto on a free
loopback port, keeps frames of so many reports waiting in a durable session, and prints messages a
second, medians of turns in turn: of paho alone, of our link that receives and acknowledges, and of
our link with the intake behind it, acknowledged once SQLite has them, and the ratio of the two.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from aggregator.config import parse_config
from aggregator.due import Due
from aggregator.guard import Codes, Rules, StreamRules
from aggregator.shell.intake import Intake
from aggregator.shell.keeper import Keeper
from aggregator.shell.sqlite_store import SqliteStore
from edge_ldp.device.frame import encode
from edge_ldp.shell.mqtt import Broker, Link, Message, open_link
from tests.integration.conftest import OPEN, RealBroker, running

TOPIC, SHAPE = "edge-ldp/v1/demo/report/{}", "edge-ldp/v1/demo/report/+"
WINDOW, AT_ONCE, TURNS, DEVICES = 1000, 200, 3, 400
SLOT_S, NOW_S = 900, 1_700_000_000
QUIET = OPEN.replace("autosave_on_changes true", "autosave_on_changes false")

CONFIG = """
fleet = "demo"
[broker]
host = "127.0.0.1"
port = {port}
[store]
path = "{place}/a.db"
[[streams]]
name = "power"
id = 1
unit = "W"
ceiling = 4095
epsilon = 4
horizon = 1000
"""


async def keep(broker: RealBroker, client: str, messages: int, reports: int) -> None:
    """Let so many messages wait in a durable session of a client."""
    session = Broker(broker.host, broker.port, client, protocol="5", session_s=3600)
    link = await open_link(session)
    await link.subscribe([SHAPE])
    await link.close()
    sender = await open_link(Broker(broker.host, broker.port, "sender", protocol="5"))
    batches = messages // DEVICES + 1
    first = NOW_S // SLOT_S - reports * batches
    for start in range(0, messages, WINDOW):
        part = range(start, min(messages, start + WINDOW))
        sending = []
        for at in part:
            batch, device = divmod(at, DEVICES)
            slots = range(first + reports * batch, first + reports * (batch + 1))
            payload = encode(1, batch + 1, 1, slots, [1] * reports)
            sending.append(sender.publish(TOPIC.format(f"home-{device}"), payload))
        await asyncio.gather(*sending)
    await sender.close()


async def take_up(broker: RealBroker, client: str) -> Link:
    """Return a link to the session in which messages wait."""
    session = Broker(
        broker.host, broker.port, client, protocol="5", session_s=3600, manual_ack=True,
        window=WINDOW,
    )  # fmt: skip
    return await open_link(session)


async def counted(broker: RealBroker, client: str, messages: int) -> float:
    """Return messages a second that the intake has made durable and acknowledged."""
    plans = {1: Codes(np.ones(256, np.bool_), 0)}
    streams = {1: StreamRules(SLOT_S, 4, plans)}
    rules = Rules(streams, None, 10**6, 366 * 86_400, 300, float(NOW_S))
    with tempfile.TemporaryDirectory() as place:
        config = parse_config(CONFIG.format(place=place, port=broker.port), "a.toml")
        keeper, done = Keeper(SqliteStore.open(Path(place) / "a.db")), asyncio.Event()
        link, acknowledged, ack = await take_up(broker, client), 0, Link.ack

        def count(message: Message) -> None:
            nonlocal acknowledged
            ack(link, message)
            acknowledged += 1
            if acknowledged == messages:
                done.set()

        link.ack = count  # type: ignore[method-assign]
        begun = time.perf_counter()
        task = asyncio.create_task(Intake(config, keeper, Due(), lambda: rules).run(link))
        await done.wait()
        spent = time.perf_counter() - begun
        task.cancel()
        await link.close()
        keeper.close()
    return messages / spent


async def ours(broker: RealBroker, client: str, messages: int) -> float:
    """Return messages a second of our link, received and acknowledged in flushes."""
    link = await take_up(broker, client)
    await link.receive()
    begun, taken = time.perf_counter(), 1
    while taken < messages:
        flush = [await link.receive(), *link.receive_ready(AT_ONCE - 1)]
        for message in flush:
            link.ack(message)
        taken += len(flush)
    spent = time.perf_counter() - begun
    await link.close()
    return messages / spent


def bare(broker: RealBroker, client: str, messages: int) -> float:
    """Return messages a second of paho by itself, on a thread of its own loop."""
    times: list[float] = []
    properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
    properties.SessionExpiryInterval, properties.ReceiveMaximum = 3600, WINDOW
    made = paho.Client(CallbackAPIVersion.VERSION2, client, protocol=paho.MQTTv5)
    made.on_message = lambda *_: times.append(time.perf_counter())
    made.connect(broker.host, broker.port, 60, clean_start=False, properties=properties)
    while len(times) < messages:
        made.loop(timeout=1.0)
    made.disconnect()
    made.loop()
    return messages / (times[-1] - times[0])


def main() -> None:
    """Measure, and print a line for each size of frames."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=40_000)
    parser.add_argument("--reports", type=int, nargs="+", default=[1, 50, 100])
    parser.add_argument("--turns", type=int, default=TURNS)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as place, running(RealBroker(Path(place), QUIET)) as broker:
        for reports in args.reports:
            found: dict[str, list[float]] = {"paho alone": [], "our link": [], "intake": []}
            for turn in range(args.turns):
                for name, rates in found.items():
                    client = f"{name.replace(' ', '-')}-{reports}-{turn}"
                    asyncio.run(keep(broker, client, args.messages, reports))
                    if name == "paho alone":
                        rates.append(bare(broker, client, args.messages))
                    else:
                        take = ours if name == "our link" else counted
                        rates.append(asyncio.run(take(broker, client, args.messages)))
            ratio = median(
                mine / link for mine, link in zip(found["intake"], found["our link"], strict=True)
            )
            said = ", ".join(f"{name} {median(rates):,.0f}/s" for name, rates in found.items())
            print(f"{reports} reports a frame: {said}; intake / our link {ratio:.0%}")  # noqa: T201


if __name__ == "__main__":
    main()
