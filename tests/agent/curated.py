"""Configurations and a bench for curators: a device that can be stopped, killed and looked at."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from agent.claims.batches import Key
from agent.claims.slots import SlotValues
from agent.config import AgentConfig, parse_config
from agent.curator.journal import CuratorJournal
from agent.curator.mode import curator_device
from agent.curator.outbox import ReleasedValue
from agent.state.journal import Journal
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
    """Return the configuration that `curator_text` writes."""
    return parse_config(curator_text(state, curator, **changes), "agent.toml")


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
        self.curated = CuratorJournal(self.journal)
        self.device = curator_device(self.config, self.journal, self.clock, self.entropy)
        self.device.trust_clock()

    def restart(self, curator: str | None = None) -> None:
        self.journal.close()
        self.start(curator)

    def push(self, value: int | None, *, slots: int = 1, online: bool = False) -> None:
        """Let slots pass and close the last of them with a value."""
        self.clock.pass_s(slots * SLOT_S)
        values = (value,) * len(self.config.streams)
        self.device.close_slot(SlotValues(self.device.slot - 1, values), online=online)
        self.device.flush(online=online)

    @property
    def keys(self) -> list[Key]:
        """The batches kept, oldest first."""
        return self.journal.keys()

    @property
    def frames(self) -> list[ReleasedFrame]:
        """Every batch kept, oldest first."""
        payloads = [self.device.payload(key) for key in self.keys]
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
