from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from edge_ldp import Hybrid, Mechanism, Piecewise, SquareWave, StochasticRounding
from edge_ldp.errors import CountsError, NoReportsError
from edge_ldp.estimate import em
from edge_ldp.estimate.density import edges_of
from edge_ldp.estimate.joint import Evidence, cells, joint, view_of

HIGH = 77
EDGES = cells(0, HIGH, per_octave=3)
VIEWED = [
    SquareWave(epsilon=1, low=0, high=77, size=16),
    SquareWave(epsilon=1, low=3, high=50, size=16),
    SquareWave(epsilon=1, low=30, high=40, size=11),
    StochasticRounding(epsilon=1, low=0, high=9),
    Piecewise(epsilon=1, low=5, high=60, size=8),
    Hybrid(epsilon=1, low=2, high=29, size=16),
    Hybrid(epsilon=1, low=2, high=10, size=16),  # several knots in one unit
    Hybrid(epsilon=1, low=-20, high=200, size=16),  # beyond the cells
]
Floats = NDArray[np.float64]


def exact(mechanism: Mechanism, edges: NDArray[np.int64]) -> Floats:
    """P(code | cell): the mechanism's own law, averaged over each cell's integers."""
    columns = [
        np.mean([[float(p) for p in mechanism.probabilities(v)] for v in range(a, b)], axis=0)
        for a, b in pairwise(edges.tolist())
    ]
    return np.stack(columns, axis=1)


def law_of(mean: float) -> Floats:
    x = np.exp(-np.arange(HIGH + 1) / mean)
    return np.asarray(x / x.sum())


def reports(mechanism: Mechanism, n: int, seed: int, mean: float = 8) -> Floats:
    law = exact(mechanism, np.arange(HIGH + 2)) @ law_of(mean)
    return np.random.default_rng(seed).multinomial(n, law / law.sum()).astype(np.float64)


@pytest.mark.parametrize("mechanism", VIEWED, ids=repr)
def test_a_view_is_the_mechanisms_own_law_averaged_over_each_cell(mechanism: Mechanism) -> None:
    view, oracle = view_of(mechanism, EDGES), exact(mechanism, EDGES)
    applied = np.stack([view.apply(x) for x in np.eye(len(EDGES) - 1)], axis=1)
    np.testing.assert_allclose(applied, oracle, atol=1e-13)
    adjoint = np.stack([view.adjoint(y) for y in np.eye(mechanism.code_count)])
    np.testing.assert_allclose(adjoint, oracle, atol=1e-13)


def test_a_branch_that_is_never_taken_tells_nothing() -> None:
    hybrid = Hybrid(epsilon=0.5, low=0, high=HIGH, size=16)
    rounding = StochasticRounding(epsilon=0.5, low=0, high=HIGH)
    survey = SquareWave(epsilon=0.5, low=0, high=HIGH, size=16)
    surveys = Evidence(survey, reports(survey, 1000, 1))
    counts = reports(rounding, 1000, 2)
    padded = np.concatenate([np.zeros(hybrid.code_count - 2), counts])
    whole = joint([surveys, Evidence(hybrid, padded)], EDGES)
    alone = joint([surveys, Evidence(rounding, counts)], EDGES)
    np.testing.assert_allclose(whole.probabilities, alone.probabilities, rtol=1e-9)


@given(st.integers(-1000, 1000), st.integers(1, 10**6), st.integers(1, 16))
def test_cells_cover_the_range_and_widen(low: int, span: int, per_octave: int) -> None:
    edges = cells(low, low + span, per_octave=per_octave)
    width = np.diff(edges)
    assert (edges[0], edges[-1]) == (low, low + span + 1)
    assert width.min() >= 1
    assert (np.diff(width[:-1]) >= 0).all()
    assert len(width) <= (per_octave + 1) * 18 + 16


def test_with_one_survey_on_its_own_buckets_it_is_em() -> None:
    wave = SquareWave(epsilon=1, low=0, high=63, size=16)
    counts = reports(wave, 5000, 0)
    edges = edges_of(wave).astype(np.int64)
    alone = em(wave, counts, tolerance=0, max_iterations=80)
    together = joint([Evidence(wave, counts)], edges, smoothing=0, tolerance=0, max_iterations=80)
    np.testing.assert_allclose(together.probabilities, alone.probabilities, atol=1e-12)
    assert together.log_likelihood == pytest.approx(alone.log_likelihood, rel=1e-12)
    assert together.iterations == 80


def test_em_over_several_mechanisms_never_lowers_the_likelihood() -> None:
    evidence = [Evidence(m, reports(m, 500, k)) for k, m in enumerate(VIEWED)]
    steps = [
        joint(evidence, EDGES, smoothing=0, tolerance=0, max_iterations=k).log_likelihood
        for k in (1, 2, 4, 8, 16, 32)
    ]
    assert np.diff(steps).min() > 0


def test_smoothing_leaves_an_even_density_even_on_uneven_cells() -> None:
    wave = SquareWave(epsilon=1, low=0, high=HIGH, size=78)
    law = exact(wave, np.array([0, HIGH + 1]))[:, 0]
    found = joint([Evidence(wave, law * 1e6)], EDGES, smoothing=0.5)
    level = found.probabilities / np.diff(EDGES)
    np.testing.assert_allclose(level, 1 / (HIGH + 1), rtol=1e-9)


def test_what_surveys_of_two_ranges_and_stream_reports_say_adds_up() -> None:
    wide, narrow, stream = (
        Evidence(m, reports(m, 300_000, k))
        for k, m in enumerate(
            (
                SquareWave(epsilon=2, low=0, high=HIGH, size=78),
                SquareWave(epsilon=2, low=0, high=15, size=16),
                Hybrid(epsilon=2, low=0, high=30),
            )
        )
    )
    edges = cells(0, HIGH, per_octave=4)
    true = np.add.reduceat(law_of(8), edges[:-1])
    off = []
    for evidence in ([wide], [wide, narrow], [wide, narrow, stream]):
        found = joint(evidence, edges, smoothing=0.05, tolerance=1e-2)
        off.append(float(np.abs(found.probabilities - true).sum()))
        assert found.n == 300_000 * len(evidence)
    assert off[0] > off[1] > off[2]
    assert off[2] < 0.03


def test_it_stops_at_the_first_change_below_the_tolerance() -> None:
    evidence = [Evidence(VIEWED[0], reports(VIEWED[0], 5000, 3))]
    done = joint(evidence, EDGES, tolerance=1e-2)
    before = [
        joint(evidence, EDGES, tolerance=0, max_iterations=done.iterations - k).log_likelihood
        for k in (2, 1, 0)
    ]
    assert abs(before[2] - before[1]) < 1e-2 <= abs(before[1] - before[0])


def test_nothing_reported_and_damaged_counts_are_told_apart() -> None:
    wave = VIEWED[0]
    none = np.zeros(wave.code_count)
    for evidence in ([], [Evidence(wave, none)]):
        with pytest.raises(NoReportsError):
            joint(evidence, EDGES)
    for counts in (none[1:], none - 1, none + np.nan, "x"):
        with pytest.raises(CountsError):
            joint([Evidence(wave, counts)], EDGES)
    one = none.copy()
    one[3] = 1
    assert np.isfinite(joint([Evidence(wave, one)], EDGES).probabilities).all()
