"""Fleets with the laws of real and made-up homes, whose reports are drawn from exact code laws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from edge_ldp import SquareWave, Tuned
from edge_ldp.sums import (
    CodeCounts,
    Epoch,
    Fleet,
    Forecast,
    Law,
    Means,
    design_of,
    estimate_means,
    law_in_time,
    law_of,
)
from firmware_stubs.data import load_household, load_swiss

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from edge_ldp import Mechanism
    from edge_ldp.device.channel import Channel

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

CEILING = 43_470
SLOTS = 96


@dataclass(frozen=True, eq=False)
class Homes:
    """Readings, homes × slots, W; every home of a fleet draws from those of its time."""

    name: str
    readings: Ints
    in_time: bool = False

    @property
    def law(self) -> Law:
        if self.in_time:
            return law_in_time(self.readings, 0, CEILING, SLOTS)
        return law_of(self.readings.ravel(), 0, CEILING)

    @property
    def days(self) -> int:
        return int(self.readings.shape[1]) // SLOTS

    def parts(self, horizon: str) -> list[Ints]:
        """Return the readings of each stratum of a horizon."""
        slot = np.arange(self.readings.shape[1])
        of = {
            "whole": slot * 0,
            "week": slot // (7 * SLOTS),
            "day": slot // SLOTS,
            "hour-of-day": slot % SLOTS // 4,
        }[horizon]
        return [self.readings[:, of == at].ravel() for at in range(of.max() + 1)]


def swiss() -> Homes:
    return Homes("400 Swiss homes", np.clip(load_swiss().astype(np.int64), 0, CEILING))


def french() -> Homes:
    winters = np.stack([load_household(which) for which in (0, 1)]).astype(np.int64)
    return Homes("one French home, two winters", np.clip(winters, 0, CEILING))


def pareto() -> Homes:
    """A heavy tail, P(v > x) ~ x^−1.6 up to the ceiling, that swells with hours and days."""
    rng = np.random.default_rng(5)
    hour = np.arange(49 * SLOTS) // 4 % 24
    days = np.exp(0.1 * rng.normal(size=49)).repeat(SLOTS)
    scale = 700 * days * np.exp(0.3 * np.sin(2 * np.pi * hour / 24))
    drawn = scale * rng.random((60, len(scale))) ** (-1 / 1.6)
    return Homes("Pareto, exponent 1.6", np.minimum(drawn, CEILING).astype(np.int64))


def heaters() -> Homes:
    """Storage heaters: in two homes of three on from 22 to 6, beside what all use."""
    rng = np.random.default_rng(5)
    hour = np.arange(28 * SLOTS) // 4 % 24
    on = (rng.random((60, 1)) < 2 / 3) & ((hour >= 22) | (hour < 6))
    return Homes("storage heaters", np.where(on, 5800, 200), in_time=True)


def simulated(homes: Homes, found: Forecast, horizon: str, runs: int) -> Iterator[Means]:
    """Yield what `estimate_means` says of so many seeded runs with the forecast's θ and share."""
    (row,) = (row for row in found.rows if row.horizon == horizon)
    fleet: Fleet = found.fleet
    survey = SquareWave(epsilon=fleet.epsilon, low=0, high=CEILING, size=1024)
    stream = Tuned(epsilon=fleet.epsilon, low=0, high=found.theta)
    laws = [(_law(stream, part), _surveyed(survey, part)) for part in homes.parts(horizon)]
    rng = np.random.default_rng(21)
    for _ in range(runs):
        yield estimate_means(
            [[_epoch(stream, survey, each, row.reports, found.share, rng)] for each in laws],
            ceiling=CEILING,
        )


def _epoch(  # noqa: PLR0913, PLR0917 (what a stratum is drawn from)
    stream: Mechanism,
    survey: Mechanism,
    laws: tuple[Floats, Floats],
    reports: float,
    share: float,
    rng: np.random.Generator,
) -> Epoch:
    surveys = rng.binomial(round(reports), share)
    return Epoch(
        CodeCounts(stream, rng.multinomial(round(reports) - surveys, laws[0])),
        CodeCounts(survey, rng.multinomial(surveys, laws[1])),
    )


def _surveyed(survey: Mechanism, values: Ints) -> Floats:
    """Return the law of the survey's codes over all values."""
    design = design_of(survey)
    masses = np.histogram(values, design.edges)[0] / len(values)
    return _whole(design.law @ masses)


def _law(stream: Mechanism, values: Ints) -> Floats:
    """Return the law of the stream's codes: through the lattice's rounding and the table."""
    found = []
    for coin, _, channel in stream.branches:
        at = np.clip(values - stream.low, 0, stream.high - stream.low) * (channel.d - 1)
        index, rest = np.divmod(at, stream.high - stream.low)
        up = rest / (stream.high - stream.low)
        knots = np.bincount(index, 1 - up, channel.d + 1) + np.bincount(
            index + 1, up, channel.d + 1
        )
        found.append(float(coin) * _weights(channel) @ knots[:-1] / len(values))
    return _whole(np.concatenate(found))


def _weights(channel: Channel) -> Floats:
    rows = [[channel.weight(i, j) for i in range(channel.d)] for j in range(channel.code_count)]
    weights: Floats = np.array(rows, np.float64) / channel.total
    return weights


def _whole(law: Floats) -> Floats:
    whole: Floats = law / law.sum()
    return whole
