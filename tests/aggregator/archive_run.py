"""An aggregator with an archive that dies by SIGKILL again and again, at one step after the other.

`python -m tests.aggregator.archive_run DIRECTORY BATCHES` forks a child that takes in the
traffic and dies at some step, until all of it is acknowledged; it prints how many were killed.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from aggregator.archive.directory import open_spool
from aggregator.archive.files import compact
from aggregator.config import AggregatorConfig, parse_config
from aggregator.counting.records import Changes
from aggregator.counting.refusals import Codes, Rules, StreamRules
from aggregator.intake.intake import commit
from aggregator.store.sqlite.store import SqliteStore
from edge_ldp.device.frame import encode
from edge_ldp.protocol.messages import topic
from edge_ldp.service.broker import Message

SLOT_S, CODES, REPORTS, DEVICES, BATCHES = 900, 40, 24, 6, 21
FIRST_SLOT = 1_700_000_000 // SLOT_S
FLUSH = 5
COMPACT_EVERY = 3  # flushes
LAST_STEP = 45
SEGMENT_BYTES = 3000  # a few flushes
PLAN = Codes(np.ones(CODES, dtype=bool), 0)
RULES = Rules({1: StreamRules(SLOT_S, 4, {7: PLAN})}, None, 100, 1 << 30, 300, 2_000_000_000.0)
CONFIG = """
fleet = "demo"
[broker]
host = "127.0.0.1"
[store]
path = "{place}/a.db"
[archive]
path = "{place}/archive"
shards = 2
[[streams]]
name = "power"
id = 1
unit = "W"
ceiling = 4095
epsilon = 4
horizon = 1000
"""


def config_in(place: Path) -> AggregatorConfig:
    return parse_config(CONFIG.format(place=place), "a.toml")


def frame_of(device: int, batch: int, code: int = 0) -> Message:
    """Return a device's frame; each batch follows the one before without a gap in its slots."""
    first = FIRST_SLOT + batch * REPORTS
    codes = [(device + batch * slot + code) % CODES for slot in range(REPORTS)]
    payload = encode(1, batch, 7, range(first, first + REPORTS), codes)
    return Message(topic("demo", "report", f"home-{device}"), payload)


def traffic(batches: int = BATCHES) -> list[list[Message]]:
    """Return flushes: every frame, every third one twice, of three batches the first one last."""
    moved = [at + (1, 1, -2)[at % 3] for at in range(batches)]
    frames = [frame_of(device, batch + 1) for batch in moved for device in range(DEVICES)]
    frames = [one for at, frame in enumerate(frames) for one in [frame] * (1 + (at % 3 == 0))]
    return [frames[at : at + FLUSH] for at in range(0, len(frames), FLUSH)]


class Steps:
    """Dies at the step with this number."""

    def __init__(self, last: int) -> None:
        self._left = last

    def __call__(self) -> None:
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, owner: Any, name: str) -> None:
        """Make a step before and after each call of a function of the operating system."""
        original: Callable[..., Any] = getattr(owner, name)

        def stepping(*args: Any, **kwargs: Any) -> Any:
            self()
            result = original(*args, **kwargs)
            self()
            return result

        setattr(owner, name, stepping)

    def tear_writes(self) -> None:
        """Make a step in the midst of each write."""
        original = os.pwrite

        def stepping(file: int, data: memoryview, at: int) -> int:
            self()
            half = original(file, data[: len(data) // 2], at)
            self()
            rest = original(file, data[half:], at + half)
            self()
            return half + rest

        setattr(os, "pwrite", stepping)  # noqa: B010 (its type says more than is used)


class SteppingStore(SqliteStore):
    """The real store, with a step after each commit."""

    steps: Steps

    def update(self, *args: Any, **kwargs: Any) -> Changes:
        changes = super().update(*args, **kwargs)
        self.steps()
        return changes


def run(place: Path, batches: int, steps: Steps) -> None:
    """Take in what is not acknowledged yet, and bring it into files now and then."""
    for name in ("ftruncate", "truncate", "fdatasync", "fsync"):
        steps.around(os, name)
    steps.around(Path, "replace")
    steps.around(Path, "unlink")
    steps.tear_writes()
    config, acknowledged = config_in(place), place / "acknowledged"
    SteppingStore.steps = steps
    store = SteppingStore.open(place / "a.db")
    spool = open_spool(config, store, segment_bytes=SEGMENT_BYTES)
    assert spool is not None
    done = len(acknowledged.read_bytes()) if acknowledged.exists() else 0
    for at, flush in enumerate(traffic(batches)[done:], done):
        commit(store, fleet="demo", messages=flush, rules=RULES, spool=spool)
        steps()
        with acknowledged.open("ab") as file:
            file.write(b".")
        if at % COMPACT_EVERY == 0:
            compact(place / "archive", {1: SLOT_S}, store.committed)
    spool.close()
    store.close()


def main() -> None:
    place, kills = Path(sys.argv[1]), 0
    for last in cycle(range(1, LAST_STEP)):
        pid = os.fork()
        if pid == 0:
            try:
                run(place, int(sys.argv[2]), Steps(last))
            except BaseException:  # noqa: BLE001 (the child of a fork must not go on)
                sys.excepthook(*sys.exc_info())
                os._exit(1)
            os._exit(0)
        status = os.waitpid(pid, 0)[1]
        if os.WIFSIGNALED(status):
            kills += 1
            continue
        if os.waitstatus_to_exitcode(status):
            sys.exit(1)
        break
    sys.stdout.write(json.dumps(kills))


if __name__ == "__main__":
    main()
