"""Agents as processes or in this loop, and the scripted far end that they report to."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from contextlib import asynccontextmanager, closing
from typing import TYPE_CHECKING, Any

from agent.state.journal import Journal
from edge_ldp.device.frame import decode
from edge_ldp.device.sums_frame import MAGIC, SumsFrame, decode_sums
from edge_ldp.protocol.frames import split_frames
from edge_ldp.protocol.messages import (
    Receipt,
    Status,
    StreamReceipt,
    name_in_topic,
    parse_status,
    topic,
)
from edge_ldp.protocol.released import FIRST_KEY, FIRST_SUMS_KEY
from edge_ldp.service.clock import Clock
from edge_ldp.service.mqtt import Broker, Link, LinkLostError, open_link
from firmware_stubs.meters import PtyPort, Series, p1_telegram, play
from tests.agent.samples import FLEET, SLOT_S, T0, config_text
from tests.forked import Forked, Values
from tests.processes import run_told

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from pathlib import Path

    from edge_ldp.device.frame import Frame
    from edge_ldp.protocol.messages import StreamStatus
    from edge_ldp.protocol.plan import Plan
    from firmware_stubs.meters.player import Show
    from firmware_stubs.meters.pty_port import MeterEnd
    from tests.integration.conftest import RealBroker

EDGE_LDP = (sys.executable, "-m", "edge_ldp.cli")
# for a busy machine: a stop that takes more than 3 s, and a slot that is closed more than 5 s late,
# cost reports there
_PATIENCE: Values = {
    ("agent.link.uplink", "FAREWELL_S"): 60.0,
    ("agent.state.local_mode", "LATE_S"): 600.0,
    ("agent.claims.own_slots", "LATE_SLOTS"): 2000,
}
_PATIENTLY = f"""
import edge_ldp.cli
for name in edge_ldp.cli.RARELY:
    edge_ldp.cli.later(name)
from importlib import import_module
for (module, name), value in {_PATIENCE}.items():
    setattr(import_module(module), name, value)
