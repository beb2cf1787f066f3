"""A home and its utility on one fast clock: agent, broker and aggregator, each a process."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from agent.state.journal import Journal
from aggregator.answers.fleet.completeness import stream_places
from aggregator.counting.records import Record
from aggregator.store.sqlite.reader import SqliteReader
from edge_ldp.service.clock import Clock
from tests.agent.samples import CEILING_W, FLEET, SLOT_S
from tests.forked import Forked
from tests.integration.agent_bench import EXIT_S, Agent, until
from tests.integration.conftest import RealBroker

SETTLE_S = 240.0
SLACK = 20  # reports on their way while an agent runs
STOPS, AFTER_STOP_S = 5, 10.0
CONFIG = """
fleet = "{fleet}"
[broker]
host = "127.0.0.1"
port = {port}
[store]
path = "{store}"
[clock]
origin_s = {origin!r}
started_s = {started!r}
rate = {rate!r}
[intake]
receipt_interval_s = {receipts}
tolerance_s = 86400
[[streams]]
name = "power"
id = 1
unit = "W"
ceiling = {ceiling}
epsilon = 1
slot_seconds = {slot}
horizon = 672000
mechanism = "hybrid"
size = 16
survey_size = 32
min_survey_reports = {surveys}
revise_slots = 2688
"""


class Utility:
    """One `edge-ldp aggregator run` process on the agents' clock."""

    def __init__(
        self, directory: Path, broker: RealBroker, clock: Clock, surveys: int = 1000
    ) -> None:
        directory.mkdir(exist_ok=True, parents=True)
        self.store = directory / "aggregator.db"
        self.log = directory / "aggregator.log"
        self.config = directory / "aggregator.toml"
        self.config.write_text(
            CONFIG.format(
                fleet=FLEET,
                port=broker.port,
                store=self.store,
                origin=clock.origin_s,
                started=clock.started_s,
                rate=clock.rate,
                receipts=int(clock.rate),
                ceiling=CEILING_W,
                slot=SLOT_S,
                surveys=surveys,
            )
        )
        self.process: Forked | None = None

    def start(self) -> None:
        """Start it; it may not be connected yet."""
        self.process = Forked(["aggregator", "run", "-c", str(self.config)], log=self.log)

    def end(self, number: int = signal.SIGTERM) -> int:
        """End it by a signal and return its exit code."""
        process, self.process = self.process, None
        if process is None:
            return 0
        process.send_signal(number)
        return process.wait(EXIT_S)

    def record(self, device: str) -> Record | None:
        with closing(SqliteReader.open(self.store)) as reader:
            return dict(reader.records()).get((device, 1))

    async def ready(self) -> None:
        await until(self.store.exists)

    async def settle(self, agent: Agent) -> dict[str, Any]:
        """Let a running agent deliver all, end it, and return the aggregator's account of it.

        S3: what both sides say is one sum, and nothing of it is rejected or in conflict.
        """
        await until(lambda: self.record(agent.device) is not None, SETTLE_S)  # it was heard at all
        for _ in range(STOPS):  # a link lost in the last second leaves reports for the next start
            await until(lambda: self._behind(agent) <= SLACK, SETTLE_S)
            assert await asyncio.to_thread(agent.end) == 0
            with suppress(TimeoutError):
                await until(lambda: self._behind(agent) == 0, AFTER_STOP_S)
                break
            agent.start()
            await agent.connected()
        await until(lambda: self.told(agent)["pending"] == 0, SETTLE_S)
        account = self.told(agent)
        made = await asyncio.to_thread(agent.status)
        (stream,) = made["streams"]
        assert account["created"] == stream["created"] == made["reports_ever"]
        assert account["expired"] == stream["expired"]
        assert account["rejected"] == account["conflicts"] == 0
        assert account["gaps"] == []
        return account

    def told(self, agent: Agent) -> dict[str, Any]:
        """Return the account of an agent, as `completeness` has it."""
        record = self.record(agent.device)
        assert record is not None
        told: dict[str, Any] = to_builtins(stream_places((agent.device, 1), record, {1: "power"}))
        return told

    def _behind(self, agent: Agent) -> int:
        """Return how many reports of an agent are neither counted nor given up."""
        with closing(Journal(agent.state, create=False)) as journal:
            accounts = journal.status()
        record = self.record(agent.device)
        made = sum(account.created - account.expired for account in accounts)
        return made - (record.counted if record else 0)


@asynccontextmanager
async def serving(utility: Utility) -> AsyncIterator[None]:
    utility.start()
    try:
        yield
    finally:
        utility.end(signal.SIGKILL)


def descriptors(pid: int) -> int:
    """Return how many files a process has open; 0 where only root may know (PRV-04)."""
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208 (only their number)
    except PermissionError:
        return 0


def kept_kib(agent: Agent) -> int:
    """Return the KiB of everything in an agent's directory but its log."""
    sizes = 0
    for path in Path(agent.state.parent).iterdir():
        if path.is_file() and path != agent.log:
            sizes += path.stat().st_size
    return sizes // 1024
