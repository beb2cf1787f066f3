"""From counts to θ and the next survey, on few cells: the slow suite has the rest."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import nnls

from aggregator.adaptive import Aim, Decision, Setting, State, first_survey, observe, worth_it
from aggregator.adaptive.drift import _fitted, surprise
from aggregator.adaptive.likelihood import Reports
from aggregator.errors import NoReportsError
from aggregator.estimate.joint import Evidence, cells, view_of
from edge_ldp import Mechanism, SquareWave

Floats = NDArray[np.float64]
AIM = Aim(unit_variance=4.289, horizon=2**16)
SETTING = Setting(low=0, ceiling=255, epsilon=2, aim=AIM, size=64)


def exponential(mean: float) -> Floats:
    law = np.exp(-np.arange(256) / mean)
    return np.asarray(law / law.sum())


def reports(mechanism: Mechanism, law: Floats, seed: int) -> Evidence:
    codes = view_of(mechanism, np.arange(257)).apply(law)
    rng = np.random.default_rng(seed)
    return Evidence(mechanism, rng.multinomial(65_536, codes / codes.sum()))


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def over_the_best(law: Floats, theta: int) -> float:
    thetas = np.arange(1, 256)
    bias = np.maximum(np.arange(256) - thetas[:, None], 0) @ law
    costs = thetas**2 + 2 * AIM.horizon / AIM.unit_variance * bias**2
    return float(costs[theta - 1] / costs.min())


def after(laws: list[Floats]) -> tuple[State, list[Decision]]:
    state, mechanism, decisions = State(), first_survey(SETTING), list[Decision]()
    for epoch, law in enumerate(laws):
        rng = np.random.default_rng(epoch)
        state, decision = observe(SETTING, state, [reports(mechanism, law, epoch)], rng=rng)
        mechanism = SETTING.survey(decision.survey.low, decision.survey.high)
        decisions.append(decision)
    return state, decisions


def test_two_surveys_are_enough_here_and_theta_grows_past_the_survey_after_a_shift() -> None:
    """The third survey ends below the new θ: only its top bucket, "at or above", tells."""
    old, new = exponential(6), exponential(30)
    state, (first, second, third, last) = after([old, old, new, new])
    assert over_the_best(old, second.theta) < 1.15
    assert (first.shifted, second.shifted, third.shifted, last.shifted) == (0, 0, 1, 0)
    assert state.forgotten == 1
    assert over_the_best(new, last.theta) < 1.3
    assert second.survey.high < last.theta
    low, middle, high = last.spread
    assert low <= middle <= high
    assert worth_it(SETTING, state, last.theta, second.theta) > 0.5


def test_a_watched_stream_is_not_surveyed_twice_in_a_row_above_its_values() -> None:
    """Between 32 and 128 a shift down is not seen: so the survey after it starts at low."""
    law, watched = exponential(12), replace(SETTING, watch=True)
    state, _ = observe(SETTING, State(), [reports(first_survey(SETTING), law, 0)], rng=rng(0))
    tail = [reports(SETTING.survey(32, 128), law, 1)]
    _, plain = observe(SETTING, state, tail, rng=rng(1))
    _, careful = observe(watched, state, tail, rng=rng(1))
    assert careful.survey.low == 0 < plain.survey.low
    assert careful.theta == plain.theta
    both = [*tail, reports(first_survey(SETTING), law, 2)]
    assert (
        observe(SETTING, state, both, rng=rng(1))[1] == observe(watched, state, both, rng=rng(1))[1]
    )


def test_nothing_reported_is_said() -> None:
    with pytest.raises(NoReportsError):
        observe(SETTING, State(), [], rng=np.random.default_rng(0))


def test_nothing_is_lost_where_one_law_explains_all_exactly() -> None:
    """Expected counts, no noise; nine of ten values are 0, so EM stayed unfinished: a shift."""
    values = np.arange(1, 100_000)
    rest = np.exp(-(np.log(values / 5000) ** 2) / 2) / values  # log-normal
    law, edges = np.append(0.92, 0.08 * rest / rest.sum()), cells(0, 99_999)

    def exact(low: int, high: int) -> Evidence:
        mechanism = SquareWave(epsilon=0.2, low=low, high=high, size=256)
        seen = view_of(mechanism, np.arange(100_001)).apply(law)
        return Evidence(mechanism, 65_536 * seen)

    old = [exact(0, 99_999), exact(512, 1024)]
    assert surprise(old, [exact(0, 1024)], edges) > 0.999
    assert surprise(old, [exact(0, 8192)], edges) > 0.999


def test_a_fit_is_the_likeliest() -> None:
    """Karush, Kuhn and Tucker: no mass would gain by growing, none above 0 by shrinking."""
    rng = np.random.default_rng(0)
    expected = 1000 * rng.dirichlet(np.ones(40), size=12).T
    law = expected @ rng.dirichlet(np.ones(12)) / 1000
    found = Reports(expected, rng.multinomial(1000, law).astype(float))
    mass = _fitted(found)
    slope = expected.T @ (found.counts / (expected @ mass)) - expected.sum(axis=0)
    assert slope.max() < 1
    assert np.abs(slope * mass).max() < 1
    assert (mass == 0).any()
    assert mass.sum() == pytest.approx(1)


def test_least_squares_that_give_up_are_no_alarm(monkeypatch: pytest.MonkeyPatch) -> None:
    edges, old = cells(0, 255), [reports(first_survey(SETTING), exponential(12), 0)]
    new = [reports(SETTING.survey(0, 64), exponential(24), 0)]
    assert surprise(old, new, edges) < 1e-9

    def hasty(matrix: Floats, right: Floats, maxiter: int) -> object:
        assert maxiter > 1
        return nnls(matrix, right, maxiter=1)

    monkeypatch.setattr("aggregator.adaptive.drift.nnls", hasty)
    assert surprise(old, new, edges) == 1


def test_the_drift_alarm_keeps_its_stated_rate_where_nothing_changes() -> None:
    """60 looks at 1 % each: 4 alarms or more would come once in 300 such tests."""
    law, edges = exponential(12), cells(0, 255)
    old = [reports(first_survey(SETTING), law, 1000)]
    looks = [surprise(old, [reports(SETTING.survey(0, 64), law, k)], edges) for k in range(60)]
    assert sum(chance < 0.01 for chance in looks) < 4
    assert surprise(old, [reports(SETTING.survey(0, 64), exponential(24), 0)], edges) < 1e-9
