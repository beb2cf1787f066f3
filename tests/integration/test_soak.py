"""Months in minutes: one agent process that meets a fault every few seconds and must stay flat.

EDGE_LDP_SOAK_MINUTES says how long (1 unless given: six days of the clock; 30 are half a year).
EDGE_LDP_SOAK_OUT names a file for the figures, a line for each second, then the summary. Standing
rules S3, S5 and S7.
"""

import asyncio
import json
import os
import random
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import pytest

from tests.agent.samples import SLOT_S
from tests.integration.agent_bench import (
    PATIENT_AGENT,
    Agent,
    cpu_s,
    fast_clock,
    memory_kib,
    playing,
    until,
)
from tests.integration.conftest import RealBroker
from tests.integration.home_bench import Utility, descriptors, kept_kib, serving

MINUTES = float(os.environ.get("EDGE_LDP_SOAK_MINUTES", "1"))
OUT = os.environ.get("EDGE_LDP_SOAK_OUT")
SLOT_MS = 100
SENDING = "jitter_s = 900\nreceipt_interval_s = 9000"
WARM_SHARE, END_SHARE = 0.2, 0.8
pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.timeout(int(60 * MINUTES) + 180),
]


@dataclass(frozen=True, slots=True)
class Sample:
    """What the agent held at one second of the run."""

    at_s: int
    rss_kib: int
    descriptors: int
    threads: int
    kept_kib: int
    log_lines: int
    cpu_s: float


class Torment:
    """What happens to a home: each method is one fault, from its beginning to its end."""

    def __init__(self, agent: Agent, broker: RealBroker, utility: Utility) -> None:
        self.agent, self.broker, self.utility = agent, broker, utility
        self.counts: dict[str, int] = {}

    async def run(self, seconds: float) -> None:
        """Let one fault after the other happen."""
        choose = random.Random(6)  # noqa: S311 (which fault comes next)
        faults: list[Callable[[], Awaitable[None]]] = [
            self.restart_broker,
            self.kill_broker,
            self.freeze_broker,
            self.unplug,
            self.hang_up,
            self.kill_aggregator,
        ]
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            await asyncio.sleep(choose.uniform(1, 8))
            fault = choose.choice(faults)
            self.counts[fault.__name__] = self.counts.get(fault.__name__, 0) + 1
            await fault()

    async def restart_broker(self) -> None:
        await asyncio.to_thread(self.broker.stop)
        await asyncio.sleep(0.5)
        await asyncio.to_thread(self.broker.start)

    async def kill_broker(self) -> None:
        await asyncio.to_thread(self.broker.restart)

    async def freeze_broker(self) -> None:
        self.broker.pause()
        await asyncio.sleep(1.5)
        self.broker.resume()

    async def unplug(self) -> None:
        self.agent.port.unplug()
        await asyncio.sleep(0.5)
        self.agent.port.plug()

    async def hang_up(self) -> None:
        if self.agent.process:
            self.agent.process.send_signal(signal.SIGHUP)

    async def kill_aggregator(self) -> None:
        self.utility.end(signal.SIGKILL)
        self.utility.start()


def sample(agent: Agent, begun_s: float) -> Sample:
    assert agent.process is not None
    assert agent.process.poll() is None, "the agent ended by itself"
    pid = agent.process.pid
    return Sample(
        at_s=round(time.monotonic() - begun_s),
        rss_kib=memory_kib(pid, "VmRSS"),
        descriptors=descriptors(pid),
        threads=thread_count(pid),
        kept_kib=kept_kib(agent),
        log_lines=agent.log.read_bytes().count(b"\n"),
        cpu_s=cpu_s(pid),
    )


def thread_count(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


async def test_months_of_faults_leave_memory_files_and_descriptors_flat(
    tmp_path: Path, broker: RealBroker
) -> None:
    clock = fast_clock(SLOT_MS)
    agent = Agent(tmp_path / "home", broker, clock, sending=SENDING, command=PATIENT_AGENT)
    utility = Utility(tmp_path / "utility", broker, clock)
    samples: list[Sample] = []
    async with serving(utility), playing(agent):
        agent.start()
        await until(lambda: bool(agent.log.read_text().count("epoch 1 in force")))
        torment = Torment(agent, broker, utility)
        running = asyncio.create_task(torment.run(60 * MINUTES))
        begun_s = time.monotonic()
        while not running.done():
            await asyncio.sleep(1)
            samples.append(sample(agent, begun_s))
            tell(asdict(samples[-1]))
        await running
        tell(summary(samples, clock.rate) | {"faults": torment.counts})
        account = await utility.settle(agent)
    tell(account)
    print(json.dumps(summary(samples, clock.rate)))  # noqa: T201 (shown by pytest -s)
    check_flat(samples)
    assert account["counted"] > 0.5 * 60 * MINUTES * 1000 / SLOT_MS
    assert "Traceback" not in agent.log.read_text()


def tell(figures: dict[str, object]) -> None:
    """Add a line to the file of figures, if one was asked for."""
    if OUT:
        with Path(OUT).open("a") as file:
            file.write(json.dumps(figures) + "\n")


def summary(samples: list[Sample], rate: float) -> dict[str, object]:
    """Return the medians of the first fifth after the start's, and of the last; and the most."""
    warm, end = parts(samples)
    seconds = samples[-1].at_s
    names = ("rss_kib", "descriptors", "threads", "kept_kib")
    return {
        "minutes": round(seconds / 60, 1),
        "days": round(seconds * rate / 86_400, 1),
        "slots": round(seconds * rate / SLOT_S),
        "cpu_share": round(samples[-1].cpu_s / seconds, 4),
        "log_lines": samples[-1].log_lines,
        **{
            name: {
                "begin": median(getattr(one, name) for one in warm),
                "end": median(getattr(one, name) for one in end),
                "most": max(getattr(one, name) for one in samples),
            }
            for name in names
        },
    }


def parts(samples: list[Sample]) -> tuple[list[Sample], list[Sample]]:
    count = len(samples)
    first, last = int(count * WARM_SHARE), int(count * END_SHARE)
    return samples[first : 2 * first], samples[last:]


def check_flat(samples: list[Sample]) -> None:
    warm, end = parts(samples)
    assert median(one.rss_kib for one in end) <= median(one.rss_kib for one in warm) + 1024
    assert max(one.descriptors for one in end) <= max(one.descriptors for one in warm) + 2
    assert max(one.threads for one in samples) <= 4
    assert max(one.kept_kib for one in end) <= max(one.kept_kib for one in warm) + 512
    lines, seconds = samples[-1].log_lines, samples[-1].at_s
    assert lines <= 20 + 3 * seconds, "a flood of log lines"
