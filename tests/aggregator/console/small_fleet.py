"""A store of two feeders whose homes report for some days, and a console beside it."""

import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from aggregator.config import AggregatorConfig, load_config
from aggregator.counting.members import named_wishes
from aggregator.counting.refusals import Measured, Rules, StreamRules, allowed_codes
from aggregator.intake.intake import commit
from aggregator.plans import planner
from aggregator.plans.revision import Revision
from aggregator.plans.screen import Screened
from aggregator.store.administration.registry import apply
from aggregator.store.contract import PlanRow, RevisionRow
from aggregator.store.opening import open_session, open_store
from edge_ldp.cli import main
from edge_ldp.device.frame import encode
from edge_ldp.device.sums_frame import SumsFrame, encode_sums
from edge_ldp.protocol.messages import Status, StreamStatus, topic
from edge_ldp.protocol.plan import Plan
from edge_ldp.protocol.released import PublicDesign, ReleasedFrame, encode_released
from edge_ldp.service.mqtt import Message
from edge_ldp.vectorized import perturb_many
from tests.forked import Forked, pipe

SLOT_S, DAY_S = 900, 86_400
END_S = 1_700_006_400 - 1_700_006_400 % DAY_S + DAY_S // 2  # noon of a day
FEW = 10
STREAM = """
[[streams]]
name = "{name}"
id = {id}
unit = "{unit}"
ceiling = 5000
epsilon = 1
size = 64
survey_size = 128
"""
CONFIG = """
fleet = "demo"
[broker]
host = "127.0.0.1"
[store]
{store}
[query]
min_devices = {least}
[clock]
origin_s = {now}
started_s = {started}
rate = 1e-9
[console]
processes = 1
{console}
"""
ALIKE = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # other numbers of threads round other ways


@dataclass(frozen=True)
class Fleet:
    file: Path
    config: AggregatorConfig

    def ask(self, *commands: Sequence[str]) -> list[tuple[int, str]]:
        """Return exit code and standard output of `edge-ldp …` for each of the commands.

        In a thread of their own: a browser's loop may run in the tests'.
        """
        with ThreadPoolExecutor(1) as beside:
            return list(beside.map(_said, commands))

    def aggregator(self, *words: str) -> list[str]:
        parts = 2 if words[0] in ("devices", "plan", "streams") else 1
        return ["aggregator", *words[:parts], "-c", str(self.file), "--json", *words[parts:]]

    def json(self, *words: str) -> Any:
        return json.loads(self.ask(self.aggregator(*words))[0][1])


def _said(words: Sequence[str]) -> tuple[int, str]:
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()):
        code = main(words)
    return code, out.getvalue()


def make_fleet(
    place: Path, *, store: str = "", least: int = FEW, console: str = "", units: str = "W"
) -> Fleet:
    """Return a fleet whose store is there and empty: the service has issued the first plan."""
    file = place / "aggregator.toml"
    text = CONFIG.format(
        store=store or f'path = "{place / "a.db"}"',
        least=least,
        now=END_S,
        started=time.time(),
        console=console,
    )
    text += "".join(
        STREAM.format(name=f"power{at or ''}", id=at + 1, unit=unit)
        for at, unit in enumerate(units.split())
    )
    file.write_text(text)
    config = load_config(file)
    open_store(config, str(file)).close()
    return Fleet(file, config)


def add_plans(fleet: Fleet, days: int) -> Plan:
    """Issue two plans, the second one with θ; return it."""
    stream = fleet.config.streams[0]
    issued_s = END_S - days * DAY_S - SLOT_S
    first = planner.first_plan("demo", stream, epoch=1, now_s=issued_s)
    drafted = planner.following(first, stream, stream.sums(2000), share=(1, 4), now_s=issued_s)
    assert drafted is not None
    plan = planner.proved(drafted)
    store = open_store(fleet.config, str(fleet.file))
    for row in (first, plan):
        store.add_plan(PlanRow(1, row.epoch, row.issued_s, row.to_json()))
    store.close()
    return plan


