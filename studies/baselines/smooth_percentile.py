"""θ from a percentile with smooth sensitivity: S-P and S-PAK, (ε, δ)-DP.

A sorted stream's P-th value plus Laplace noise times a bound S(V) that changes by e^b at most
between neighbours. Everything that depends on readings is an integer: weights w_0 = 2^64 and
w_k ≥ e^-b·w_(k-1) make S = max w_k·A_k/2^64 smooth exactly, and the noise is drawn as the floor of
the continuous one. Source: [ToPS] Appendices A, B (Nissim et al. 2007; Perrier et al. 2019), every
t = 0..k+1.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, exp, floor, log
from typing import TypeAlias

from edge_ldp.continual.exact import bernoulli_exp, geometric
from edge_ldp.continual.threshold import MAX_THETA
from edge_ldp.device.errors import ParameterError
from edge_ldp.ratio import exp_bounds

Uniform: TypeAlias = Callable[[int], int]
Counts: TypeAlias = Mapping[int, int]

P_SHARE = Fraction(995, 1000)
PAK_SHARE = Fraction(99575, 100000)
PAK_BETA = Fraction(6, 1000)  # 0.3 · 0.02
_BITS = 64
_GRID = 1 << 20  # public constants are rationals of this denominator


@dataclass(frozen=True, slots=True)
class SmoothPercentile:
    """The percentile `share` of m readings below `ceiling`, with noise: (ε, δ)-DP.

    beta None is S-P; a rational is S-PAK: θ is moved up so that it is below the percentile with
    probability about beta. Raises ParameterError when ε is so large for PAK that its κ has no
    value.
    """

    ceiling: int
    epsilon: Fraction
    delta: Fraction
    share: Fraction = P_SHARE
    beta: Fraction | None = None

    def __post_init__(self) -> None:
        if self.widening <= 0:
            raise ParameterError("epsilon", "small enough for beta and delta: κ > 0")

    @property
    def smoothing(self) -> Fraction:
        """The bound's rate of change, b ≤ ε/(-2 ln δ), rounded down."""
        return Fraction(
            floor(self.epsilon * _GRID * _GRID / ceil(-2 * log(self.delta) * _GRID)), _GRID
        )

    @property
    def upward(self) -> Fraction:
        """G^-1(1 - β) of the noise, 0 for S-P."""
        return Fraction(0 if self.beta is None else ceil(-log(2 * self.beta) * _GRID), _GRID)

    @property
    def widening(self) -> Fraction:
        """1/κ = 1 - (e^b - 1)·G^-1(1 - β)/a, a = ε/2, rounded down; 1 for S-P."""
        step = Fraction(ceil((exp(self.smoothing) - 1) * _GRID * _GRID), _GRID * _GRID)
        return 1 - 2 * step * self.upward / self.epsilon

    def choose(self, counts: Counts, draw: Uniform) -> int:
        """Return θ ≥ 1, which may exceed the ceiling, at most 2^40."""
        values = [value for value in sorted(counts) for _ in range(counts[value])]
        rank = max(1, ceil(self.share * len(values)))
        scale = smooth_bound(values, rank, self.ceiling, self.smoothing)
        scale /= self.widening * self.epsilon / 2
        theta = floor_laplace(scale, values[rank - 1] + scale * self.upward, draw)
        return min(max(1, theta), MAX_THETA)


def smooth_bound(values: Sequence[int], rank: int, ceiling: int, smoothing: Fraction) -> Fraction:
    """Return S(V) = max over k of w_k·A_k/2^64: at least the local sensitivity, e^b-smooth.

    A_k = max over t in 0..k+1 of V(P+t) - V(P+t-k-1); V(i) is 0 for i < 1 and the ceiling for
    i > m. Stops when not even A_k = ceiling could be more. Cost: O(m) times the number of values
    above the percentile.
    """
    low, _ = exp_bounds(smoothing, 2 * _BITS)
    down = (1 << 4 * _BITS) // low + 1  # e^-b·2^128, from above
    count = len(values)
    rises = [0]  # t = 0, and where a larger value begins: other t have a nearer lower end
    rises += [at - rank for at in range(rank + 1, count + 1) if values[at - 1] > values[at - 2]]
    if ceiling > values[-1]:
        rises.append(count + 1 - rank)
    tops = [values[rank + t - 1] if rank + t <= count else ceiling for t in rises]
    padded = [0] * (count + 2) + list(values)  # V(i) stands at i + count + 1
    weight = 1 << _BITS
    best = k = 0
    while weight * ceiling > best and k <= count + 1:
        base = rank - k + count  # V(P - k - 1)
        reach = max(
            top - padded[base + t] for t, top in zip(rises, tops, strict=True) if t <= k + 1
        )
        best = max(best, weight * reach)
        weight = -(-weight * down >> 2 * _BITS)
        k += 1
    return Fraction(best, 1 << _BITS)


def floor_laplace(scale: Fraction, shift: Fraction, draw: Uniform) -> int:
    """Return the floor of shift + scale·Z, Z continuous Laplace of scale 1, exactly.

    Z ≥ 0: with f = shift - floor, the floor passes 0 iff an exponential passes (1-f)/scale, and
    from there on it is geometric. Z < 0 is the same seen from above, as ties have probability 0.
    """
    base = shift.numerator // shift.denominator
    below = shift - base
    if draw(2):
        up = 1 - below
        return base + (1 + geometric(scale, draw) if bernoulli_exp(up / scale, draw) else 0)
    if below and not bernoulli_exp(below / scale, draw):
        return base
    return base - 1 - geometric(scale, draw)
