"""What the posterior is used for beside θ: the mechanism, and the truncation correction."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from aggregator.adaptive import Aim, Setting, State
from aggregator.adaptive.correction import corrected
from aggregator.adaptive.mechanism import aim_of, choose_mechanism, tuned_for
from aggregator.adaptive.posterior import Posterior
from aggregator.adaptive.regret import costs_on
from aggregator.adaptive.shape import hypotheses
from aggregator.errors import ArgumentError
from aggregator.estimate.joint import cells
from edge_ldp import Hybrid, Mechanism, Tuned

Floats = NDArray[np.float64]
HORIZON = 2**20
HYBRID = Hybrid(epsilon=1, low=0, high=1024)
TABLE = Tuned(epsilon=1, low=0, high=1024)
EDGES = cells(0, 2000)


def exponential(mean: float = 30) -> Floats:
    law = -np.diff(np.exp(-EDGES / mean))
    return np.asarray(law / law.sum())


def knowing(*densities: Floats) -> State:
    """A state whose posterior holds just these densities."""
    samples = np.stack(densities, axis=1)
    return State((), Posterior(EDGES, samples, samples[:, 0], hypotheses(0.5)[0]))


@pytest.mark.parametrize("mechanism", [HYBRID, TABLE], ids=["hybrid", "table"])
def test_a_profile_prices_a_mechanism_by_its_exact_variances(mechanism: Mechanism) -> None:
    """For θ at the mechanism's own range: r/3 · Σ f·Var[report of min(value, θ)] + bias."""
    law = np.exp(-np.arange(2001) / 300)
    law /= law.sum()
    edges = np.arange(2002)
    costs = costs_on(edges, aim_of(mechanism, HORIZON, 0.5))
    at = int(np.searchsorted(costs.thetas, 1024))
    kept = np.minimum(np.arange(2001), 1024)
    several = [mechanism.variance(int(v)) for v in range(1025)]
    noise = HORIZON / 3 * float(law @ np.array(several)[kept]) / 0.5
    assert costs.thetas[at] == 1024
    assert (costs.noise * (costs.spread @ law))[at] == pytest.approx(noise, rel=5e-3)
    missed = HORIZON / 3 * float(law @ kept**2.0)
    assert costs.scatter(law)[at] == pytest.approx(noise + missed, rel=5e-3)


def test_a_flat_profile_is_the_plain_aim() -> None:
    aim = Aim(4.0, HORIZON)
    plain, flat = costs_on(EDGES, aim), costs_on(EDGES, replace(aim, profile=(4.0, 4.0)))
    two = np.stack([exponential(), exponential(90)], axis=1)
    np.testing.assert_allclose(flat.of(two), plain.of(two))
    np.testing.assert_allclose(flat.of(two[:, 0]), plain.of(two[:, 0]))


def test_the_cheaper_mechanism_is_chosen_and_theta_with_it() -> None:
    aims = {"hybrid": aim_of(HYBRID, HORIZON), "table": aim_of(TABLE, HORIZON)}
    state = knowing(exponential(), exponential(33))
    chosen = choose_mechanism(state, aims)
    assert chosen.name == "table"
    assert 0 <= chosen.regret < 0.1
    alone = choose_mechanism(state, {"hybrid": aims["hybrid"]})
    assert alone.theta <= chosen.theta  # less noise allows a higher one
    dear = replace(aims["table"], profile=tuple(3 * v for v in aims["table"].profile))
    assert choose_mechanism(state, {**aims, "table": dear}).name == "hybrid"


@pytest.mark.slow  # a linear programme
def test_a_table_made_for_the_density_beats_the_one_for_the_worst_case() -> None:
    state = knowing(exponential())
    own = tuned_for(state, 512, 1)
    assert (own.low, own.high) == (0, 512)
    aims = {
        "worst case": aim_of(Tuned(epsilon=1, low=0, high=512), HORIZON),
        "own": aim_of(own, HORIZON),
    }
    assert choose_mechanism(state, aims).name == "own"


def test_a_known_tail_is_added_back_and_theta_falls() -> None:
    """With the density known exactly only noise is left, so the smallest θ is best."""
    setting = Setting(0, 2000, 1, Aim(4.289, HORIZON))
    certain = corrected(setting, knowing(exponential(), exponential()))
    assert (certain.theta, certain.sd) == (1, 0)
    assert certain.cost < certain.plain / 100
    doubtful = corrected(setting, knowing(exponential(28), exponential(32)))
    assert doubtful.theta > certain.theta
    assert certain.cost < doubtful.cost < doubtful.plain
    wild = corrected(setting, knowing(exponential(10), exponential(100)))
    assert wild.cost <= wild.plain


def test_before_any_reports_and_without_candidates_there_is_nothing_to_choose() -> None:
    setting = Setting(0, 2000, 1, Aim(4.289, HORIZON))
    for refused in (
        lambda: corrected(setting, State()),
        lambda: choose_mechanism(State(), {"hybrid": aim_of(HYBRID, HORIZON)}),
        lambda: choose_mechanism(knowing(exponential()), {}),
        lambda: tuned_for(State(), 512, 1),
        lambda: aim_of(Hybrid(epsilon=1, low=0, high=100), HORIZON),
        lambda: Aim(4.0, HORIZON, 1.0, (4.0,)),
        lambda: Aim(4.0, HORIZON, 1.0, (4.0, float("nan"))),
    ):
        with pytest.raises(ArgumentError):
            refused()