def add_looks(
    fleet: Fleet, halves: Sequence[float], more: Sequence[str] = (), screen: Sequence[Screened] = ()
) -> None:
    """Let a revision have looked at the reports every half day, and let the last plan stay.

    `more`: what else was expected an interval of; `screen`: what each found.
    """
    store = open_store(fleet.config, str(fleet.file))
    for at, half in enumerate(halves):
        at_s = END_S - (len(halves) - at) * DAY_S // 2
        revision = Revision(at_s, 2, 2000, (0, 5000), (9_000, 3_000), ("θ stays",), 0.25)
        others = tuple((name, half * (at + 2)) for at, name in enumerate(more))
        forecast = (("whole", half / 5), ("hour-of-day", half), *others)
        store.add_revision(
            RevisionRow(
                1, at_s, replace(revision, forecast=forecast, screen=tuple(screen)).to_json()
            )
        )
    store.close()


def add_reports(
    fleet: Fleet, plan: Plan, homes: dict[str, int], days: int, *, slots: int | None = None
) -> None:
    """Let homes report, {group: how many}; every fourth slot a survey. Seeded codes."""
    rng = np.random.default_rng(5)
    count = slots or days * DAY_S // SLOT_S
    first = END_S // SLOT_S - days * DAY_S // SLOT_S
    session = open_session(fleet.config, str(fleet.file))
    at, messages = np.arange(count), list[Message]()
    for group, many in homes.items():
        names = [f"{group}-{number:04d}" for number in range(many)]
        wishes = [replace(one, enrols=True) for one in named_wishes(names, group=group)]
        apply(session, wishes, END_S)
        for name in names:
            level = 500 + 400 * np.sin(at * 2 * np.pi / 96) + rng.exponential(100, count)
            values = level.astype(np.int64)
            codes = perturb_many(plan.stream_mechanism, values, entropy=rng.bytes)
            surveys = perturb_many(plan.survey_mechanism, values, entropy=rng.bytes)
            both = np.where(at % 4 == 0, surveys + plan.stream_mechanism.code_count, codes)
            messages += _frames(name, plan.epoch, first, both.tolist())
    session.close()
    send(fleet, plan, messages)


def add_curated(fleet: Fleet, plan: Plan, devices: Sequence[str], count: int) -> None:
    """Let devices publish so many values of a stream of their own, the last slots of all."""
    design = PublicDesign(
        name="power", unit="W", slot_seconds=SLOT_S, kind="flat", fanout=4, chunk=64, pruned=1,
        smoother="recent", missing="skip", ceiling=5000, epsilon=(1, 2), paid=(1, 2),
    )  # fmt: skip
    first = END_S // SLOT_S - count
    for at, device in enumerate(devices):
        frame = ReleasedFrame(
            stream=0, batch=first, series=first - 1, position=0, theta=2000, design=design,
            slots=tuple(range(first, first + count)),
            values=tuple(300 + 100 * at + (slot * 37) % 500 for slot in range(count)),
        )  # fmt: skip
        send(fleet, plan, [Message(topic("demo", "stream", device), encode_released(frame))])


def add_sums(  # noqa: PLR0913 (a layout)
    fleet: Fleet,
    plan: Plan,
    devices: Sequence[str],
    days: int,
    *,
    scale: int = 61_000,
    cells: int = 4,
    at_stream: int = 0,
) -> None:
    """Let devices release sums of so many days in parts, the last that are over."""
    stream, messages = fleet.config.streams[at_stream], list[Message]()
    last, n = END_S // DAY_S - 1, DAY_S // stream.slot_seconds // cells
    for at, device in enumerate(devices):
        for batch in range(1, days + 1):
            moved = (at * 37 + batch) % 50 * 100
            y = tuple(n * (400 + 100 * part) + moved for part in range(cells))
            frame = SumsFrame(
                *(at_stream, 9, batch, last - days + batch, stream.slot_seconds, 1, cells, 1, 0, 0),
                *(5000, scale, stream.unit, stream.name, (n,) * cells, y),
            )
            messages.append(Message(topic("demo", "report", device), encode_sums(frame)))
    send(fleet, plan, messages)


