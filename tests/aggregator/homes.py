"""Real homes reporting for seven weeks, as estimators see them: counts of codes by hour of day."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aggregator.estimate import ems
from aggregator.sums import CodeCounts, MeanEstimate, estimate_mean, estimate_tail
from aggregator.threshold import choose_threshold, prune
from edge_ldp import Hybrid, SquareWave
from edge_ldp.vectorized import perturb_many
from firmware_stubs.data import load_swiss

CEILING_W = 43_470
HOURS = 24
WEEK = 7
SURVEY = SquareWave(epsilon=1, low=0, high=CEILING_W)

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Setting:
    """How the fleet is run: survey share, horizon of θ, and what counts as no tail."""

    share: float
    horizon: int
    prune_below: float


def power_w() -> Ints:
    """Mean power of 400 homes × 49 days × 24 hours × 4 quarter hours, clamped to the range."""
    clamped = np.clip(load_swiss().astype(np.int64), 0, CEILING_W)
    return clamped.reshape(-1, 49, HOURS, 4)


def run(values: Ints, setting: Setting, seed: int) -> tuple[list[Ints], list[tuple[Hybrid, Ints]]]:
    """Return survey counts by hour, and per week the mechanism and its counts by hour.

    The first day is all surveys; θ is chosen from all surveys so far at the start of each week.
    """
    rng = np.random.default_rng(seed)
    surveys = [_count(SURVEY, values[:, 0, hour], rng) for hour in range(HOURS)]
    streams: list[tuple[Hybrid, Ints]] = []
    for day in range(1, values.shape[1]):
        if (day - 1) % WEEK == 0:
            mechanism = _mechanism(np.sum(surveys, axis=0), setting)
            streams.append((mechanism, np.zeros((HOURS, mechanism.code_count), np.int64)))
        mechanism, counts = streams[-1]
        for hour in range(HOURS):
            of_hour = values[:, day, hour].ravel()
            surveyed = rng.random(len(of_hour)) < setting.share
            surveys[hour] += _count(SURVEY, of_hour[surveyed], rng)
            counts[hour] += _count(mechanism, of_hour[~surveyed], rng)
    return surveys, streams


def estimates(values: Ints, setting: Setting, seed: int) -> list[MeanEstimate]:
    """Return the estimate of each hour of the day, and last of the whole run."""
    surveys, streams = run(values, setting, seed)
    everything = [CodeCounts(mechanism, counts.sum(axis=0)) for mechanism, counts in streams]
    pooled = [CodeCounts(SURVEY, counts) for counts in surveys]
    tail = estimate_tail(pooled, everything, rng=np.random.default_rng(seed))
    hours = [[CodeCounts(m, counts[hour]) for m, counts in streams] for hour in range(HOURS)]
    return [estimate_mean(part, tail) for part in (*hours, everything)]


def truths(values: Ints) -> list[float]:
    """Return the true mean of each hour of the day over the whole run, and of everything."""
    return [*values.mean(axis=(0, 1, 3)).tolist(), float(values.mean())]


def _mechanism(surveys: Ints, setting: Setting) -> Hybrid:
    found = prune(ems(SURVEY, surveys), below=setting.prune_below)
    unit_variance = Hybrid(epsilon=1, low=0, high=CEILING_W).unit_variance
    best = choose_threshold(found, unit_variance, setting.horizon, inclusion=1 - setting.share)
    return Hybrid(epsilon=1, low=0, high=best.theta)


def _count(mechanism: Hybrid | SquareWave, values: Ints, rng: np.random.Generator) -> Ints:
    codes = perturb_many(mechanism, values.ravel(), entropy=rng.bytes)
    return np.bincount(codes, minlength=mechanism.code_count).astype(np.int64)
