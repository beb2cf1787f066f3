"""What the figures compare: rules for θ, structures, and the systems made of them. All exact."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from edge_ldp.continual import NoisyMax, Quantile, Shape, best_pruning
from edge_ldp.continual.noise import MAX_SCALE
from edge_ldp.continual.threshold import MAX_CEILING, MAX_THETA, TUNING
from edge_ldp.device.draw import Draw
from studies.baselines.smooth_percentile import PAK_BETA, PAK_SHARE, SmoothPercentile

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from edge_ldp.continual.threshold import Optimiser

    Integers = NDArray[np.int64]
    Uniform = Callable[[int], int]

FANOUT = 16
RULES = ("NM-E", "S-P", "S-PAK", "quantile")
STRUCTURES = {
    "H2": (2, "tree", 0),
    "H16": (16, "tree", 0),
    "H16c": (16, "consistent", 0),
    "Ĥ16c": (16, "consistent", None),
    "Ĥ16c, s=1": (16, "consistent", 1),
    "Ĥ16c, s=2": (16, "consistent", 2),
    "Ĥ16c, s=3": (16, "consistent", 3),
}


@dataclass(frozen=True, slots=True)
class System:
    """A rule for θ and a structure, by their names; c of NM-E's score (a public length)."""

    rule: str
    structure: str
    tuning: int = TUNING


SYSTEMS = {
    "ToPS": System("NM-E", "Ĥ16c"),
    "ToPS, s=3": System("NM-E", "Ĥ16c, s=3"),
    "ToPS, c=1000": System("NM-E", "Ĥ16c", 1000),
    "quantile + Ĥ16c": System("quantile", "Ĥ16c"),
    "NM-E + H2": System("NM-E", "H2"),
    "PAK θ + Ĥ16c": System("S-PAK", "Ĥ16c"),
    "PAK": System("S-PAK", "H2"),
}


def structure(name: str, chunk: int, epsilon: Fraction) -> Shape:
    """Return the shape of a chunk; without a number of its own s is eq 7's."""
    fanout, kind, pruned = STRUCTURES[name]
    if pruned is None:
        pruned = best_pruning(fanout, chunk, epsilon)
    return Shape(kind, fanout, chunk, pruned)


def structure_fits(name: str, chunk: int) -> bool:
    """Say whether a chunk of this length can have the structure: blocks that divide it."""
    fanout, _, pruned = STRUCTURES[name]
    high = Shape("consistent", fanout, chunk).height
    return (pruned or 0) < high and chunk % fanout ** (pruned or 0) == 0


def counts(readings: Integers, ceiling: int) -> Counter[int]:
    """Return how many readings have each value, cut at the ceiling."""
    values, many = np.unique(np.minimum(readings, ceiling), return_counts=True)
    return Counter(dict(zip(values.tolist(), many.tolist(), strict=True)))


def optimiser(  # noqa: PLR0913 - a rule's parameters, all named
    rule: str,
    *,
    ceiling: int,
    chunk: int,
    epsilon: Fraction,
    stream_epsilon: Fraction,
    tuning: int = TUNING,
) -> Optimiser:
    """Return a rule for θ at budget `epsilon`, for a stream released at `stream_epsilon`.

    δ = 1/r² for S-P and S-PAK, as in [ToPS].
    """
    if rule == "NM-E":
        return noisy_max(ceiling, chunk, epsilon, stream_epsilon, tuning)
    if rule == "quantile":
        return Quantile(epsilon)
    delta = Fraction(1, chunk * chunk)
    if rule == "S-P":
        return SmoothPercentile(ceiling, epsilon, delta)
    return SmoothPercentile(ceiling, epsilon, delta, PAK_SHARE, PAK_BETA)


def noisy_max(
    ceiling: int, chunk: int, epsilon: Fraction, stream_epsilon: Fraction, tuning: int = TUNING
) -> NoisyMax:
    """Return NM-E; it looks at 2^20 candidates at most."""
    tree = Shape("consistent", FANOUT, chunk)
    return NoisyMax(min(ceiling, MAX_CEILING), tree, stream_epsilon, epsilon, tuning=tuning)


def capped(theta: int, shape: Shape, epsilon: Fraction) -> int:
    """Return θ, or the largest that integer noise can serve: PAK's may be far above the ceiling."""
    return max(1, min(theta, MAX_THETA, int(MAX_SCALE * epsilon / shape.levels)))


def draws(rng: np.random.Generator) -> Uniform:
    """Return the library's uniform integers from an experiment's generator."""
    return Draw(rng.bytes, 512).below
