"""The chains that draw densities: from laws known exactly, and from a posterior with spikes."""

import numpy as np
from numpy.typing import NDArray

from aggregator.adaptive.likelihood import reports_of
from aggregator.adaptive.posterior import infer
from aggregator.adaptive.walk import KEPT, walk
from aggregator.estimate.joint import Evidence, cells, view_of
from edge_ldp import SquareWave

Floats = NDArray[np.float64]
CHAINS = 2000


class Law:
    """Independent coordinates; ψ is its own mass. `steep`: a wall e^ψ against high ones."""

    def __init__(self, precision: Floats, steep: float = 0.0) -> None:
        self.precision, self.steep = precision[:, None], steep

    def masses(self, psi: Floats) -> Floats:
        return psi

    def both(self, psi: Floats, masses: Floats) -> tuple[Floats, Floats]:
        wall = self.steep * np.exp(masses)
        value = (-self.precision * psi**2 / 2 - wall).sum(axis=0)
        return value, -self.precision * psi - wall


def drawn(law: Law, precision: Floats, start: float = 0.0) -> Floats:
    rng = np.random.default_rng(0)
    return walk(law, np.full(len(precision), start), np.diag(precision**0.5), CHAINS, rng)


def test_draws_of_a_normal_law_have_its_mean_and_variance_from_a_start_in_one_point() -> None:
    precision = np.array([0.01, 1.0, 400.0])
    draws = drawn(Law(precision), precision)
    assert draws.shape == (3, KEPT * CHAINS)
    np.testing.assert_allclose(draws.mean(axis=1) * precision**0.5, 0, atol=0.1)
    np.testing.assert_allclose(draws.var(axis=1) * precision, 1, rtol=0.1)


def test_a_wall_that_the_fit_knows_nothing_of_is_kept_to() -> None:
    """Density exp(−ψ²/2 − 50·e^ψ), by quadrature; the fit's width is that without the wall."""
    x = np.linspace(-8, 3, 20_001)
    weight = np.exp(-(x**2) / 2 - 50 * np.exp(x))
    mean = (weight * x).sum() / weight.sum()
    sd = ((weight * (x - mean) ** 2).sum() / weight.sum()) ** 0.5
    draws = drawn(Law(np.ones(1), steep=50.0), np.ones(1), float(x[weight.argmax()]))
    assert abs(draws.mean() - mean) < 0.1 * sd
    assert abs(draws.std() / sd - 1) < 0.1


def test_steps_that_fall_off_the_edge_of_the_numbers_are_refused_in_silence() -> None:
    draws = drawn(Law(np.full(2, 1e-8), steep=1e300), np.full(2, 1e-8))
    assert np.isfinite(draws).all()


def test_no_draw_contradicts_the_reports_where_values_are_equal() -> None:
    """A third of the readings are 50, a third 230: chains of small steps stayed 300 nats below."""
    edges, law = cells(0, 1999), np.exp(-np.arange(2000) / 200)
    law *= 0.3 / law.sum()
    law[[50, 230, 1000]] += 0.35, 0.3, 0.05
    masses = np.add.reduceat(law, edges[:-1])
    wave = SquareWave(epsilon=2, low=0, high=1999, size=256)
    code = view_of(wave, edges).apply(masses)
    counts = np.random.default_rng(0).multinomial(300_000, code / code.sum())
    evidence = [Evidence(wave, counts.astype(float))]
    posterior = infer(evidence, edges, rng=np.random.default_rng(1))
    reports = reports_of(evidence, edges)
    expected = reports.expected @ np.column_stack([posterior.samples, masses])
    fit = reports.counts @ np.log(expected) - expected.sum(axis=0)
    assert fit[:-1].min() > fit[-1] - 40
