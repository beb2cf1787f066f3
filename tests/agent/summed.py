"""A bench for sums at home: a device that can be stopped, killed, copied and looked at."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import shake_128
from pathlib import Path
from typing import Any

from agent.claims.slots import SlotValues
from agent.curator.running_file import SUMS_ENDING, RunningFile
from agent.curator.sums import RunningSum
from agent.curator.sums_journal import SumsJournal
from agent.curator.sums_mode import forget_sums, sums_mode
from agent.state.core import DeviceCore
from agent.state.device import Device
from agent.state.journal import Journal
from agent.state.place import running_path
from edge_ldp.device.sums_frame import SumsFrame, decode_sums
from edge_ldp.protocol.ledger import Ledger
from edge_ldp.protocol.released import FIRST_SUMS_KEY
from tests.agent.samples import SLOT_S, T0, StillClock, local_device, make_config, make_plan

WINDOW = (8, 4)  # ε 8 in any four slots
DAY = 96
MIDNIGHT = -(-T0 // 86_400) * 86_400
SUMS = 'mode = "sums"\n[streams.sums]\nshare = 1\ndays = 1\n'
GAS = """
[[streams]]
name = "gas"
quantity = "gas"
unit = "dm3"
ceiling = 6000
slot_seconds = 3600
mode = "sums"
[streams.sums]
share = 0.5
days = 1
"""  # by the hour, beside whatever stands before it in quarter hours
BOTH = 'mode = "both"\n[streams.sums]\nshare = 0.5\ndays = 1\n'


def steady() -> Callable[[int], bytes]:
    """Return a source of bytes that are the same in each test, and never repeat."""
    made = 0

    def source(size: int) -> bytes:
        nonlocal made
        made += 1
        return shake_128(b"steady" + made.to_bytes(8, "little")).digest(size)

    return source


@contextmanager
def in_memory() -> Iterator[Path]:
    """Give a service's directory in memory, as systemd does: a reboot empties it."""
    place = Path(tempfile.mkdtemp(dir="/dev/shm"))
    before = os.environ.get("RUNTIME_DIRECTORY")
    os.environ["RUNTIME_DIRECTORY"] = str(place)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
        os.environ.pop("RUNTIME_DIRECTORY")
        if before is not None:
            os.environ["RUNTIME_DIRECTORY"] = before


class SumsBench:
    """A device with sums on a clock that stands still; it begins at midnight, after its silence."""

    def __init__(
        self,
        state: Path,
        stream: str = SUMS,
        *,
        clock: StillClock | None = None,
        entropy: Callable[[int], bytes] | None = None,
        begins: bool = True,
        **changes: Any,
    ) -> None:
        self.state = state
        self.stream = stream
        self.changes: dict[str, Any] = {"window": WINDOW} | changes
        self.entropy = entropy
        self.clock = clock or StillClock(MIDNIGHT - 10 * SLOT_S)
        self.start()
        if begins:
            self.pass_slots(10)

    def start(self, stream: str | None = None, **changes: Any) -> None:
        self.stream = self.stream if stream is None else stream
        self.changes |= changes
        self.config = make_config(self.state, stream=self.stream, **self.changes)
        self.journal = Journal(self.state)
        self.running_file = running_path(self.state, SUMS_ENDING, self.config.device.keep or "run")
        if self.config.sharing:
            core = DeviceCore(self.config, self.journal, self.clock, self.entropy)
            self.device = Device(core, sums_mode(core))
        else:
            forget_sums(self.config, self.journal)
            self.device = local_device(self.config, self.journal, self.clock, self.entropy)
        self.device.trust_clock()
        if self.config.local_streams:
            self.device.accept_plan("power", make_plan().to_json())

    def restart(self, stream: str | None = None, **changes: Any) -> None:
        self.journal.close()
        self.start(stream, **changes)

    def reboot(self, off_s: float = 0) -> None:
        """Stop the machine: what was in memory is gone."""
        self.journal.close()
        for file in Path(os.environ["RUNTIME_DIRECTORY"]).iterdir():
            file.unlink()
        self.clock.reboot(off_s)
        self.start()

    def pass_slots(self, slots: int) -> None:
        self.clock.pass_s(slots * SLOT_S)

    def push(self, *values: int | None) -> None:
        """Let a slot pass for each value, and close it."""
        for value in values:
            self.clock.pass_s(SLOT_S)
            self.close(value)

    def close(self, value: int | None) -> None:
        """Close the slot that is just over, as the feed's timer does after some housekeeping."""
        self.device.housekeeping()
        each = (value,) * len(self.config.streams)
        self.device.close_slot(SlotValues(self.device.slot - 1, each), online=True)

    def day(self, value: int = 500) -> None:
        self.push(*[value] * DAY)

    @property
    def sums(self) -> SumsJournal:
        return SumsJournal(self.journal, RunningFile(self.running_file))

    @property
    def ledger(self) -> Ledger:
        ledger = self.journal.ledger()
        assert ledger is not None
        return ledger

    @property
    def running(self) -> list[RunningSum]:
        """What runs, as it is sealed."""
        return self.sums.running()[2]

    @property
    def frames(self) -> list[SumsFrame]:
        kept = self.journal.keys()
        payloads = [
            self.device.core.journal.payload(key) for key in kept if key.stream >= FIRST_SUMS_KEY
        ]
        return [decode_sums(payload) for payload in payloads if payload]
