"""How long others wait while one device floods: the whole way, through a broker that is not ours.

`python -m benchmarks.flood [--seconds 10] [--rate 10000]` starts mosquitto and an aggregator. A
device asks for a receipt by a status ten times a second; what is measured is how long its answer
takes: broker, intake, commit, receipt. Quiet and flooded turns alternate, so that whatever else the
machine does is in both. The flood is one device that sends the same frame again and again.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import struct
import sys
import tempfile
import time
from pathlib import Path
from statistics import median, quantiles

from tests.integration.aggregator_bench import Aggregator, Device, Wire
from tests.integration.conftest import SAVED, RealBroker, running

ASK_S, LEVEL = 0.1, 20
CONFIG = SAVED.replace("autosave_on_changes true", "autosave_on_changes false")


def publish_packets(to: str, payload: bytes, count: int) -> bytes:
    """Return MQTT 3.1.1 publishes at QoS 0: the cheapest flood there is for its sender."""
    head = struct.pack(">H", len(to)) + to.encode()
    size = len(head) + len(payload)
    length = bytearray()
    while True:
        size, low = size >> 7, size & 127
        length.append(low | (128 if size else 0))
        if not size:
            return (b"\x30" + bytes(length) + head + payload) * count


def connected(broker: RealBroker) -> socket.socket:
    """Return a connection of a client of its own."""
    link = socket.create_connection((broker.host, broker.port))
    name = b"flood"
    body = struct.pack(">H4sBBHH", 4, b"MQTT", 4, 2, 0, len(name)) + name
    link.sendall(b"\x10" + bytes([len(body)]) + body)
    link.recv(4)
    return link


async def flood(broker: RealBroker, packets: bytes, each: int, rate: int, seconds: float) -> int:
    """Send so many a second; return how many went out."""
    link = connected(broker)
    link.setblocking(False)
    loop, begun, sent = asyncio.get_running_loop(), time.monotonic(), 0
    while time.monotonic() < begun + seconds:
        await loop.sock_sendall(link, packets)
        sent += each
        await asyncio.sleep(max(0.0, begun + sent / rate - time.monotonic()))
    link.close()
    return sent


async def answers(wire: Wire, device: Device, seconds: float) -> list[float]:
    """Return how long each receipt took, in ms."""
    found, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        before, asked = wire.heard(), time.monotonic()
        await wire.send([device.make([wire.plans[-1].stream_mechanism.code_count])])
        await wire.send([device.status()])
        while wire.heard() <= before:
            wire.hear(await wire.link.receive())
        found.append((time.monotonic() - asked) * 1000)
        await asyncio.sleep(ASK_S)
    return found


def cpu_s(aggregator: Aggregator) -> float:
    """Return the CPU seconds that an aggregator and its courier have had so far."""
    ticks = 0
    for pid in (aggregator.pid, *aggregator.couriers()):
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def told(name: str, found: list[float]) -> str:
    last = quantiles(found, n=LEVEL)[-1]
    return f"{name:8}{len(found):4} answers, median {median(found):6.1f} ms, 95 % {last:6.1f} ms"


async def measure(seconds: float, rate: int, turns: int, place: Path, broker: RealBroker) -> None:
    aggregator = Aggregator(place, broker, intake="receipts_per_s = 10000")
    aggregator.start()
    wire = await Wire.open(broker)
    plan = await wire.plan()
    device, loud = wire.add(2, plan)
    to, payload = loud.make([plan.stream_mechanism.code_count] * 50)
    each = 50
    packets = publish_packets(to, payload, each)
    spent = {"quiet": 0.0, "flooded": 0.0}
    both: dict[str, list[float]] = {"quiet": [], "flooded": []}
    sent = 0
    try:
        for _ in range(turns):
            begun = cpu_s(aggregator)
            both["quiet"] += await answers(wire, device, seconds)
            between = cpu_s(aggregator)
            async with asyncio.TaskGroup() as group:
                flooding = group.create_task(flood(broker, packets, each, rate, seconds))
                asking = group.create_task(answers(wire, device, seconds))
            sent += flooding.result()
            both["flooded"] += asking.result()
            spent["quiet"] += between - begun
            spent["flooded"] += cpu_s(aggregator) - between
        refused = aggregator.refused()
        counted = aggregator.counted()
    finally:
        await wire.link.close(abrupt=True)
        aggregator.kill()
    for name, found in both.items():
        sys.stdout.write(told(name, found) + "\n")
    ratio = median(both["flooded"]) / median(both["quiet"])
    unread, again = refused.get("rate", 0), refused.get("duplicate", 0)
    cost_us = (spent["flooded"] - spent["quiet"]) / sent * 1e6
    sys.stdout.write(f"the aggregator spends {cost_us:.0f} us of CPU on a message of the flood\n")
    sys.stdout.write(
        f"flood: {sent:,} messages in {turns * seconds:.0f} s, {again:,} read, {unread:,} refused "
        f"unread; counted {counted - 50} of {sum(map(len, both.values()))}; ratio {ratio:.2f}\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rate", type=int, default=10_000)
    parser.add_argument("--turns", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="flood-") as place:
        directory = Path(place) / "broker"
        directory.mkdir()
        with running(RealBroker(directory, CONFIG)) as broker:
            asyncio.run(measure(args.seconds, args.rate, args.turns, Path(place), broker))


if __name__ == "__main__":
    main()
