"""What viewers of the console wait for, and what they cost the intake beside it.

`python -m benchmarks.viewers [--devices 100000] [--viewers 200] [--every 1]` fills a SQLite store,
serves it by `edge-ldp console`, as low in priority as its unit makes it, and lets so many viewers
look, as browsers do: each has a page, is told of commits, and asks for the page and its figures
anew. First a flush is committed every so many seconds: how long pages take, how far behind its
commit a figure is that a viewer has, and what CPU both take. Then flushes are committed one after
the other, in turns without viewers and with them, of the same run and store. Everything shares this
machine's cores, also the viewers, who would not elsewhere.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from itertools import islice
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any

from aggregator.intake.intake import commit
from aggregator.store.contract import PlanRow
from aggregator.store.sqlite.store import SqliteStore
from benchmarks.intake_traffic import (
    DAY_S,
    FLEET,
    NOW_S,
    codes_of,
    flushes,
    messages_of,
    plan_of,
    rules_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import IO

    from edge_ldp.service.mqtt import Message

SERVED = ["nice", "-n", "15", sys.executable, "-m", "edge_ldp.cli", "console", "-c"]
TICK = os.sysconf("SC_CLK_TCK")
REPORTS = 24  # of a frame
FLOOD = 20  # flushes of a turn
KINDS = ("/", "/stream", "/devices", "/", "/plans")  # of five viewers
CONFIG = """
fleet = "{fleet}"
[broker]
host = "127.0.0.1"
[store]
path = "{store}"
[clock]
origin_s = {now}
started_s = {started}
rate = 1e-9
[console]
per_minute = 1000000
[[streams]]
name = "power"
id = 1
unit = "W"
ceiling = 43470
epsilon = 1
"""


class Intake:
    """Commits flush after flush into one store, and knows when how many reports were counted."""

    def __init__(self, place: Path, devices: int) -> None:
        plan = plan_of("hybrid")
        rounds = 1_000_000 // devices + 2
        self._rules = rules_of(codes_of(plan, watched=True), rounds, REPORTS)
        self._given = (
            messages_of(one) for one in flushes(plan, rounds, devices=devices, reports=REPORTS)
        )
        self._store = SqliteStore.open(place / "a.db")
        self._store.add_plan(PlanRow(1, plan.epoch, NOW_S, plan.to_json()))
        self.counted = 0
        self.commits: list[tuple[float, int]] = []
        self.take(devices // 500)

    def made(self, count: int) -> list[list[Message]]:
        """Return the next flushes, before any clock runs."""
        return list(islice(self._given, count))

    def take(self, count: int) -> None:
        """Commit so many flushes."""
        for flush in self.made(count):
            self.commit(flush)

    def commit(self, flush: list[Message]) -> None:
        """Commit a flush, and note when."""
        commit(self._store, fleet=FLEET, messages=flush, rules=self._rules)
        self.counted += len(flush) * REPORTS
        self.commits.append((time.monotonic(), self.counted))

    def flood(self) -> tuple[float, float]:
        """Commit at once what a turn has; return frames a second, by the clock and by CPU."""
        given = self.made(FLOOD)
        begun, begun_cpu = time.monotonic(), time.process_time()
        for flush in given:
            self.commit(flush)
        frames = sum(map(len, given))
        return frames / (time.monotonic() - begun), frames / (time.process_time() - begun_cpu)


class Crowd:
    """A process of viewers, who come and go when told."""

    def __init__(self, address: str, viewers: int) -> None:
        command = [sys.executable, "-m", "benchmarks.viewers", "--view", address]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        words = [*command, "--viewers", str(viewers)]
        self.process = subprocess.Popen(words, start_new_session=True, **pipes)

    def tell(self, word: str) -> Any:
        """Let all come (returns when each has its page), or go; return what they saw."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


class Viewer:
    """A browser with one page open."""

    def __init__(self, address: str, path: str) -> None:
        self._host, _, self._port = address.removeprefix("http://").rstrip("/").partition(":")
        self._path = path
        self._wires: list[asyncio.StreamWriter] = []
        self._kept: dict[str, bytes] = {}
        self.took: dict[str, list[float]] = {"page": [], "figure": [], "first": []}
        self.seen: list[tuple[float, int]] = []
        self.listens = asyncio.Event()

    async def come(self) -> None:
        """Get the page as a new visitor does."""
        self._page = await self._open()
        await self._refresh("first")

    async def look(self) -> None:
        """Follow what is told, as console.js does."""
        reader, writer = await self._open()
        writer.write(self._head("/events"))
        await reader.readuntil(b"retry:")
        await self._refresh("page")
        self.listens.set()
        while line := await reader.readline():
            if line.startswith(b"event: commit"):
                await asyncio.sleep(0.05)
                await self._refresh("page")

    def go(self) -> None:
        """Close what is open."""
        for wire in self._wires:
            wire.close()

    async def _refresh(self, name: str) -> None:
        text = await self._get(self._path, name)
        found = re.search(rb'data-figure="power.counted">([\d,]+)<', text)
        if found is not None:
            self.seen.append((time.monotonic(), int(found[1].replace(b",", b""))))
        for url in re.findall(rb'data-(?:query|curve)="([^"]+)"', text):
            path = url.decode().replace("&amp;", "&")
            await self._get(path, "first" if name == "first" else "figure")

    async def _get(self, path: str, name: str) -> bytes:
        reader, writer = self._page
        begun = time.monotonic()
        writer.write(self._head(path))
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:  # closed meanwhile, as it was idle
            self._page = reader, writer = await self._open()
            writer.write(self._head(path))
            head = await reader.readuntil(b"\r\n\r\n")
        found = re.search(rb"(?i)content-length: (\d+)", head)
        body = await reader.readexactly(int(found[1])) if found else b""
        self.took[name].append(time.monotonic() - begun)
        status = head[9:12]
        if status not in (b"200", b"404"):  # 404: no figures in this range yet
            raise RuntimeError(f"{path}: {head[:60]!r} {body[:200]!r}")
        return gzip.decompress(body) if b"content-encoding: gzip" in head else body

    def _head(self, path: str) -> bytes:
        return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept-Encoding: gzip\r\n\r\n".encode()

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(self._host, int(self._port), limit=1 << 20)
        self._wires.append(writer)
        return reader, writer


