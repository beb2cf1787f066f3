"""Bad input to what comes after an estimate: thresholds, the adaptive rule, metrics.

A typed error or a finite answer; filterwarnings = error makes a division by zero fail them too.
"""

from math import inf, isfinite, nan

import numpy as np
import pytest

from edge_ldp.device.errors import ParameterError
from edge_ldp.errors import CountsError, NoReportsError
from edge_ldp.estimate import Density, em, ems
from edge_ldp.estimate.density import bias, density, mean_square
from edge_ldp.sums import Question
from edge_ldp.threshold.choice import Aim, outlook
from edge_ldp.threshold.published import choose_threshold, prune
from studies.evaluate import Masses
from studies.evaluate.metrics import errors_between
from tests.edge_ldp.estimate.test_bad_input import BAD, WAVE, rng

AIM = Aim(0, 999, 4.3, WAVE, Question(1000, 24))


@pytest.mark.parametrize(
    ("mass", "edges"),
    [
        ([nan, 1.0], [0.0, 1.0, 2.0]),
        ([inf, 0.0], [0.0, 1.0, 2.0]),
        ([1.5, -0.5], [0.0, 1.0, 2.0]),
        ([0.0, 0.0], [0.0, 1.0, 2.0]),
        ([0.5, 0.5], [0.0, nan, 2.0]),
        ([0.5, 0.5], [0.0, 1.0]),
        ([], [0.0]),
    ],
)
def test_AGG_12_there_is_no_density_with_a_nan_to_plan_from(
    mass: list[float], edges: list[float]
) -> None:
    """Nor one built past `density()`, nor one replaced: the value refuses itself."""
    with pytest.raises(ParameterError):
        density(mass, edges)
    with pytest.raises(ParameterError):
        Density(np.array(mass), np.array(edges))


def test_AGG_12_metrics_have_no_nan_to_hide() -> None:
    with pytest.raises(ParameterError, match="finite"):
        Masses(np.array([0.0, 1.0]), np.array([nan]))
    with pytest.raises(ParameterError, match="finite"):
        errors_between([0.0], [nan], [2])
    found = ems(WAVE, np.ones(WAVE.code_count))
    with pytest.raises(ParameterError, match="at"):
        found.cdf([nan])


@pytest.mark.parametrize("n", [1, 65_536, 2**53])
@pytest.mark.parametrize("at", [0, WAVE.code_count // 2, -1])
def test_whatever_was_counted_a_plan_gets_a_finite_threshold(at: int, n: int) -> None:
    counts = np.zeros(WAVE.code_count)
    counts[at] = n
    for estimator in (em, ems):
        found = prune(estimator(WAVE, counts))
        for horizon in (1, 10**6, 2**60):
            best = choose_threshold(found, 4.3, horizon)
            assert 0 < best.theta <= 999
            assert isfinite(best.bias)
            assert np.isfinite(best.costs).all()
            for part in (bias(found, best.candidates), mean_square(found, best.candidates)):
                assert np.isfinite(part).all()


@pytest.mark.parametrize("n", [64, 65_536, 2**53])
@pytest.mark.parametrize("at", [0, -1])
def test_whatever_was_counted_the_adaptive_rule_chooses_finitely(at: int, n: int) -> None:
    counts = np.zeros(WAVE.code_count)
    counts[at] = n
    found = outlook(AIM, {WAVE: counts}, rng())
    best = found.best()
    assert 0 < best.theta <= 999
    assert 0 < best.share < 1
    assert 0 < best.least <= best.half < inf
    for part in (found.halves, found.missed, found.tails, found.variances):
        assert np.isfinite(part).all()
        assert (part >= 0).all()


@pytest.mark.parametrize("case", [case for case in BAD if case != "empty"])
def test_AGG_12_the_adaptive_rule_refuses_counts_that_are_none(case: str) -> None:
    counts = BAD[case](WAVE.code_count)
    with pytest.raises(CountsError):
        outlook(AIM, {WAVE: counts}, rng())  # type: ignore[dict-item] # what it must refuse


def test_AGG_11_without_any_report_the_adaptive_rule_has_no_choice() -> None:
    with pytest.raises(NoReportsError):
        outlook(AIM, {}, rng())
    with pytest.raises(NoReportsError):
        outlook(AIM, {WAVE: np.zeros(WAVE.code_count)}, rng())
