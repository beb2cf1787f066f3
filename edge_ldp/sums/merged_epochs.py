"""Epochs that are one: of the same mechanisms and share of surveys, added up and averaged."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from edge_ldp.arrays import Floats
from edge_ldp.mechanisms import Mechanism
from edge_ldp.sums.counted import Epoch, Weighed, WholeShare
from edge_ldp.sums.functionals import FunctionalEstimate, design_of, excess, largest_variance
from edge_ldp.vectorized import decode_table

Key = tuple[Mechanism, Mechanism, object]


class MergedEpoch(NamedTuple):
    """A `total` weight of reports, and the mean of their values truncated at `theta`.

    `heaviest`: about the largest weight; `within`: the same of the whole that it is a part of.
    Where all are surveys, all of the mean is tail: θ is at low.
    """

    survey: Mechanism
    surveys: Weighed
    total: float
    heaviest: float
    low: int
    theta: int
    mean: float
    variance: float
    within: "MergedEpoch | None"

    @property
    def coin(self) -> float:
        """The share of surveys that there were."""
        return self.surveys.total / self.total

    @property
    def most(self) -> int:
        """The largest value that its reports can stand for."""
        return max(self.theta, self.survey.high) if self.surveys.total else self.theta

    def sees(self, theta: int) -> bool:
        """Say whether there are surveys, of the whole at least, that tell what is above θ."""
        there = (self.within or self).surveys.total
        return there > 0 and self.survey.low <= theta < self.survey.high

    def excess(self, theta: int) -> FunctionalEstimate:
        """Return the unbiased mean of (v − θ)⁺."""
        weights, most, _ = _weights(self.survey, theta)
        if self.within is None:
            return self.surveys.mean(weights, most)
        mean = self.within.excess(theta).value
        share = WholeShare(self.within.coin * self.total, mean, self.heaviest)
        return self.surveys.mean(weights, most, share)

    @property
    def cell(self) -> tuple[float, int]:
        """How far E (v − θ)⁺ may be from h within a cell, and where the first such cell starts.

        Of a cell above θ it is half the cell's width, of the one around θ less.
        """
        return _weights(self.survey, self.theta)[2]


def merged_epochs(
    epochs: Iterable[Epoch], within: Mapping[Key, MergedEpoch] | None = None
) -> dict[Key, MergedEpoch]:
    """Return what came, epochs of the same mechanisms and share added up; `within`: the whole's."""
    found: dict[Key, tuple[Weighed, Weighed]] = {}
    for epoch in epochs:
        key = epoch.stream.mechanism, epoch.survey.mechanism, epoch.share
        several = epoch.stream.weighed(), epoch.survey.weighed()
        if key in found:
            several = several[0].plus(found[key][0]), several[1].plus(found[key][1])
        found[key] = several
    return {
        key: _merged(key, *several, (within or {}).get(key))
        for key, several in found.items()
        if several[0].total or several[1].total
    }


def _merged(key: Key, stream: Weighed, surveys: Weighed, within: MergedEpoch | None) -> MergedEpoch:
    mechanism, survey, _ = key
    total = stream.total + surveys.total
    heaviest = max(stream.heaviest, surveys.heaviest)
    if not stream.total if within is None else within.coin == 1:
        low, theta, mean, variance = survey.low, survey.low, float(survey.low), 0.0
    else:
        share = within and WholeShare((1 - within.coin) * total, within.mean, heaviest)
        found = stream.mean(*_decoding(mechanism), share)
        low, theta, mean, variance = mechanism.low, mechanism.high, found.value, found.se**2
    return MergedEpoch(survey, surveys, total, heaviest, low, theta, mean, variance, within)


@lru_cache(maxsize=64)
def _weights(survey: Mechanism, theta: int) -> tuple[Floats, float, tuple[float, int]]:
    """Return the weights of the excess over θ, their largest variance, and what `cell` says."""
    design = design_of(survey)
    edges = design.edges
    weights = design.weights(excess(edges, theta))
    first = int(np.searchsorted(edges, theta + 1, side="right")) - 1
    widest = int(np.diff(edges[first:]).max(initial=1))
    most = largest_variance(weights, design.law)
    return weights, most, ((widest - 1) / 2, min(theta, int(edges[first])))


@lru_cache(maxsize=256)
def _decoding(mechanism: Mechanism) -> tuple[Floats, float]:
    """Return what each code decodes to, and the largest variance of a decoded report, unit²."""
    span = mechanism.high - mechanism.low
    return decode_table(mechanism), mechanism.worst_variance + span * span / 4
