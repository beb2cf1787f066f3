"""The ways to a threshold that are compared, each from the same survey of the same values.

One survey of m values at ε: the published SW and SW-W, ours with the derived cost, percentiles.
Adaptive: the service's own rule (edge_ldp.threshold.choice) after each of five epochs of m reports,
the first all surveys. It goes by the interval of a mean that surveys correct: not by these sums.
Sources: [ToPS] §4.1, §5.5; docs/methods.md, Decided readings, Densities.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from edge_ldp import Hybrid
from edge_ldp.estimate import em, ems
from edge_ldp.sums import Question
from edge_ldp.threshold.choice import Aim, outlook
from edge_ldp.threshold.published import PRUNE_BELOW, PRUNE_RUN, choose_threshold, prune
from studies.evaluate.study import Task, rng
from studies.evaluate.topl.stream import HORIZON, STREAM_EPSILON, SURVEYED, reports, unit_variance

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edge_ldp import Mechanism
    from edge_ldp.estimate import Density
    from studies.evaluate.topl.stream import Stream

    Counts = NDArray[np.float64]

EPOCHS = 5
HYSTERESIS = 0.1  # as the service ships
EM_TOLERANCE = 1e-3  # SW-W as published; EM's own is 10⁻³·e^ε
SW, SW_W = "SW", "SW-W"
EM_DERIVED, EMS_DERIVED = "EM, derived cost", "EMS, derived cost"
PERCENTILES = {"95 %": 0.95, "99.5 %": 0.995}
ADAPTIVE = "adaptive, 5 epochs"
ONE_SURVEY = (SW, SW_W, EM_DERIVED, EMS_DERIVED, *PERCENTILES)
_REMEMBERED = 64


def theta(rule: str, stream: Stream, epsilon: float, seed: int) -> int:
    """Return the threshold that a rule comes to; equal arguments give equal surveys."""
    if rule == ADAPTIVE:
        return adaptive(stream, epsilon, seed)[-1]
    smooth = rule not in (SW_W, EM_DERIVED)
    found = surveyed(stream, epsilon, seed, smooth=smooth)
    if rule in PERCENTILES:
        return max(ceil(found.quantile(PERCENTILES[rule])), stream.low + 1)
    if rule == SW_W:
        found = prune_as_published(found)
    elif rule != SW:
        found = prune(found)
    is_published = rule in (SW, SW_W)
    aim = (found, unit_variance(), HORIZON)
    return choose_threshold(*aim, low=stream.low, published=is_published).theta


@lru_cache(maxsize=_REMEMBERED)
def surveyed(stream: Stream, epsilon: float, seed: int, *, smooth: bool) -> Density:
    """Return the density of the first m values by EMS, or by EM as the authors stopped it."""
    wave = stream.survey(epsilon)
    own = rng(Task("survey", stream.digest, "", epsilon, seed))
    counts = reports(wave, stream.part(0, SURVEYED), own)
    return ems(wave, counts) if smooth else em(wave, counts, tolerance=EM_TOLERANCE)


@lru_cache(maxsize=_REMEMBERED)
def adaptive(stream: Stream, epsilon: float, seed: int) -> tuple[int, ...]:
    """Return the service's θ after each of 5 epochs of m reports. Cost: some seconds."""
    own = rng(Task("adaptive", stream.digest, "", epsilon, seed))
    survey = stream.survey(epsilon)
    aim = Aim(stream.low, stream.ceiling, unit_variance(), survey, Question(float(HORIZON)))
    seen: dict[Mechanism, Counts] = {}
    found: list[int] = []
    theta, share = stream.ceiling, 1.0
    for epoch in range(EPOCHS):
        block = stream.part(epoch * SURVEYED, (epoch + 1) * SURVEYED)
        is_survey = own.random(len(block)) < share
        sums = Hybrid(epsilon=STREAM_EPSILON, low=stream.low, high=theta)
        for mechanism, values in ((survey, block[is_survey]), (sums, block[~is_survey])):
            if len(values):
                counted = reports(mechanism, values, own).astype(np.float64)
                seen[mechanism] = seen.get(mechanism, 0.0) + counted
        expected = outlook(aim, seen, own)
        if not epoch or not expected.keeps(theta, share, HYSTERESIS):
            theta, share = expected.best()[:2]
        found.append(theta)
    return tuple(found)


def prune_as_published(density: Density) -> Density:
    """Return the density without its tail, by the authors' code instead of the paper's text.

    Every estimate under 10⁻⁴ goes; from the first run of five empty ones on, looked for from the
    left, everything; what is missing is spread over the survivors, equally. Where the low end is
    empty everything would go: then nothing does. Source: [ToPS] §4.1, its code as decided in
    docs/methods.md.
    """
    mass = np.where(density.probabilities < PRUNE_BELOW, 0, density.probabilities)
    empty = np.concatenate([[0], np.cumsum(mass == 0)])
    starts = np.flatnonzero(empty[PRUNE_RUN:] - empty[:-PRUNE_RUN] == PRUNE_RUN)
    if len(starts):
        mass[starts[0] :] = 0
    kept = mass > 0
    if not kept.any():
        return density
    mass[kept] += (1 - mass.sum()) / kept.sum()
    return replace(density, probabilities=mass)
