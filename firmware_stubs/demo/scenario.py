"""What the demo plays: whose readings, how fast, and the numbers its processes share."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone

import numpy as np
from numpy.typing import NDArray

from firmware_stubs.data import HOUSEHOLDS, load_household, load_swiss

FLEET = "demo"
STREAM = "power"
UNIT = "W"
EPSILON = 1
LOW_W = 0
CEILING_W = 43_470  # the rating of the connection: 3 × 63 A × 230 V
BIN_W = 500  # of the distribution's picture
BINS_W = tuple((low, low + BIN_W) for low in range(LOW_W, CEILING_W + 1, BIN_W))
SLOT_S = 900
HOUR_S = 3600
DAY_S = 86_400
WEEK_S = 7 * DAY_S
DAY_SLOTS = DAY_S // SLOT_S
DEFAULT_WINDOW = (8, 97)  # reports in any consecutive slots: what ships
SUMS_EPSILON = 6  # of it, as what ships leaves for sums of a day
LEADS_S = (4.0, 16.0, 64.0)  # real seconds before the first slot; the next if all started late
UTC_OFFSET_S = HOUR_S
# The data's weeks are 44 to 50 of a year that was not published; 2024 is as good as any.
MONDAY = datetime(2024, 10, 28, tzinfo=timezone(timedelta(seconds=UTC_OFFSET_S)))
# Register readings planted in the two meters. Chosen so that neither they nor what they rise to
# looks like text, a code or a slot number in any binary encoding (a test checks that).
BASE_WH = (617_392_846, 629_184_530)


@dataclass(frozen=True, slots=True)
class Scenario:
    """One run: `homes` simulated homes and two with real agents, over `weeks`, in `seconds`.

    `start`: local midnight that the data is played from, at the real time `started_s`.
    """

    weeks: int
    homes: int
    seconds: float
    started_s: float
    start: datetime = MONDAY

    @property
    def days(self) -> int:
        """Days that are played."""
        return 7 * self.weeks

    @property
    def slots(self) -> int:
        """Slots of each home."""
        return self.days * DAY_SLOTS

    @property
    def origin_s(self) -> int:
        """First second of the data, UTC since 1970."""
        return int(self.start.timestamp())

    @property
    def rate(self) -> float:
        """Seconds of the data that pass in a real one."""
        return self.weeks * WEEK_S / self.seconds

    @property
    def devices(self) -> int:
        """Homes that report: simulated ones and the two with an agent of their own."""
        return self.homes + HOUSEHOLDS

    def now_s(self, real_s: float) -> float:
        """Return the simulated time, seconds UTC since 1970, at a real one."""
        return self.origin_s + (real_s - self.started_s) * self.rate

    def day(self, now_s: float) -> float:
        """Return how many simulated days have passed, 0 before the first and at most all."""
        return min(max((now_s - self.origin_s) / DAY_S, 0.0), float(self.days))

    def anew(self, weeks: int, rate: float, last_s: float, started_s: float) -> "Scenario":
        """Return the same homes' data from its begin, from the midnight after `last_s` on."""
        start = self.start + timedelta(days=int((last_s - self.origin_s) // DAY_S) + 1)
        return Scenario(weeks, self.homes, weeks * WEEK_S / rate, started_s, start)

    def once_more(self, real_s: float) -> "Scenario":
        """Return this run by the same clock, with the data from the next midnight on."""
        days = int((self.now_s(real_s) - self.origin_s) // DAY_S) + 1
        started_s = self.started_s + days * DAY_S / self.rate
        return replace(self, start=self.start + timedelta(days=days), started_s=started_s)

    def agent_values(self) -> NDArray[np.int64]:
        """Return what the agents' meters show, W, shape (2, slots)."""
        return np.array([load_household(which)[: self.slots] for which in range(HOUSEHOLDS)])

    def values(self) -> NDArray[np.int64]:
        """Return every home's readings, W, shape (devices, slots), as they are: faults kept."""
        return np.concatenate([self.swiss_values(), self.agent_values().astype(np.int64)])

    def swiss_values(self) -> NDArray[np.int64]:
        """Return the simulated homes' readings."""
        return load_swiss()[: self.homes, : self.slots].astype(np.int64)


def agent_name(which: int) -> str:
    """Return the device id of an agent, which also names its files."""
    return f"agent-{which + 1}"


def registers_wh(base_wh: int, powers_w: NDArray[np.int64]) -> list[int]:
    """Return the import registers that a meter shows over a series: both tariffs and their sum.

    The player's arithmetic: floor(W·s / 3600) above the base, halved over two tariffs.
    """
    risen = np.concatenate([[0], np.cumsum(np.maximum(powers_w, 0) * SLOT_S)])
    total = base_wh + risen // 3600
    shown = np.unique(np.concatenate([total, total // 2, total - total // 2]))
    return [int(register) for register in shown]
