"""The percentile that ToPS is compared with: a smooth bound as published, an exact law of noise."""

from collections import Counter
from fractions import Fraction
from math import exp

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_ldp import ParameterError
from edge_ldp.ratio import exp_fraction
from studies.baselines.smooth_percentile import (
    PAK_BETA,
    PAK_SHARE,
    SmoothPercentile,
    floor_laplace,
    smooth_bound,
)
from tests.edge_ldp.continual.paths import bounded_law, noise_from

F = Fraction


@given(st.lists(st.integers(0, 20), min_size=2, max_size=7), st.integers(0, 20), st.integers(1, 7))
def test_the_smooth_bound_is_smooth_and_bounds_the_local_sensitivity(
    readings: list[int], other: int, rank: int
) -> None:
    rank = min(rank, len(readings))
    for b in (F(1, 100), F(1)):
        grow = exp_fraction(b) * (1 + F(1, 2**60))
        here = smooth_bound(sorted(readings), rank, 20, b)
        for at in range(len(readings)):
            near = sorted([*readings[:at], other, *readings[at + 1 :]])
            there = smooth_bound(near, rank, 20, b)
            assert there <= grow * here
            assert here <= grow * there
            assert abs(near[rank - 1] - sorted(readings)[rank - 1]) <= here


def test_the_smooth_bound_is_the_published_maximum() -> None:
    """e^-bk·A_k with every t = 0..k+1, computed as written."""
    values, b, ceiling = [1, 1, 2, 5, 9, 30], F(1, 10), 100

    def v(i: int) -> int:
        return 0 if i < 1 else ceiling if i > 6 else values[i - 1]

    want = max(
        exp(-b * k) * max(v(5 + t) - v(5 + t - k - 1) for t in range(k + 2)) for k in range(8)
    )
    assert float(smooth_bound(values, 5, ceiling, b)) == pytest.approx(want)


def test_pak_lies_far_above_the_percentile() -> None:
    """As published: θ of thousands for readings below 100, at small ε, and never below 1."""
    counts = Counter(dict.fromkeys(range(100), 100))
    pak = SmoothPercentile(100, F(1, 100), F(1, 10**8), PAK_SHARE, PAK_BETA)
    found = [pak.choose(counts, noise_from(seed)) for seed in range(30)]
    assert sorted(found)[15] > 5000
    assert min(found) >= 1
    plain = SmoothPercentile(100, F(5), F(1, 10**8), F(1, 2))
    assert sorted(plain.choose(counts, noise_from(seed)) for seed in range(31))[15] in range(45, 56)


def test_constants_of_the_smooth_mechanisms_are_rounded_against_us() -> None:
    pak = SmoothPercentile(9, F(1, 10), F(1, 10**6), PAK_SHARE, PAK_BETA)
    assert pak.smoothing <= 0.1 / (2 * 13.815510557)
    assert float(pak.smoothing) == pytest.approx(0.1 / (2 * 13.815510557), rel=1e-3)
    assert 0 < pak.widening < 1
    with pytest.raises(ParameterError, match="epsilon"):
        SmoothPercentile(9, F(32), F(2, 5), beta=F(1, 10**9))


def test_a_constant_stream_needs_no_laplace_scale_of_zero() -> None:
    only_zero = SmoothPercentile(1, F(1), F(1, 1000), F(1, 2))
    assert only_zero.choose(Counter({0: 5}), noise_from(3)) >= 1


@pytest.mark.parametrize("shift", [F(0), F(1, 2), F(5), F(-7, 3)])
def test_the_floor_of_shifted_continuous_laplace_noise_has_its_law(shift: Fraction) -> None:
    def above(k: int) -> Fraction:  # P(shift + 2 Z >= k)
        z = (k - shift) / 2
        return exp_fraction(-z) / 2 if z >= 0 else 1 - exp_fraction(z) / 2

    base = shift.__floor__()
    chances = {k: above(k) - above(k + 1) for k in range(base - 2, base + 4)}
    law, cut = bounded_law(lambda draw: floor_laplace(F(2), shift, draw), F(1, 20_000))
    assert cut < F(2, 5)
    for result, chance in chances.items():
        assert law.get(result, 0) <= chance <= law.get(result, 0) + cut