async def view(address: str, viewers: int, told: IO[str]) -> None:
    """Be a crowd until nothing more is told."""
    while await asyncio.to_thread(told.readline):
        crowd = [Viewer(address, KINDS[at % len(KINDS)]) for at in range(viewers)]
        for one in crowd:
            await one.come()
        looking = [asyncio.create_task(one.look()) for one in crowd]
        await asyncio.gather(*(one.listens.wait() for one in crowd))
        say("there")
        await asyncio.to_thread(told.readline)
        for task in looking:
            task.cancel()
        ended = await asyncio.gather(*looking, return_exceptions=True)
        for one in crowd:
            one.go()
        say(
            {
                "took": {
                    name: [s for one in crowd for s in one.took[name]] for name in crowd[0].took
                },
                "seen": [one.seen for one in crowd if one.seen],
                "failed": [
                    str(e)
                    for e in ended
                    if e is not None and not isinstance(e, asyncio.CancelledError)
                ],
            }
        )


def say(found: Any) -> None:
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()


def spent_s(pid: int) -> float:
    """Return the seconds of CPU of a process and those below it."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    below = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return (int(fields[11]) + int(fields[12])) / TICK + sum(spent_s(int(one)) for one in below)


def lags(
    commits: Sequence[tuple[float, int]], seen: Sequence[Sequence[tuple[float, int]]]
) -> Iterator[float]:
    """Yield how long after a commit each viewer had a page with it, for each that came in time."""
    for viewer in seen:
        for at, counted in commits:
            if at > viewer[0][0]:
                yield next((t for t, number in viewer if number >= counted), float("inf")) - at


def told(name: str, values: Sequence[float]) -> str:
    if len(values) < 2:
        return f"{name}: {len(values)}"
    cuts = quantiles(values, n=100)
    return (
        f"{name}: {len(values):,}, median {1000 * median(values):.0f} ms,"
        f" 95 % {1000 * cuts[94]:.0f}, 99 % {1000 * cuts[98]:.0f}, most {1000 * max(values):.0f}"
    )


def measure(
    place: Path, devices: int, viewers: int, commits: tuple[int, float], turns: int
) -> None:
    intake = Intake(place, devices)
    file = place / "aggregator.toml"
    now_s = NOW_S + DAY_S // 2
    file.write_text(
        CONFIG.format(fleet=FLEET, store=place / "a.db", now=now_s, started=time.time())
    )
    console = subprocess.Popen(
        [*SERVED, str(file), "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert console.stdout is not None
    crowd = Crowd(console.stdout.readline().strip(), viewers)
    try:
        crowd.tell("come")
        intake.commits.clear()
        count, every_s = commits
        given = intake.made(count)
        begun, spent, theirs = time.monotonic(), spent_s(console.pid), spent_s(crowd.process.pid)
        for at, flush in enumerate(given):
            time.sleep(max(0.0, begun + every_s * at - time.monotonic()))
            intake.commit(flush)
        time.sleep(3 * every_s)
        cpu = spent_s(console.pid) - spent, spent_s(crowd.process.pid) - theirs
        found = crowd.tell("go")
        assert not found["failed"], found["failed"][:3]
        load = f"load average {os.getloadavg()[0]:.1f}"
        say(f"{count} flushes of 500 frames, {every_s:g} s apart, {viewers} viewers; {load}")
        for name in ("first", "page", "figure"):
            say(told(name, found["took"][name]))
        say(told("behind the commit", list(lags(intake.commits, found["seen"]))))
        asked = sum(map(len, found["took"].values()))
        say(f"CPU: console {cpu[0]:.1f} s, viewers {cpu[1]:.1f} s; {asked:,} requests")
        rates: list[list[tuple[float, float]]] = [[], []]
        for _ in range(turns):
            rates[0].append(intake.flood())
            crowd.tell("come")
            rates[1].append(intake.flood())
            crowd.tell("go")
        for at, name in enumerate(("clock", "CPU")):
            alone, beside = (median(one[at] for one in turn) for turn in rates)
            pairs = [b[at] / a[at] for a, b in zip(*rates, strict=True)]
            say(
                f"intake, frames a second by the {name}: {alone:,.0f} alone, {beside:,.0f} beside;"
                f" ratio, median {median(pairs):.3f} ({min(pairs):.3f} to {max(pairs):.3f})"
            )
    finally:
        for process in (crowd.process, console):
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(20)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", type=int, default=100_000)
    parser.add_argument("--viewers", type=int, default=200)
    parser.add_argument("--commits", type=int, default=30)
    parser.add_argument("--every", type=float, default=1.0)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--view")
    args = parser.parse_args()
    if args.turns < 1:
        parser.error("--turns: at least 1")
    if args.view is not None:
        asyncio.run(view(args.view, args.viewers, sys.stdin))
        return
    with tempfile.TemporaryDirectory() as place:
        measure(Path(place), args.devices, args.viewers, (args.commits, args.every), args.turns)


if __name__ == "__main__":
    main()
