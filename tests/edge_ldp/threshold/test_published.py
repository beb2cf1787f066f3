"""Choosing θ: against the formula written out over every integer, and the authors' figures."""

from math import nan
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_ldp import Hybrid, SquareWave
from edge_ldp.device.errors import ParameterError
from edge_ldp.estimate import Density, em
from edge_ldp.estimate.density import bias, density, empty_runs, mean_square
from edge_ldp.threshold.published import Cost, choose_threshold, prune
from edge_ldp.vectorized import perturb_many

POS = Path(__file__).parents[4] / "shared" / "data" / "papers" / "bms_pos_lengths.npz"


@st.composite
def densities(draw: st.DrawFn) -> Density:
    size = draw(st.integers(2, 12))
    widths = draw(st.lists(st.integers(1, 6), min_size=size, max_size=size))
    masses = draw(st.lists(st.integers(0, 9), min_size=size, max_size=size).filter(any))
    low = draw(st.integers(-20, 5))
    return density(np.array(masses) / sum(masses), np.cumsum([low, *widths]))


def integers_of(x: Density) -> tuple[np.ndarray, np.ndarray]:
    widths = np.diff(x.edges).astype(int)
    values = np.arange(int(x.edges[0]), int(x.edges[-1]))
    return values, np.repeat(x.probabilities / widths, widths)


@given(densities(), st.integers(-40, 90))
def test_bias_and_mean_square_are_sums_over_the_integers(x: Density, theta: int) -> None:
    values, mass = integers_of(x)
    assert bias(x, [theta])[0] == pytest.approx(mass @ np.maximum(values - theta, 0), abs=1e-9)
    if theta >= values[0]:
        square = mass @ np.minimum(values, theta) ** 2
        assert mean_square(x, [theta])[0] == pytest.approx(square, abs=1e-8)


@given(
    x=densities(),
    v=st.floats(0.1, 20),
    r=st.integers(1, 10**6),
    share=st.floats(0.05, 1),
    published=st.booleans(),
)
def test_the_choice_is_the_cheapest_integer_by_the_formula_written_out(
    x: Density, v: float, r: int, share: float, *, published: bool
) -> None:
    values, mass = integers_of(x)
    low = int(values[0])

    def cost(theta: int) -> float:
        cut = float(mass @ np.maximum(values - theta, 0))
        missed = (1 - share) / share * float(mass @ np.minimum(values, theta) ** 2)
        if published:
            return r / 3 * (v * (theta - low) ** 2 / share + missed) + r * r / 24 * cut**2
        return r / 3 * (v * ((theta - low) / 2) ** 2 / share + missed) + r * r / 6 * cut**2

    chosen = choose_threshold(x, v, r, low=low, inclusion=share, published=published)
    np.testing.assert_allclose(
        chosen.costs, [cost(int(t)) for t in chosen.candidates], rtol=1e-9, atol=1e-9
    )
    cheapest = min(cost(int(t)) for t in values[1:])
    assert cost(chosen.theta) == pytest.approx(cheapest, rel=1e-9, abs=1e-9)
    assert chosen.bias == pytest.approx(mass @ np.maximum(values - chosen.theta, 0), abs=1e-9)
    assert low < chosen.theta <= values[-1]


def test_with_every_slot_a_stream_report_it_is_eq_8() -> None:
    x = density([0.5, 0.3, 0.2], [0, 1, 2, 3])
    one, two = Cost(4.0, 12).at(x, [1, 2])
    assert one == pytest.approx(12 / 3 * 4 * 1 / 4 + 144 / 6 * 0.2**2)
    assert two == pytest.approx(12 / 3 * 4 * 4 / 4)


def test_wide_buckets_are_refined_to_single_integers() -> None:
    x = density([0.9, 0.09, 0.01], [0, 2**20, 2**40, 2**47])
    chosen = choose_threshold(x, 4.0, 1000)
    around = Cost(4.0, 1000).at(x, chosen.theta + np.arange(-50, 51))
    assert around.min() == pytest.approx(chosen.costs.min(), rel=1e-12)
    assert len(chosen.candidates) < 5000
    assert (np.diff(chosen.candidates) > 0).all()


