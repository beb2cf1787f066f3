"""The load through a broker, at a chosen rate, to an aggregator that runs."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from aggregator.shell.service import read_retained
from aggregator.shell.stores import open_reader
from edge_ldp.messages import topic
from edge_ldp.plan import parse_plan
from edge_ldp.shell.clock import Clock
from edge_ldp.shell.mqtt import open_link
from firmware_stubs.load.check import check_counts
from firmware_stubs.load.offline import Ran
from firmware_stubs.load.traffic import Source, Traffic

if TYPE_CHECKING:
    from collections.abc import Callable

    from aggregator.config import AggregatorConfig
    from edge_ldp.shell.mqtt import Broker, Link
    from firmware_stubs.load.traffic import Spec

IN_FLIGHT = 100
PLAN_WAIT_S = 10.0
POLL_S = 0.2
TRIES = 5


async def run_online(
    config: AggregatorConfig,
    spec: Spec,
    broker: Broker,
    rate: float,
    told: Callable[[int], None],
) -> tuple[Traffic, Ran]:
    """Send a whole run under the plans that the broker retains, at most `rate` frames a second.

    A round is sent when its slots are over by the aggregator's clock. Raises LookupError when there
    is no plan, LinkLostError.
    """
    names = {s.id: topic(config.fleet, "plan", s.name) for s in config.streams}
    retained = await read_retained(broker, list(names.values()), PLAN_WAIT_S)
    clock = Clock(config.clock.origin_s, config.clock.started_s, config.clock.rate)
    sources = []
    for stream in config.streams:
        if names[stream.id] not in retained:
            raise LookupError(f"no plan of {stream.name} at the broker: start the aggregator first")
        plan = parse_plan(retained[names[stream.id]])
        first = int(clock.now()) // stream.slot_seconds + 1
        sources.append(Source([plan], stream.bucket_slots, first))
    traffic = Traffic(spec, sources)
    link = await open_link(broker)
    try:
        return traffic, await _send(link, config.fleet, traffic, clock, rate, told)
    finally:
        await link.close()


async def until_counted(
    config: AggregatorConfig, file: str, traffic: Traffic, timeout_s: float
) -> None:
    """Wait until as many reports are counted as must be, or the time is over."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        reader = open_reader(config, file)
        try:
            found = check_counts(reader, config, traffic.truth)
        finally:
            reader.close()
        if found["counted"] >= found["expected"]:
            return
        await asyncio.sleep(POLL_S)


async def _send(  # noqa: PLR0913, PLR0917 (what a run consists of)
    link: Link,
    fleet: str,
    traffic: Traffic,
    clock: Clock,
    rate: float,
    told: Callable[[int], None],
) -> Ran:
    began, sent = time.monotonic(), 0
    for at, one in enumerate(traffic.rounds()):
        await clock.sleep(one.last_s - clock.now())
        for start in range(0, len(one.messages), IN_FLIGHT):
            chunk = one.messages[start : start + IN_FLIGHT]
            await asyncio.sleep(began + sent / rate - time.monotonic())
            await asyncio.gather(
                *(link.publish(topic(fleet, "report", device), frame) for device, frame in chunk)
            )
            sent += len(chunk)
        told(at + 1)
    return Ran(sent, time.monotonic() - began)