raise SystemExit(edge_ldp.cli.main())
"""
PATIENT_AGENT = (sys.executable, "-c", _PATIENTLY)  # whose memory is an agent's
WAIT_S = 300
EXIT_S = 300
RETRY_S = 0.05
KEEP_S = 600  # a test whose loop waits for a process answers no broker meanwhile
STORE = "0123456789abcdef"
SERIES_APART = 1_000_000
METER = "E0043007052870318"
PATIENT = f'date_by = "meter"\nclock_tolerance_s = {2000 * SLOT_S}'  # no telegram comes too late


class Hub:
    """The aggregator's place: publishes plans, records what comes, and gives receipts if told to.

    Comes back by itself when the broker goes away. A receipt covers exactly what was recorded. Of a
    stream's second series the numbers are recorded from SERIES_APART on, and so on.
    """

    def __init__(self, broker: RealBroker, *, receipts: bool = True) -> None:
        self.receipts = receipts
        self.payloads: dict[str, dict[tuple[int, int], list[bytes]]] = defaultdict(
            lambda: defaultdict(list)
        )
        self.series: dict[tuple[str, int], list[int]] = defaultdict(list)  # in the order they came
        self.statuses: dict[str, list[Status]] = defaultdict(list)
        self.together: list[int] = []  # batches in each message
        self.link: Link | None = None
        self.ready = asyncio.Event()
        self._broker = Broker(broker.host, broker.port, "hub", keepalive_s=KEEP_S)

    async def run(self) -> None:
        """Listen for ever."""
        while True:
            try:
                self.link = await open_link(self._broker)
                await self.link.subscribe(
                    [topic(FLEET, kind, "+") for kind in ("report", "status")]
                )
                self.ready.set()
                while True:
                    message = await self.link.receive()
                    await self._take(message.topic, message.payload)
            except LinkLostError:
                await asyncio.sleep(RETRY_S)
            finally:
                if self.link:
                    await self.link.close()

    async def publish(self, plan: Plan | bytes, stream: str = "power") -> None:
        """Publish a plan, or any bytes, retained on a stream's plan topic."""
        payload = plan if isinstance(plan, bytes) else plan.to_json()
        await self._send(topic(FLEET, "plan", stream), payload)

    async def confirm(self, device: str) -> None:
        """Publish the receipt of all that came from a device."""
        await self._send(topic(FLEET, "receipt", device), self.receipt(device).to_json())

    def receipt(self, device: str) -> Receipt:
        """Return what is recorded of a device's streams and series, and the gaps in them."""
        numbers = defaultdict(set)
        for stream, number in self.payloads[device]:
            numbers[stream, number // SERIES_APART].add(number % SERIES_APART)
        return Receipt(
            tuple(
                StreamReceipt(
                    stream, max(found), _gaps(found, 1), series=self.series[device, stream][at]
                )
                for (stream, at), found in sorted(numbers.items())
            ),
            store=STORE,
            device=device,
        )

    def frames(self, device: str) -> list[Frame]:
        """Return every different frame of a device, oldest first."""
        return [
            decode(payload)
            for (stream, _), payloads in sorted(self.payloads[device].items())
            if stream < FIRST_KEY
            for payload in dict.fromkeys(payloads)
        ]

    def slots(self, device: str) -> dict[int, set[tuple[int, int]]]:
        """Return the (epoch, code) pairs that came for each slot of a device."""
        found: dict[int, set[tuple[int, int]]] = defaultdict(set)
        for frame in self.frames(device):
            for slot, code in zip(frame.slots, frame.codes, strict=True):
                found[slot].add((frame.epoch, code))
        return dict(found)

    def check(self, device: str) -> None:
        """S2, PRV-02: a batch number has one payload, and a slot one code, ever."""
        for key, payloads in self.payloads[device].items():
            assert len(set(payloads)) == 1, f"{device} {key}: sent in {len(set(payloads))} versions"
        for slot, codes in self.slots(device).items():
            assert len(codes) == 1, f"{device}: slot {slot} randomised {len(codes)} times"

    def check_complete(self, device: str) -> None:
        """S3: what came is what the device says it made, batch by batch and report by report."""
        self.check(device)
        for account in self.statuses[device][-1].streams:
            begin = self._begin(device, account)
            numbers = {n for stream, n in self.payloads[device] if stream == account.stream}
            present = {n - begin for n in numbers if n >= begin}
            assert present == set(range(account.first, account.next))
            reports = sum(len(f.slots) for f in self.frames(device) if f.stream == account.stream)
            if account.stream >= FIRST_SUMS_KEY:
                reports = len(numbers)
            assert account.created == reports + account.expired

    def streams_of(self, device: str) -> Sequence[StreamStatus]:
        """Return what the device's last status says of its streams."""
        return self.statuses[device][-1].streams if self.statuses[device] else ()

    def is_offline(self, device: str) -> bool:
        """Tell whether the last status that came says that the device is gone."""
        return bool(self.statuses[device]) and self.statuses[device][-1].state == "offline"

    def take_kept(self, agent: Agent) -> None:
        """Take from a state at rest what its agent had no time to send, as if it had come."""
        with closing(Journal(agent.state, create=False)) as journal:
            kept = [journal.payload(key) for key in journal.keys()]  # noqa: SIM118
        for payload in filter(None, kept):
            self._keep(agent.device, payload)

    def _keep(self, device: str, one: bytes) -> None:
        frame: Frame | SumsFrame = decode_sums(one) if one.startswith(MAGIC) else decode(one)
        stream = frame.stream + (FIRST_SUMS_KEY if isinstance(frame, SumsFrame) else 0)
        known = self.series[device, stream]
        if frame.series not in known:
            known.append(frame.series)
        number = known.index(frame.series) * SERIES_APART + frame.batch
        self.payloads[device][stream, number].append(one)

    async def _take(self, name: str, payload: bytes) -> None:
        device = name_in_topic(FLEET, "report", name)
        if device is not None:
            frames = split_frames(payload)
            self.together.append(len(frames))
            for one in frames:
                self._keep(device, one)
            return
        device = name_in_topic(FLEET, "status", name)
        if device is not None:
            status = parse_status(payload)
            if status.streams or status.state == "offline":
                self.statuses[device].append(status)
            if self.receipts and self.link:
                receipt = self.receipt(device).to_json()
                await self.link.publish(topic(FLEET, "receipt", device), receipt, retain=True)

    def _begin(self, device: str, account: StreamStatus) -> int:
        """Return what is added to the numbers of an account's series where they are recorded."""
        known = self.series[device, account.stream]
        at = known.index(account.series) if account.series in known else len(known)
        return at * SERIES_APART

    async def _send(self, name: str, payload: bytes) -> None:
        async with asyncio.timeout(WAIT_S):
            while True:
                try:
                    if self.link:
                        await self.link.publish(name, payload, retain=True)
                        return
                except LinkLostError:
                    pass
                await asyncio.sleep(RETRY_S)


def _gaps(found: set[int], first: int) -> tuple[tuple[int, int], ...]:
    gaps = []
    expected = first
    for number in sorted(found):
        if number > expected:
            gaps.append((expected, number - 1))
        expected = number + 1
    return tuple(gaps)


@asynccontextmanager
async def listening(broker: RealBroker, *, receipts: bool = True) -> AsyncIterator[Hub]:
    """Give a hub that listens."""
    hub = Hub(broker, receipts=receipts)
    task = asyncio.create_task(hub.run())
    try:
        await asyncio.wait_for(hub.ready.wait(), WAIT_S)
        yield hub
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class Agent:
    """One `edge-ldp agent run` process with its own pty, configuration, state and log.

    Slots are dated by the meter, so that a slow machine does not move readings between slots.
    """

    def __init__(  # noqa: PLR0913 (what tests vary)
        self,
        directory: Path,
        broker: RealBroker | int,
        clock: Clock,
        device: str = "home-7",
        *,
        sending: str = "jitter_s = 0",
        command: Sequence[str] = (),
        environment: dict[str, str] | None = None,
        **changes: Any,
    ) -> None:
        directory.mkdir(exist_ok=True, parents=True)
        self.device = device
        self.clock = clock
        self.port = PtyPort(directory / "meter")
        self.source: MeterEnd = self.port  # where its telegrams go
        self.show: Show = p1_telegram
        self.state = directory / "state.db"
        self.log = directory / "agent.log"
        self.config = directory / "agent.toml"
        self.process: subprocess.Popen[bytes] | Forked | None = None
        self._command = command
        self._said = 0
        self.environment = environment  # another one than this process's
        lines = (
            f"origin_s = {clock.origin_s!r}\nstarted_s = {clock.started_s!r}\nrate = {clock.rate!r}"
        )
        changes.setdefault("meter", f'date_by = "meter"\nclock_tolerance_s = {10 * SLOT_S}')
        text = config_text(
            self.state,
            port=self.port.link,
            broker_port=broker if isinstance(broker, int) else broker.port,
            clock=lines,
            sending=sending,
            **changes,
        )
        self.config.write_text(text.replace('id = "home-7"', f'id = "{device}"'))

    def start(self) -> None:
        """Start the process; it may not read yet, nor mind a signal to stop."""
        self._said = self.log.stat().st_size if self.log.exists() else 0
        words = ["agent", "run", "-c", str(self.config)]
        if not self._command and self.environment is None:
            self.process = Forked(words, log=self.log, values=_PATIENCE)
            return
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*(self._command or PATIENT_AGENT), *words], stderr=log, env=self.environment
            )

    async def connected(self) -> None:
        """Return once what was started last told of its link."""
        await until(lambda: b"connected" in self.log.read_bytes()[self._said :])

    def end(self, number: int = signal.SIGTERM, seconds: float = EXIT_S) -> int:
        """End it by a signal and return its exit code."""
        process, self.process = self.process, None
        if process is None:
            return 0
        process.send_signal(number)
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise

    def status(self) -> dict[str, Any]:
        """Return what `edge-ldp agent status` says."""
        found: dict[str, Any] = json.loads(self.say("status", "--json"))
        return found

    def say(self, *words: str, seconds: float = 300) -> str:
        """Return what another command of the agent prints about it; it must succeed."""
        done = run_told(
            [*(self._command or PATIENT_AGENT), "agent", *words, "-c", str(self.config)],
            check=True,
            timeout=seconds,
            env=self.environment,
        )
        return done.stdout

    async def play(self, powers_w: Callable[[int], int] = lambda k: 100 * (k % 9)) -> None:
        """Send a telegram for each slot from now on, for ever."""
        start_s = int(self.clock.now() // SLOT_S + 1) * SLOT_S
        powers = (powers_w(k) for k in range(10**6))
        series = Series(powers, start_s, SLOT_S, METER, show=self.show)
        await play(self.source, series, self.clock)


def made(agent: Agent) -> int:
    """Return how many reports an agent ever stored, from its state file."""
    with closing(Journal(agent.state, create=False)) as journal:
        return sum(account.created for account in journal.status())


async def part(hub: Hub, agent: Agent) -> None:
    """Stop an agent; what came and what it keeps is then all that it made.

    Where receipts were late a stop sends one message: what was packed after it is kept.
    """
    assert await asyncio.to_thread(agent.end) == 0
    await until(lambda: hub.is_offline(agent.device))
    hub.take_kept(agent)
    hub.check_complete(agent.device)


@asynccontextmanager
async def playing(*agents: Agent) -> AsyncIterator[None]:
    """Plug the agents' meters in and let them send; end everything afterwards."""
    for agent in agents:
        agent.port.plug()
    tasks = [asyncio.create_task(agent.play()) for agent in agents]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for agent in agents:
            agent.end(signal.SIGKILL)
            agent.port.unplug()


async def until(holds: Callable[[], bool], seconds: float = WAIT_S) -> None:
    """Return once it holds; fails after a while."""
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110 (it is about other processes)
            await asyncio.sleep(0.02)


def fast_clock(slot_ms: int) -> Clock:
    """Return a clock whose slots take so many real milliseconds, from T0 on."""
    return Clock(T0, time.time(), SLOT_S * 1000 / slot_ms)


def memory_kib(pid: int, name: str) -> int:
    """Return a line of /proc/PID/status in KiB."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:  # noqa: PTH123 (a kernel's file)
        return next(int(line.split()[1]) for line in file if line.startswith(f"{name}:"))


def allowed_kib(mib: int, *, ciphers: bool = False) -> int:
    """Return what an agent may hold that may hold so many MiB on Debian 12.

    From CPython 3.13 on 1 MiB more, 2 where OpenSSL has `ciphers` to do: in a clean Debian 13 an
    agent took 32,268 KiB, with HTTPS 34,904, with signatures 40,172.
    """
    more = 1024 * (1 + ciphers) if sys.version_info >= (3, 13) else 0
    return mib * 1024 + more


def cpu_s(pid: int) -> float:
    """Return the CPU seconds that a process has used."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:  # noqa: PTH123 (a kernel's file)
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