def test_a_longer_query_or_less_noise_raises_theta() -> None:
    x = density(np.exp(-np.arange(100) / 9) / np.exp(-np.arange(100) / 9).sum(), np.arange(101))
    by_horizon = [choose_threshold(x, 4.0, r).theta for r in (10, 1000, 100_000)]
    by_noise = [choose_threshold(x, v, 1000).theta for v in (40.0, 4.0, 0.4)]
    assert by_horizon == sorted(set(by_horizon))
    assert by_noise == sorted(set(by_noise))
    assert choose_threshold(x, 1e9, 1).theta == 1
    assert choose_threshold(x, 1e-9, 10**9).theta == 99


def test_pruning_cuts_above_the_mode_and_renormalises_by_a_factor() -> None:
    mass = np.array([0, 0, 0, 0, 0, 0, 6, 3, 1e-5, 0.5, *[1e-5] * 5, 0.2, 0.2])
    x = density(mass / mass.sum(), np.arange(18))
    cut = prune(x)
    assert cut.probabilities[10:].tolist() == [0] * 7
    np.testing.assert_allclose(
        cut.probabilities[:10], x.probabilities[:10] / x.probabilities[:10].sum(), rtol=1e-14
    )
    assert cut.edges is x.edges
    assert not cut.probabilities.flags.writeable
    np.testing.assert_allclose(prune(cut).probabilities, cut.probabilities, rtol=1e-15)


def test_without_a_run_of_five_nothing_is_pruned() -> None:
    x = density([0.6, 0, 0, 0, 0, 0.4, 0, 0, 0, 0], np.arange(11))
    assert prune(x) is x
    assert prune(x, run=4).probabilities.tolist() == [1] + [0] * 9
    assert prune(density([1.0], [0, 5])).probabilities.tolist() == [1]


def test_every_run_above_the_mode_starts_once() -> None:
    mass = np.array([0, 0, 0.5, 0, 0, 0.3, 0, 0, 0, 0.2, 0])
    assert empty_runs(mass, 0.1, 2).tolist() == [3, 6]
    assert empty_runs(mass, 0.1, 3).tolist() == [6]
    assert empty_runs(mass, 0.25, 1).tolist() == [3, 6]
    assert empty_runs(mass, 0.1, 4).tolist() == []


def test_AGG_11_densities_at_the_edges_have_a_threshold() -> None:
    for mass in ([1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]):
        chosen = choose_threshold(prune(density(mass, [0, 4, 8, 12])), 4.0, 100)
        assert 0 < chosen.theta <= 11
        assert np.isfinite(chosen.costs).all()
    assert choose_threshold(density([0.0, 1.0], [0, 1, 2]), 4.0, 1).theta == 1


def test_AGG_12_a_damaged_or_foreign_density_is_refused() -> None:
    with pytest.raises(ParameterError, match="finite"):
        Density(np.array([nan, 1.0]), np.array([0.0, 1.0, 2.0]))
    with pytest.raises(ParameterError, match="density"):
        choose_threshold(density([0.5, 0.5], [0, 1, 2], lattice=True), 4.0, 10)


@pytest.mark.skipif(not POS.exists(), reason="the POS data are not part of the repository")
def test_POS_gives_the_authors_thresholds() -> None:
    """SW-W finds θ = 43.1 ± 11.8 as published, 59.6 derived: docs/methods.md, Decided readings.

    Mean of 6 seeded surveys of 65,536; four standard errors either side: false alarm 1e-4.
    """
    with np.load(POS, allow_pickle=False) as archive:
        lengths = archive["length"].astype(np.int64)
    wave = SquareWave(epsilon=1, low=0, high=1638)
    v = Hybrid(epsilon=1, low=0, high=1638).unit_variance
    thetas = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        codes = perturb_many(wave, rng.choice(lengths, 65_536, replace=False), entropy=rng.bytes)
        x = em(wave, np.bincount(codes, minlength=wave.code_count), tolerance=1e-3)
        pruned = prune(x)
        published = choose_threshold(pruned, v, 2**20, published=True).theta
        thetas.append((published, choose_threshold(pruned, v, 2**20).theta))
    published_mean, derived_mean = np.mean(thetas, axis=0)
    assert published_mean == pytest.approx(43.1, abs=4 * 11.8 / 6**0.5)
    assert derived_mean == pytest.approx(59.6, abs=4 * 15 / 6**0.5)
