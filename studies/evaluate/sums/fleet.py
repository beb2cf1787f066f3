"""A fleet's true readings, and reports of them as devices make them.

Which slots report is drawn as a device's ledger does it: each home has its own random cells of the
window's period, for ever; of those slots the ones report in which it is there. A coin makes a
survey of each or a stream report, the library's own kernel its code.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import ceil
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from edge_ldp import Hybrid, SquareWave
from edge_ldp.protocol.ledger import Window, scheduled
from edge_ldp.protocol.schedule import design_effect
from edge_ldp.sums import SHIPPED, CodeCounts, Epoch, Question, half_width, tail_sds
from edge_ldp.sums.forecast import SHARES
from edge_ldp.threshold.choice import candidates
from edge_ldp.vectorized import perturb_many

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edge_ldp import Mechanism
    from studies.evaluate.study import Values

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]

BUCKETS = 1024
HOURS = 24
DAY_S = 86_400
LEAST_REPORTS = 100_000  # of a smaller set each home stands for as many as make so many
_SEED = 12_345
_SEVERAL = 30  # homes, of which some join late or leave
_MISSING, _LATE, _GONE, _OUT = 0.01, 0.2, 0.2, 0.5
_OUTAGE_DAYS = 3


class Setting(NamedTuple):
    """What devices are asked for: both mechanisms, and the share of surveys."""

    stream: Mechanism
    survey: Mechanism
    share: float


class ReportingSlots(NamedTuple):
    """Slots that report, in no order: each one's home (of all simulated), slot and reading."""

    home: Ints
    slot: Ints
    value: Ints

    def part(self, which: Bools) -> ReportingSlots:
        """Return some of them."""
        return ReportingSlots(self.home[which], self.slot[which], self.value[which])


class DrawnCodes(NamedTuple):
    """What reports became: `survey` says of each which mechanism drew its `code`."""

    survey: Bools
    code: Ints


