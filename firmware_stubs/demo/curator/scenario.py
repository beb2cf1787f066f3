"""What the demo of the curator mode plays: a year of one home, how fast, and its processes' files.

Four weeks come first: θ is chosen from them, and nothing of them is published.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edge_ldp.protocol.utc import utc
from firmware_stubs.data import load_year
from firmware_stubs.demo import tables
from firmware_stubs.demo.broker import BrokerChoice

FLEET = "demo"
HOME = "home-1"
STREAM = "power"
EPSILON = "0.1"
SLOT_S = 300
DAY_S = 86_400
DAY_SLOTS = DAY_S // SLOT_S
THETA_DAYS = 28
SHARE = "0.95"
CHUNK_DAYS = 7
CEILING_W = 43_470  # the rating of the connection: 3 × 63 A × 230 V
TAIL = 24  # telegrams after the last day: a port that goes away takes unread bytes with it
LEAD_S = 4.0  # real seconds for the processes to start before the first slot
METER_ID = "E0043007052870318"
# A register reading planted in the meter: neither it nor what it rises to looks like a slot number.
BASE_WH = 617_392_846
TERMS = f"""\
[curator]
epsilon = {EPSILON}
method = "quantile"
share = {SHARE}
readings = {THETA_DAYS * DAY_SLOTS}
fanout = {DAY_SLOTS}
pruned = 1
chunk = {CHUNK_DAYS * DAY_SLOTS}
"""
ASKS = f"""\
epsilon = 1
horizon = {DAY_SLOTS}
"""
MAX_AGE_DAYS = 366


@dataclass(frozen=True)
class Scenario:
    """One run: `days` published after four weeks for θ, played in `seconds` from `started_s` on."""

    days: int
    seconds: float
    started_s: float

    @cached_property
    def values(self) -> NDArray[np.int64]:
        """What the meter shows, W, one value each slot."""
        values, _ = load_year()
        return values[: self.slots].astype(np.int64)

    @cached_property
    def origin_s(self) -> int:
        """First second of the data; its own local time is taken for UTC."""
        return load_year()[1]

    @property
    def slots(self) -> int:
        """Slots that are played."""
        return (THETA_DAYS + self.days) * DAY_SLOTS

    @property
    def rate(self) -> float:
        """Seconds of the data that pass in a real one."""
        return self.slots * SLOT_S / self.seconds

    @property
    def first_published_s(self) -> int:
        """When the first day begins whose values are published."""
        return self.origin_s + THETA_DAYS * DAY_S

    @property
    def ends_s(self) -> int:
        """When the last day that counts is over."""
        return self.origin_s + self.slots * SLOT_S

    def day(self, real_s: float) -> float:
        """Return how many days of the data have passed at a real time."""
        passed = (real_s - self.started_s) * self.rate / DAY_S
        return min(max(passed, 0.0), float(THETA_DAYS + self.days))


def agent_files(place: Path, scenario: Scenario, broker: BrokerChoice) -> Path:
    """Write the agent's configuration into a directory of its own and return its path."""
    return tables.agent_file(
        place / HOME / "agent.toml",
        'mode = "curator"\n\n',
        f"max_age_days = {MAX_AGE_DAYS}\n",
        **_common(scenario, broker),
        name=HOME,
        link=meter_link(place),
        meter_id=METER_ID,
        terms=TERMS,
        tolerance_s=3660 * DAY_S,  # a machine that is slow reads late
        batch_s=DAY_S,
    )


def aggregator_files(place: Path, scenario: Scenario, broker: BrokerChoice) -> Path:
    """Write the aggregator's configuration and return its path."""
    facts = _common(scenario, broker)
    return tables.aggregator_file(
        place, ASKS, **facts, tolerance_s=DAY_S, window_s=MAX_AGE_DAYS * DAY_S
    )


def meter_link(place: Path) -> Path:
    """Return the stable name of the simulated meter's port."""
    return place / "meter.port"


def meter_command(place: Path, scenario: Scenario) -> list[str]:
    """Return the command of the simulated meter, which goes on for a while after the last day."""
    series = place / "year.npz"
    np.savez(series, power_w=np.append(scenario.values, [scenario.values[-1]] * TAIL))
    clock = tables.clock_flags(
        utc(scenario.origin_s), scenario.origin_s, scenario.started_s, scenario.rate
    )
    data = f"{series}:power_w"
    return [*tables.meter_words(meter_link(place), data, SLOT_S, METER_ID, BASE_WH), *clock]


def registers_wh(values: NDArray[np.int64]) -> list[int]:
    """Return the registers that the meter shows at each midnight, in all and for each tariff."""
    risen = np.concatenate([[0], np.cumsum(values * SLOT_S)])[::DAY_SLOTS]
    total = BASE_WH + risen // 3600
    return [int(n) for n in np.unique(np.concatenate([total, total // 2, total - total // 2]))]


def _common(scenario: Scenario, broker: BrokerChoice) -> dict[str, Any]:
    return {
        "fleet": FLEET,
        "stream": STREAM,
        "unit": "W",
        "low": 0,
        "ceiling": CEILING_W,
        "slot_s": SLOT_S,
        "receipt_s": DAY_S,
        "broker": tables.broker_table(broker),
        "clock": tables.clock_table(scenario.origin_s, scenario.started_s, scenario.rate),
    }
