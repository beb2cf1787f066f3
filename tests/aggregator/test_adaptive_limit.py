"""The bound of what information allows."""

import numpy as np
import pytest
from numpy.typing import NDArray

from aggregator.adaptive.limit import _hats, _information, excess
from aggregator.adaptive.regret import Aim, costs_on
from aggregator.estimate.joint import cells, view_of
from edge_ldp import SquareWave

Floats = NDArray[np.float64]
EDGES = cells(0, 499)
AIM = Aim(4.289, 2**20)
MASSES: Floats = -np.diff(np.exp(-EDGES / 30))
MASSES /= MASSES.sum()


def wave(high: int, epsilon: float = 1) -> SquareWave:
    return SquareWave(epsilon=epsilon, low=0, high=high, size=64)


def bound(surveys: list[tuple[SquareWave, float]], doubt: float = 1.0) -> float:
    return excess(MASSES, EDGES, AIM, surveys, rng=np.random.default_rng(0), doubt=doubt)


def test_more_reports_more_epsilon_and_less_doubt_lower_the_bound() -> None:
    asked = [(wave(499), 65_536.0), (wave(128), 65_536.0)]
    some = bound(asked)
    assert 0 < some < bound([]) < 10
    assert bound([(m, 100 * n) for m, n in asked]) < some / 3
    assert bound(asked, doubt=0.3) < some
    weak = [(wave(m.high, 0.2), n) for m, n in asked]
    assert some < bound(weak) <= bound([])


def test_without_surveys_it_is_the_best_blind_choice() -> None:
    """Monte Carlo over the same densities, written out."""
    rng, hats, costs = np.random.default_rng(1), _hats(len(MASSES)), costs_on(EDGES, AIM)
    others = MASSES[:, None] * np.exp(hats @ rng.normal(0, 0.5, (hats.shape[1], 20_000)))
    prices = costs.of(others / others.sum(axis=0))
    blind = (prices / prices.min(axis=0) - 1).mean(axis=1).min()
    assert bound([], doubt=0.5) == pytest.approx(blind, rel=0.1)


def test_the_information_is_the_curvature_of_the_expected_log_likelihood() -> None:
    mechanism, step = wave(499), 1e-3
    hats = _hats(len(MASSES))
    inwards = hats - MASSES @ hats
    told = inwards.T @ _information(MASSES, EDGES, [(mechanism, 1000.0)]) @ inwards
    view = view_of(mechanism, EDGES)

    def law(height: float) -> Floats:
        other = MASSES * np.exp(hats[:, 3] * height)
        return view.apply(other / other.sum())

    curve = 2 * 1000 * float(law(0) @ np.log(law(0) / law(step))) / step**2
    assert told[3, 3] == pytest.approx(curve, rel=2e-2)