@dataclass(frozen=True, eq=False)
class StudiedHomes:
    """Readings, homes × slots in time, and in which of them a home was there.

    `copies`: how many homes there are of each; by default so many that reports are LEAST_REPORTS.
    """

    readings: Ints
    present: Bools
    low: int
    ceiling: int
    slots_per_day: int
    epsilon: float
    copies: int = 0

    def __post_init__(self) -> None:
        """Work out the copies."""
        if not self.copies:
            each = float(self.present.sum()) * float(self.window.chance)
            object.__setattr__(self, "copies", ceil(LEAST_REPORTS / each))

    @property
    def window(self) -> Window:
        """The shipped window's ε, split into reports of this fleet's."""
        reports = max(1, round(SHIPPED.reports / self.epsilon))
        return scheduled(reports, SHIPPED.slots, 1, DAY_S // self.slots_per_day)

    @property
    def reports(self) -> float:
        """How many reports a run has on average."""
        return float(self.present.sum()) * self.copies * float(self.window.chance)

    @cached_property
    def counted(self) -> tuple[Floats, Floats]:
        """Which slots homes were there in, as 1, and what they read there: homes × slots."""
        there = self.present.astype(np.float64)
        return there, there * self.readings

    @cached_property
    def every(self) -> tuple[Floats, Floats]:
        """How many of these homes were there in each slot, and what they read in all."""
        there, read = (part.sum(axis=0) for part in self.counted)
        return there, read

    @property
    def schedule(self) -> float:
        """The design effect of the window on any readings, as intervals count it."""
        slot_s, reports = DAY_S // self.slots_per_day, self.window.reports
        return float(design_effect(self.window.period, slot_s, reports=reports))

    @property
    def effect(self) -> float:
        """The design effect of the window on the mean of these readings, exactly.

        The variance of a run's mean over all cells that homes may draw, before any mechanism, over
        that of slots that report independently, each as often.
        """
        there, read = self.counted
        homes, slots = there.shape
        off = read - there * (read.sum() / there.sum())
        period, reports = self.window.period, self.window.reports
        turns = np.zeros((homes, -(-slots // period) * period))
        turns[:, :slots] = off
        cells = turns.reshape(homes, -1, period).sum(axis=1)
        drawn = (cells - cells.mean(axis=1, keepdims=True)) ** 2
        return float(drawn.sum() / (off**2).sum()) * (period - reports) / (period - 1)

    @property
    def survey(self) -> SquareWave:
        """The survey over the whole range."""
        size = min(BUCKETS, self.ceiling - self.low + 1)
        return SquareWave(epsilon=str(self.epsilon), low=self.low, high=self.ceiling, size=size)

    def stream(self, theta: int) -> Hybrid:
        """Return the mechanism of sums up to θ."""
        return Hybrid(epsilon=str(self.epsilon), low=self.low, high=theta)

    @property
    def a_day(self) -> int:
        """Times a day."""
        return min(HOURS, self.slots_per_day)

    @property
    def times(self) -> Ints:
        """Which hour of the run each slot is in; where slots are longer, the slot itself."""
        return np.arange(self.readings.shape[1]) * self.a_day // self.slots_per_day

    def drawn(self, rng: np.random.Generator) -> ReportingSlots:
        """Return the slots that report in one run: all homes' ledgers anew."""
        window, (homes, slots) = self.window, self.readings.shape
        some = rng.random((homes * self.copies, window.period))
        cells = some.argpartition(window.reports - 1, axis=1)[:, : window.reports]
        rounds = np.arange(0, slots + window.period, window.period)
        slot = (cells[:, :, None] + rounds).reshape(len(some), -1)
        home, at = (slot < slots).nonzero()
        slot = slot[home, at]
        there = self.present[home % homes, slot]
        home, slot = home[there], slot[there]
        return ReportingSlots(home, slot, self.readings[home % homes, slot])


@lru_cache(maxsize=4)
def fleet_of(values: Values, epsilon: float) -> StudiedHomes:
    """Return the readings by homes and in time, of homes that join, leave and miss slots."""
    readings = values.values.reshape(values.homes, -1)
    there = presence(readings.shape, values.slots_per_day, np.random.default_rng(_SEED))
    return StudiedHomes(readings, there, values.low, values.ceiling, values.slots_per_day, epsilon)


def presence(shape: tuple[int, int], a_day: int, rng: np.random.Generator) -> Bools:
    """Return when homes are there: meters miss single slots, links break for days.

    Of several homes a fifth joins within the first half, and a fifth leaves within the second.
    """
    homes, slots = shape
    at = np.arange(slots)
    first = rng.integers(0, slots, (homes, 1))
    length = rng.integers(1, _OUTAGE_DAYS * a_day, (homes, 1), endpoint=True)
    out = (rng.random((homes, 1)) < _OUT) & (at >= first) & (at < first + length)
    found = (rng.random(shape) >= _MISSING) & ~out
    if homes >= _SEVERAL:
        half = slots // 2
        joins = np.where(rng.random((homes, 1)) < _LATE, rng.integers(0, half, (homes, 1)), 0)
        leaves = np.where(
            rng.random((homes, 1)) < _GONE, rng.integers(half, slots, (homes, 1)), slots
        )
        found &= (at >= joins) & (at < leaves)
    return found


def coded(setting: Setting, values: Ints, rng: np.random.Generator) -> DrawnCodes:
    """Return the reports of values: the plan's coin, and the mechanism's kernel."""
    survey = rng.random(len(values)) < setting.share
    code = np.empty(len(values), np.int64)
    for mechanism, mine in ((setting.survey, survey), (setting.stream, ~survey)):
        code[mine] = perturb_many(mechanism, values[mine], entropy=rng.bytes)
    return DrawnCodes(survey, code)


@lru_cache(maxsize=4)
def given_setting(fleet: StudiedHomes) -> Setting:
    """Return θ and the share of surveys that are best for hours of the day, knowing the readings.

    By the forecast, as the aggregator chooses, which has only its reports to go by.
    """
    theta, share = min(_all_halves(fleet).items(), key=itemgetter(1))[0]
    return Setting(fleet.stream(theta), fleet.survey, share)


def cost(fleet: StudiedHomes, setting: Setting) -> float:
    """Return the squared half-width by hours of the day that is forecast, over the least of all."""
    halves = _all_halves(fleet)
    return (halves[setting.stream.high, setting.share] / min(halves.values())) ** 2


@lru_cache(maxsize=4)
def _all_halves(fleet: StudiedHomes) -> dict[tuple[int, float], float]:
    """Return the half-width that is forecast for each θ and share, knowing the readings."""
    values = fleet.readings[fleet.present].astype(np.float64)
    survey = fleet.survey
    thetas = candidates(fleet.low, fleet.ceiling).tolist()
    buckets = (values.astype(np.int64) - fleet.low) * survey.size
    buckets //= fleet.ceiling - fleet.low + 1
    masses = np.bincount(buckets, minlength=survey.size) / values.size
    question = Question(fleet.reports, fleet.a_day)
    unit_variance = fleet.stream(fleet.ceiling).unit_variance
    found = {}
    for theta, sd in zip(thetas, tail_sds(survey, thetas, masses).tolist(), strict=True):
        cut = np.minimum(values, theta)
        tail, variance = float((values - cut).mean()), float(cut.var())
        for share in SHARES:
            width = half_width(
                question,
                unit_variance=unit_variance,
                span=theta - fleet.low,
                share=share,
                tail_sd=sd,
                tail=tail,
                variance=variance,
            )
            found[theta, share] = width.half
    return found


def epochs(setting: Setting, codes: DrawnCodes, of: Ints, strata: int) -> list[Epoch]:
    """Return what came of each stratum: `of` says in which each report is, below 0 in none."""
    found = []
    for mechanism, drew in ((setting.stream, ~codes.survey), (setting.survey, codes.survey)):
        mine = drew & (of >= 0)
        size = mechanism.code_count
        counts = np.bincount(of[mine] * size + codes.code[mine], minlength=strata * size)
        found.append([CodeCounts(mechanism, row) for row in counts.reshape(strata, size)])
    return [Epoch(stream, survey, setting.share) for stream, survey in zip(*found, strict=True)]
