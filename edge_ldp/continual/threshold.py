"""Choosing θ from m readings under pure ε: noisy max (NM-E) and an unbounded quantile.

Readings come as counts: how many of the m had each value, above `ceiling` counted as `ceiling`.
Neighbours are streams that differ in one reading, m is public. Sources: [ToPS] eqs 5, 6 as read by
docs/methods.md, Decided readings; McKenna and Sheldon 2020 (permute-and-flip); Durfee 2023 (arXiv
2305.01177).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, isqrt
from typing import Protocol, TypeAlias

from edge_ldp import checks
from edge_ldp.continual.exact import bernoulli_exp, discrete_laplace, geometric
from edge_ldp.continual.shape import Shape
from edge_ldp.device.errors import ParameterError
from edge_ldp.entropy import Uniform
from edge_ldp.ratio import exact_epsilon

Flip: TypeAlias = Callable[[Fraction], bool]
Counts: TypeAlias = Mapping[int, int]

GRID_BITS = 10  # scores and Laplace noise of the published variant are multiples of 2^-10
TUNING = 60  # [ToPS] c: what a reading above θ exceeds it by, in the unit of its baskets
MAX_CEILING = 1 << 20  # candidates that the noisy max looks at
MAX_THETA = 1 << 40
NOISES = ("exponential", "laplace")


class Optimiser(Protocol):
    """Chooses θ from counts of readings, at a cost of (epsilon, delta) for each of them."""

    @property
    def epsilon(self) -> Fraction:
        """What one choice costs each of its readings; 0 when it looks at none."""

    @property
    def delta(self) -> Fraction:
        """The same for δ; 0 is pure ε."""

    def choose(self, counts: Counts, draw: Uniform) -> int:
        """Return θ ≥ 1."""


@checks.taking(theta=checks.integer_in(1, MAX_THETA))
@dataclass(frozen=True, slots=True)
class Fixed:
    """A θ that is public knowledge: costs nothing, needs no readings."""

    theta: int
    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)

    def choose(self, counts: Counts, draw: Uniform) -> int:  # noqa: ARG002 - the protocol's
        """Return it."""
        return self.theta


@checks.taking(
    ceiling=checks.integer_in(1, MAX_CEILING),
    shape=checks.a("edge_ldp.continual.shape.Shape"),
    noise=checks.word(*NOISES),
    tuning=checks.integer_in(1, MAX_THETA),
)
@dataclass(frozen=True, slots=True)
class NoisyMax:
    """Scores q_θ = -(3mθ/(c·r·ε))·√(2(b-1)h³) - m_θ for θ in 1..ceiling, m_θ readings above θ.

    `stream_epsilon` stands in the score, as do fan-out and chunk; c = `tuning`. The first term is
    public, the second moves by 1 at most and for all θ the same way, so noise of scale 1/ε does.
    noise "exponential": the best of scores plus exponential noise, drawn as permute-and-flip, which
    has that law exactly; "laplace": discrete Laplace noise on the grid 2^-10, the least of equals
    wins ([ToPS] as published).
    """

    ceiling: int
    shape: Shape
    stream_epsilon: Fraction
    epsilon: Fraction
    noise: str = "exponential"
    tuning: int = TUNING
    delta: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_epsilon(self.stream_epsilon)

    def scores(self, counts: Counts) -> list[int]:
        """Return 2^10·q_θ of θ = 1, 2, …, ceiling; the public term is rounded down in size."""
        total = sum(counts.values())
        above = total - counts.get(0, 0)
        found = []
        for theta in range(1, self.ceiling + 1):
            above -= counts.get(theta, 0)
            found.append(-self._cost(total, theta) - (above << GRID_BITS))
        return found

    def choose(self, counts: Counts, draw: Uniform) -> int:
        """Return θ under ε-DP."""
        scores = self.scores(counts)
        if self.noise == "exponential":
            steepness = self.epsilon / (1 << GRID_BITS)
            return 1 + permute_and_flip(scores, steepness, draw, lambda x: bernoulli_exp(x, draw))
        scale = (1 << GRID_BITS) / self.epsilon
        noisy = [score + discrete_laplace(scale, draw) for score in scores]
        return 1 + max(range(len(noisy)), key=noisy.__getitem__)

    def _cost(self, total: int, theta: int) -> int:
        shape, epsilon = self.shape, self.stream_epsilon
        square = 2 * (shape.fanout - 1) * shape.height**3 << 2 * GRID_BITS
        above = 3 * total * theta * epsilon.denominator
        below = self.tuning * shape.chunk * epsilon.numerator
        return isqrt(square * above * above // (below * below))


@checks.taking(
    share=checks.kept(checks.inner_chance), growth=checks.kept(checks.finite(1, inner=True))
)
@dataclass(frozen=True, slots=True)
class Quantile:
    """An integer near the share-quantile under ε-DP, without an upper bound on readings.

    Candidates 0, then each ⌈growth·(candidate + 1)⌉ - 1 or one more; stops at the first with
    count(readings ≤ candidate) + noise ≥ share·m + noise, both exponential, of scales 2/ε. For a
    neighbour all counts move the same way, by 1 at most: moving both noises by 1 covers it, so
    pure ε = ε/2 + ε/2. At 2^40 it stops without asking.
    """

    epsilon: Fraction
    share: Fraction = Fraction(995, 1000)
    growth: Fraction = Fraction(21, 20)
    delta: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)

    def choose(self, counts: Counts, draw: Uniform) -> int:
        """Return θ ≥ 1."""
        scale = 2 / self.epsilon
        target = ceil(self.share * sum(counts.values())) + geometric(scale, draw)
        rising = sorted(counts)
        at = below = candidate = 0
        while candidate < MAX_THETA:
            while at < len(rising) and rising[at] <= candidate:
                below += counts[rising[at]]
                at += 1
            if below + geometric(scale, draw) >= target:
                break
            candidate = max(candidate + 1, ceil(self.growth * (candidate + 1)) - 1)
        return min(max(1, candidate), MAX_THETA)


def check_epsilon(epsilon: Fraction) -> None:
    """Raise ParameterError unless ε is a rational in 2^-16..32, so that nothing has to round it."""
    if not isinstance(epsilon, Fraction):
        raise ParameterError("epsilon", "a Fraction (exact_epsilon makes one)")
    exact_epsilon(epsilon)


def permute_and_flip(scores: list[int], steepness: Fraction, draw: Uniform, flip: Flip) -> int:
    """Return an index: candidates in random order, each taken with e^(steepness·(score - best)).

    ε-DP when scores move by 1/steepness·ε at most, all the same way. Source: McKenna and Sheldon
    2020; the same law as the largest score plus exponential noise (Ding et al. 2021).
    """
    best = max(scores)
    order = list(range(len(scores)))
    left = len(order)
    while True:  # the best candidate is always taken
        at = draw(left)
        index = order[at]
        if flip(steepness * (best - scores[index])):
            return index
        left -= 1
        order[at] = order[left]
