"""The same frames through a broker: the aggregator's service beside a client that only receives.

Both drain a backlog that waits in a durable session of their own, one after the other, over the
same client and window. Figures are taken from the first sign of progress to the last report.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import shutil
import socket
import sqlite3
import subprocess
import tempfile
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aggregator.commands.common import make_clock
from aggregator.config import load_config
from aggregator.intake.intake import topics
from aggregator.running.service import Service
from aggregator.store.contract import PlanRow
from aggregator.store.sqlite.store import SqliteStore
from benchmarks.intake_traffic import AT_ONCE, FLEET, NOW_S, SLOT_S, flushes, messages_of
from edge_ldp.service.health import OK
from edge_ldp.service.mqtt import Broker, open_link

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from edge_ldp.protocol.plan import Plan

HOST = "127.0.0.1"
POLL_S = 0.05
SESSION_S = 3600
MOSQUITTO = """listener {port} 127.0.0.1
allow_anonymous true
persistence false
max_queued_messages 0
max_queued_bytes 0
max_inflight_messages 1000
set_tcp_nodelay true
"""
CONFIG = """fleet = "{fleet}"
[broker]
host = "127.0.0.1"
port = {port}
[store]
path = "{store}"
[clock]
origin_s = {origin}
started_s = {started}
rate = 1
[intake]
resend_window_s = 31622400
flush_messages = {flush}
[[streams]]
name = "power"
id = 1
unit = "W"
ceiling = 43470
epsilon = 1
horizon = 1000000
min_survey_reports = 1000000000
"""


@dataclass(frozen=True, slots=True)
class Drained:
    """Frames that were taken in, in seconds of the clock and of the process's CPU."""

    frames: int
    wall_s: float
    cpu_s: float


def compare(
    plan: Plan, *, reports: int, frames: int, devices: int, flush: int = AT_ONCE
) -> tuple[Drained, Drained]:
    """Return what a client that only receives took for a backlog, and what the service took.

    `flush`: messages that the service settles at once, at most.
    """
    rounds = -(-frames // devices)
    with tempfile.TemporaryDirectory() as name, broker(Path(name)) as port:
        place = Path(name)
        origin = NOW_S + SLOT_S * reports * (rounds + 2)
        text = CONFIG.format(
            fleet=FLEET,
            port=port,
            store=place / "a.db",
            origin=origin,
            started=time.time(),
            flush=flush,
        )
        (place / "aggregator.toml").write_text(text)
        store = SqliteStore.open(place / "a.db")
        store.add_plan(PlanRow(1, plan.epoch, NOW_S, plan.to_json()))
        store.close()
        total = rounds * devices
        for begin in (receive, serve):
            _apart(begin, place, port, 0, reports)  # its session begins to collect
        asyncio.run(_publish(port, plan, rounds, devices, reports))
        received = _apart(receive, place, port, total, reports)
        return received, _apart(serve, place, port, total, reports)


@contextmanager
def broker(place: Path) -> Iterator[int]:
    """Run mosquitto on a free port of loopback; it keeps everything in memory."""
    with socket.socket() as sock:
        sock.bind((HOST, 0))
        port = int(sock.getsockname()[1])
    config = place / "mosquitto.conf"
    config.write_text(MOSQUITTO.format(port=port))
    command = shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
    if command is None:
        raise SystemExit("mosquitto is not installed")
    log = subprocess.DEVNULL
    process = subprocess.Popen([command, "-c", str(config)], stdout=log, stderr=log)
    try:
        while True:
            with suppress(OSError), socket.create_connection((HOST, port), 1):
                break
            time.sleep(POLL_S)
        yield port
    finally:
        process.terminate()
        process.wait()


def _apart(work: Callable[..., Awaitable[Drained]], *args: Any) -> Drained:
    """Return what `work` returns in a process of its own."""
    made = multiprocessing.get_context("spawn")
    answers = made.Queue()
    task = made.Process(target=_run, args=(work, answers, *args))
    task.start()
    found: Drained = answers.get()
    task.join()
    return found


def _run(work: Callable[..., Any], answers: Any, *args: Any) -> None:
    answers.put(asyncio.run(work(*args)))


async def _publish(port: int, plan: Plan, rounds: int, devices: int, reports: int) -> None:
    link = await open_link(Broker(HOST, port, client_id="fleet"))
    for flush in flushes(plan, rounds, devices=devices, reports=reports):
        async with asyncio.TaskGroup() as group:
            for one in messages_of(flush):
                group.create_task(link.publish(one.topic, one.payload))
    await link.close()


async def receive(place: Path, port: int, total: int, reports: int) -> Drained:  # noqa: ARG001 (as `serve`)
    """Receive so many messages; the client acknowledges each by itself."""
    link = await open_link(Broker(HOST, port, client_id="receiver", session_s=SESSION_S))
    if not total:
        await link.subscribe(topics(FLEET))
        await link.close()
        return Drained(0, 0.0, 0.0)
    wall_s, cpu_s = time.perf_counter(), time.process_time()
    got = 0
    while got < total:
        await link.receive()
        got += 1 + len(link.receive_ready(AT_ONCE - 1))
    drained = Drained(got, time.perf_counter() - wall_s, time.process_time() - cpu_s)
    await link.close()
    return drained


async def serve(place: Path, port: int, total: int, reports: int) -> Drained:  # noqa: ARG001 (as `receive`)
    """Run the aggregator's service until so many frames are durably counted."""
    config = load_config(place / "aggregator.toml")
    service = Service(config, None, make_clock(config), SqliteStore.open(place / "a.db"))
    task = asyncio.create_task(service.serve())
    reader = sqlite3.connect(place / "a.db")
    first, wall_s, cpu_s, counted = 0, 0.0, 0.0, 0
    while counted < total * reports or service.health != OK:
        await asyncio.sleep(POLL_S)
        (counted,) = reader.execute("SELECT total(counted) FROM records").fetchone()
        if counted and not first:
            first, wall_s, cpu_s = counted, time.perf_counter(), time.process_time()
    end_s, end_cpu_s = time.perf_counter(), time.process_time()
    task.cancel()
    await asyncio.wait([task])
    reader.close()
    return Drained(int(counted - first) // reports, end_s - wall_s, end_cpu_s - cpu_s)