def send(fleet: Fleet, plan: Plan, *flushes: Sequence[Message], now_s: int = END_S) -> None:
    """Let the intake judge and commit what devices sent, flush after flush."""
    slots = fleet.config.streams[0].bucket_slots
    rules = Rules(
        streams={1: StreamRules(SLOT_S, slots, {plan.epoch: allowed_codes(plan)})},
        devices=None, max_devices=10**6, window_s=10**8, tolerance_s=300, now_s=float(now_s),
        measured={one.name: Measured(one.id, one.unit, 0, 5000) for one in fleet.config.streams},
    )  # fmt: skip
    store = open_store(fleet.config, str(fleet.file))
    for messages in flushes:
        commit(store, fleet="demo", messages=messages, rules=rules, name=uuid4())
    store.close()


def frame(plan: Plan, device: str, codes: Sequence[int]) -> Message:
    """Return the first batch of a device's reports, one a slot from a day ago on."""
    first = END_S // SLOT_S - DAY_S // SLOT_S
    coded = encode(1, 1, plan.epoch, range(first, first + len(codes)), codes)
    return Message(topic("demo", "report", device), coded)


def status(device: str, **told: Any) -> Message:
    """Return what a device says of itself; `expired`: of its one stream."""
    expired = told.pop("expired", 0)
    one = StreamStatus(1, first=1, next=2, oldest=2, created=expired, expired=expired)
    text = Status("online", "test", (one,), **told).to_json()
    return Message(topic("demo", "status", device), text)


def _frames(name: str, epoch: int, first: int, codes: list[int]) -> list[Message]:
    """Return a home's batches, and the status that says that all are sent."""
    parts = [codes[at : at + 960] for at in range(0, len(codes), 960)]
    frames = [
        encode(1, at + 1, epoch, range(first + at * 960, first + at * 960 + len(part)), part)
        for at, part in enumerate(parts)
    ]
    following = len(parts) + 1
    told = StreamStatus(1, first=1, next=following, oldest=following, created=len(codes), expired=0)
    status = Status("online", "test", (told,)).to_json()
    return [
        *(Message(topic("demo", "report", name), frame) for frame in frames),
        Message(topic("demo", "status", name), status),
    ]


@contextmanager
def serving(fleet: Fleet, port: int = 0) -> Iterator[tuple[str, Forked]]:
    """Run `edge-ldp console`; give its address, once it answers, and its process."""
    words = ["console", "-c", fleet.file.name, "--port", str(port)]
    there, out = pipe()
    # there, so that commands on pages name no place of this machine
    process = Forked(words, out=out, cwd=fleet.file.parent)
    out.close()
    with there, os.fdopen(os.dup(there.fileno()), encoding="utf-8") as said:
        try:
            address = said.readline().strip()
            assert address.startswith(("http", "/")), "it has ended"
            yield address.rstrip("/"), process
        finally:
            process.terminate()
            process.wait(300)


@contextmanager
def serving_alone(
    fleet: Fleet, port: int = 0, **env: str
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run it as a command: what it holds is its own."""
    command = [sys.executable, "-m", "edge_ldp.cli", "console", "-c", fleet.file.name]
    process = subprocess.Popen(
        [*command, "--port", str(port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**ALIKE, **env},
        cwd=fleet.file.parent,  # so that commands on pages name no place of this machine
    )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address.startswith("http"), "it has ended"
        yield address.rstrip("/"), process
    finally:
        process.terminate()
        process.wait(300)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        process.stdout.close()


def add_many(fleet: Fleet, plan: Plan, count: int) -> None:
    """Let so many devices send a frame of two reports each, a thousand frames a flush."""
    flushes = (range(at, min(count, at + 1000)) for at in range(0, count, 1000))
    send(
        fleet,
        plan,
        *(
            [frame(plan, f"home-{number:06d}", [number % 60, 7]) for number in flush]
            for flush in flushes
        ),
    )
