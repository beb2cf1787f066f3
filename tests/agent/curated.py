"""Configurations and a bench for curators: a device that can be stopped, killed and looked at."""

from collections.abc import Callable
from dataclasses import replace
from hashlib import shake_128
from pathlib import Path
from typing import Any

from agent.claims.batches import Key
from agent.claims.slots import SlotValues
from agent.config import AgentConfig, parse_config
from agent.curator.journal import CuratorJournal
from agent.curator.mode import CuratorMode
from agent.curator.outbox import ReleasedValue, SeriesRow
from agent.curator.running_file import ENDING
from agent.state.core import DeviceCore
from agent.state.device import Device
from agent.state.journal import Journal
from agent.state.place import running_path
from edge_ldp.continual import CuratorState, parse_state
from edge_ldp.protocol.released import ReleasedFrame, decode_released
from tests.agent.samples import SLOT_S, StillClock, config_text

FIXED = """\
epsilon = 1
method = "fixed"
theta = 1000
chunk = 8
fanout = 2
pruned = 1
"""
QUANTILE = """\
epsilon = 0.5
method = "quantile"
share = 0.9
readings = 12
chunk = 8
fanout = 2
pruned = 1
"""


def curator_text(state: Path, curator: str = FIXED, **changes: Any) -> str:
    """Return an agent's TOML file in the curator mode; `curator` are the lines of its table."""
    return f'mode = "curator"\n{config_text(state, **changes)}\n[curator]\n{curator}'


def curator_config(state: Path, curator: str = FIXED, **changes: Any) -> AgentConfig:
    return parse_config(curator_text(state, curator, **changes), "agent.toml")


def key_of(row: SeriesRow) -> bytes | None:
    chunk = parse_state(row.secret).chunk if row.secret else None
    return None if chunk is None else chunk.key


def sealed_by_the_chunks_key(state: CuratorState) -> tuple[bytes, bytes]:
    """Return a state and its key as the journal held them before there was a running file."""
    chunk = state.chunk
    assert chunk is not None
    name = b"open" + chunk.position.to_bytes(8, "little") + state.slot.to_bytes(8, "little")
    pads = shake_128(chunk.key + name + chunk.seen).digest(8 * len(chunk.open))
    words = [int.from_bytes(pads[at : at + 8], "little") for at in range(0, len(pads), 8)]
    closed = tuple((n + pad) % (1 << 64) for n, pad in zip(chunk.open, words, strict=True))
    kept = replace(chunk, key=bytes(len(chunk.key)), open=closed)
    return replace(state, chunk=kept).to_json(), chunk.key


class Bench:
    """A curator's device on a clock that stands still, with a real journal."""

    def __init__(
        self,
        state: Path,
        curator: str = FIXED,
        *,
        clock: StillClock | None = None,
        entropy: Callable[[int], bytes] | None = None,
        **changes: Any,
    ) -> None:
        self.state = state
        self.curator = curator
        self.changes = changes
        self.entropy = entropy
        self.clock = clock or StillClock()
        self.start()
        self.clock.pass_s(SLOT_S)  # a new series gives its first slot up

    def start(self, curator: str | None = None) -> None:
        self.curator = curator or self.curator
        self.config = curator_config(self.state, self.curator, **self.changes)
        self.journal = Journal(self.state)
        core = DeviceCore(self.config, self.journal, self.clock, self.entropy)
        place = running_path(self.state, ENDING, self.config.device.keep or "disk")
        self.curated = CuratorJournal(self.journal, place)
        self.device = Device(core, CuratorMode(core, self.curated))
        self.device.trust_clock()

    def restart(self, curator: str | None = None) -> None:
        self.journal.close()
        self.start(curator)

    def push(self, *values: int | None, slots: int = 1, online: bool = False) -> None:
        """For each value let slots pass, and close the last of them with it."""
        for value in values:
            self.clock.pass_s(slots * SLOT_S)
            self.close(value, online=online)

    def close(self, value: int | None, *, online: bool = False) -> None:
        values = (value,) * len(self.config.streams)
        self.device.close_slot(SlotValues(self.device.slot - 1, values), online=online)
        self.device.flush(online=online)

    @property
    def keys(self) -> list[Key]:
        return self.journal.keys()

    @property
    def frames(self) -> list[ReleasedFrame]:
        payloads = [self.device.core.journal.payload(key) for key in self.keys]
        return [decode_released(payload) for payload in payloads if payload]

    @property
    def made(self) -> list[ReleasedValue]:
        """Every released value that is kept, packed or waiting, in order."""
        packed = [
            ReleasedValue(f.key, slot, f.series, f.position + at, f.theta, value)
            for f in self.frames
            for at, (slot, value) in enumerate(zip(f.slots, f.values, strict=True))
        ]
        return sorted([*packed, *self.curated.released()])
