"""A fleet's true readings and the exact law of what mechanisms make of them.

Reports are counted, never drawn one by one: the readings of a stratum have an exact law of codes,
and each code's count is Poisson about its mean, as a random number of independent reports gives
(given the readings themselves, counts vary a little less).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from edge_ldp import Hybrid, SquareWave
from edge_ldp.estimate.operator import operator_of
from edge_ldp.sums import CodeCounts, Epoch, Question, half_width, tail_sds
from edge_ldp.threshold.choice import SHARES, candidates

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edge_ldp import Mechanism
    from edge_ldp.evaluate.study import Values

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

INDEPENDENT, HOMES = "independent", "homes"
BUCKETS = 1024
HOURS = 24
LEAST_REPORTS = 400_000  # of a smaller set each home stands for as many as make so many
_SEED = 12_345


@dataclass(frozen=True, slots=True)
class Setting:
    """What devices are asked for: both mechanisms, and the share of surveys."""

    stream: Mechanism
    survey: Mechanism
    share: float


@dataclass(frozen=True, slots=True, eq=False)
class HomeCells:
    """Readings of some strata, as mechanisms see them: a row a stratum.

    `buckets`: how many lie in each bucket of the survey; `points`: how much weight each point of
    the stream mechanism's lattice has; `sums` and `n` of the readings themselves.
    """

    buckets: Floats
    points: Floats
    sums: Floats
    n: Floats

    def merged(self, of: Ints, strata: int) -> HomeCells:
        """Return strata of these: row i belongs to stratum of[i], below 0 to none."""
        which = (np.arange(strata)[:, None] == of).astype(np.float64)
        return HomeCells(
            which @ self.buckets, which @ self.points, which @ self.sums, which @ self.n
        )

    def part(self, first: int, end: int) -> HomeCells:
        """Return the strata first ≤ i < end."""
        kept = slice(first, end)
        return HomeCells(self.buckets[kept], self.points[kept], self.sums[kept], self.n[kept])

    def expected(self, setting: Setting, copies: float) -> tuple[Floats, Floats]:
        """Return the mean counts of stream and survey codes, strata × codes."""
        streams = copies * (1 - setting.share) * self.points @ transition_matrix(setting.stream)
        return streams, copies * setting.share * self.buckets @ transition_matrix(setting.survey)


@dataclass(frozen=True, slots=True, eq=False)
class StudiedHomes:
    """Readings, homes × slots in time; `copies`: how many homes each of them stands for."""

    readings: Ints
    low: int
    ceiling: int
    slots_per_day: int
    epsilon: float

    def of(self, readings: Ints) -> StudiedHomes:
        """Return other readings of the same stream."""
        return replace(self, readings=readings)

    @property
    def copies(self) -> float:
        """How many homes there are of each."""
        return max(1.0, LEAST_REPORTS / self.readings.size)

    @property
    def survey(self) -> SquareWave:
        """The survey over the whole range."""
        size = min(BUCKETS, self.ceiling - self.low + 1)
        return SquareWave(epsilon=str(self.epsilon), low=self.low, high=self.ceiling, size=size)

    def stream(self, theta: int) -> Hybrid:
        """Return the mechanism of sums up to θ."""
        return Hybrid(epsilon=str(self.epsilon), low=self.low, high=theta)

    def cells(self, of: Ints, theta: int) -> HomeCells:
        """Return the readings by strata: `of` says of which each is, broadcast to them."""
        ids = np.broadcast_to(of, self.readings.shape).ravel()
        strata = int(ids.max()) + 1
        values = self.readings.ravel()
        size = self.survey.size
        buckets = (values - self.low) * size // (self.ceiling - self.low + 1)
        points = self.stream(theta).size
        at = (np.minimum(values, theta) - self.low) * ((points - 1) / (theta - self.low))
        first = np.minimum(at.astype(np.int64), points - 2)
        cut = strata * points
        upper = np.bincount(ids * points + first + 1, at - first, cut)
        lower = np.bincount(ids * points + first, 1 - (at - first), cut)
        counted = np.bincount(ids * size + buckets, minlength=strata * size)
        return HomeCells(
            counted.reshape(strata, size).astype(np.float64),
            (lower + upper).reshape(strata, points).astype(np.float64),
            np.bincount(ids, values).astype(np.float64),
            np.bincount(ids).astype(np.float64),
        )

    @property
    def times(self) -> Ints:
        """Which hour of the run each slot is in; where slots are longer, the slot itself."""
        return np.arange(self.readings.shape[1]) * self.a_day // self.slots_per_day

    @property
    def a_day(self) -> int:
        """Times a day."""
        return min(HOURS, self.slots_per_day)

    def by_time(self, theta: int) -> HomeCells:
        """Return the readings of all homes, time by time."""
        return self.cells(self.times, theta)

    def by_home(self, theta: int) -> HomeCells:
        """Return the readings of all slots, home by home."""
        return self.cells(np.arange(len(self.readings))[:, None], theta)


@lru_cache(maxsize=4)
def fleet_of(values: Values, mode: str, epsilon: float) -> StudiedHomes:
    """Return the readings by homes, or the same drawn anew: in any order, of no home."""
    readings = values.values
    if mode == INDEPENDENT:
        readings = np.random.default_rng(_SEED).permutation(readings)
    shaped = readings.reshape(values.homes, -1)
    return StudiedHomes(shaped, values.low, values.ceiling, values.slots_per_day, epsilon)


@lru_cache(maxsize=16)
def transition_matrix(mechanism: Mechanism) -> Floats:
    """Return P(code | input): inputs × codes."""
    operator = operator_of(mechanism)
    return np.stack([operator.apply(row) for row in np.eye(operator.inputs)])


@lru_cache(maxsize=4)
def given_setting(fleet: StudiedHomes) -> Setting:
    """Return θ and the share of surveys that are best for hours of the day, knowing the readings.

    By the forecast, as the aggregator chooses, which has only its reports to go by.
    """
    values = fleet.readings.ravel().astype(np.float64)
    survey = fleet.survey
    thetas = candidates(fleet.low, fleet.ceiling)[:-1].tolist()
    masses = fleet.cells(np.array(0), fleet.ceiling).buckets[0] / values.size
    question = Question(values.size * fleet.copies, fleet.a_day)
    unit_variance = fleet.stream(fleet.ceiling).unit_variance
    found = []
    for theta, sd in zip(thetas, tail_sds(survey, thetas, masses).tolist(), strict=True):
        cut = np.minimum(values, theta)
        for share in SHARES:
            width = half_width(
                question,
                unit_variance=unit_variance,
                span=theta - fleet.low,
                share=share,
                tail_sd=sd,
                tail=float((values - cut).mean()),
                variance=float(cut.var()),
            )
            found.append((width.half, theta, share))
    _, theta, share = min(found)
    return Setting(fleet.stream(theta), survey, share)


def epoch(setting: Setting, streams: Ints, surveys: Ints) -> Epoch:
    """Return what came of a stratum under a setting."""
    counts = CodeCounts(setting.stream, streams), CodeCounts(setting.survey, surveys)
    return Epoch(*counts, setting.share)
