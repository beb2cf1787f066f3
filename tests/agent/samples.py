"""Configurations, plans and a clock that stands still, for the agent's tests."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agent.claims.batches import BatchSeries, Numbering
from agent.config import AgentConfig, parse_config
from agent.meters.reading import UNITS
from agent.state.core import DeviceCore
from agent.state.device import Device
from agent.state.journal import Journal
from agent.state.local_mode import LocalMode
from edge_ldp.mechanisms import Hybrid, SquareWave
from edge_ldp.protocol.plan import Plan
from edge_ldp.protocol.signing import Keyring
from edge_ldp.service.clock import Clock

FLEET = "street"
DEVICE = "home-7"
CEILING_W = 4000
SLOT_S = 900
T0 = 1_800_000_000  # the start of a slot
SLOT = T0 // SLOT_S
EVERY_SLOT = (1, 1)
SERIES = 77
ANY_SHAPE = """theta_halvings = 12
survey_halvings = 12
sharpness = 1000000
days = 0
reports = 0
range_days = 0"""  # of tests that change plans as they like; [policy.plans] has tests of its own

_STREAM = """
[[streams]]
name = "{name}"
quantity = "{quantity}"
unit = "{unit}"
low = 0
ceiling = {ceiling}
slot_seconds = {slot_seconds}
"""


NONE: Mapping[str, str] = {}


def config_text(  # noqa: PLR0913 (what tests vary)
    state: Path,
    *,
    port: Path | str = "/dev/null",
    broker_port: int = 1883,
    quantities: tuple[str, ...] = ("power",),
    window: tuple[int, int] = EVERY_SLOT,
    slot_seconds: int = SLOT_S,
    ceiling: int = CEILING_W,
    broker: str = "",
    meter: str = "",
    device: str = "",
    policy: str = "",
    plans: str = ANY_SHAPE,
    sending: str = "jitter_s = 0",
    clock: str = 'trust = "assume"',
    host: str = "127.0.0.1",
    tables: str = "",
    several: str = "",
    stream: str = "",
    of: Mapping[str, str] = NONE,
) -> str:
    """Return an agent's TOML file; the texts are lines added to the tables of their name.

    `stream`: of each; `several`: tables of [[meters]] in place of [meter]; `of`: which of them a
    quantity is of.
    """
    reports, slots = window
    streams = "".join(
        _STREAM.format(
            name=quantity,
            quantity=quantity,
            unit=UNITS[quantity],
            ceiling=ceiling,
            slot_seconds=slot_seconds,
        )
        + (f'meter = "{of[quantity]}"\n' if quantity in of else "")
        + f"{stream}\n"
        for quantity in quantities
    )
    meters = several or f'[meter]\nport = "{port}"\n{meter}'
    return f"""
[device]
fleet = "{FLEET}"
id = "{DEVICE}"
state = "{state}"
{device}
[broker]
host = "{host}"
port = {broker_port}
{broker}
{meters}
[clock]
{clock}
[policy]
{policy}
[policy.window]
reports = {reports}
slots = {slots}
[policy.plans]
{plans}
[sending]
{sending}
{tables}
{streams}"""


def make_config(state: Path, **changes: Any) -> AgentConfig:
    return parse_config(config_text(state, **changes), "agent.toml")


def local_device(
    config: AgentConfig,
    journal: Journal,
    clock: Clock,
    entropy: Callable[[int], bytes] | None = None,
    keyring: Keyring | None = None,
) -> Device:
    core = DeviceCore(config, journal, clock, entropy, keyring)
    return Device(core, LocalMode(core))


def bomb(epoch: int, rows: int, codes: int) -> bytes:
    """Return a plan with a table of so many weights, in totals that are all the same."""
    weights = [[1 + (row + code) % codes for code in range(codes)] for row in range(rows)]
    table = {"weights": weights, "outputs": list(range(codes)), "scale": 1}
    sums = {"mechanism": "tuned", "low": 0, "high": 10 * (rows - 1), "table": table}
    plan = json.loads(make_plan(epoch).to_json()) | {"stream_mechanism": sums}
    return json.dumps(plan, separators=(",", ":")).encode()


def make_plan(  # noqa: PLR0913 (what tests vary)
    epoch: int = 1,
    *,
    stream: str = "power",
    stream_id: int = 1,
    epsilon: float | str = 1,
    theta: int = 1000,
    ceiling: int = CEILING_W,
    share: tuple[int, int] = (1, 2),
    slot_seconds: int = SLOT_S,
    fleet: str = FLEET,
    expires_s: int = T0 + 10**8,
) -> Plan:
    """Return a small plan that the configuration's policy allows at ε = 1."""
    return Plan(
        fleet=fleet,
        stream=stream,
        stream_id=stream_id,
        unit=UNITS[stream],
        epoch=epoch,
        issued_s=T0,
        expires_s=expires_s,
        slot_seconds=slot_seconds,
        low=0,
        ceiling=ceiling,
        share=share,
        stream_mechanism=Hybrid(epsilon=epsilon, low=0, high=theta, size=16),
        survey_mechanism=SquareWave(epsilon=epsilon, low=0, high=ceiling, size=32),
    )


def numbered(*streams: int, following: int = 1, series: int = SERIES) -> dict[int, Numbering]:
    """Return how streams' next batches are numbered, in a series that begins with them."""
    return dict.fromkeys(streams, Numbering(following, series, following - 1 if series else 0))


def begun(*streams: int, base: int = 0, series: int = SERIES) -> list[BatchSeries]:
    return [BatchSeries(stream, base, series, SLOT_S, base) for stream in streams]


class StillClock(Clock):
    """A clock that moves only when told to: `pass_s` for all of it, `step` for the wall alone."""

    def __init__(self, now_s: float = T0, since_boot_s: float = 5000.0) -> None:
        super().__init__()
        object.__setattr__(self, "times", [now_s, since_boot_s])  # the base class is frozen

    def now(self) -> float:
        return self._times()[0]

    def monotonic(self) -> float:
        return self._times()[1]

    def since_boot(self) -> float:
        return self._times()[1]

    def reboot(self, off_s: float = 0.0) -> None:
        """Start the machine again: the wall clock went on meanwhile."""
        self._times()[:] = [self._times()[0] + off_s, 10.0]

    def pass_s(self, seconds: float) -> None:
        for at in range(2):
            self._times()[at] += seconds

    def step(self, seconds: float) -> None:
        """Set the wall clock forward, or back."""
        self._times()[0] += seconds

    def _times(self) -> list[float]:
        times: list[float] = self.times  # type: ignore[attr-defined] # set past the frozen base
        return times
