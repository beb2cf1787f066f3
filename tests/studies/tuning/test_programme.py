"""The linear programme against the same one written out plainly, and what a solution promises."""

import numpy as np
import pytest
import scipy

from studies.tuning.programme import Programme, programme

E = np.e


def plain_cost(ratio: float, knots: int, y: np.ndarray, weights: np.ndarray | None) -> float:
    """Solve docs/methods.md, Optimal tables, for P (knots · codes), r (codes) and s."""
    codes, x = len(y), np.linspace(-1, 1, knots)
    columns = knots * codes + codes + 1
    each = np.hstack([np.kron(np.eye(knots), np.ones(codes)), np.zeros((knots, codes + 1))])
    mean = np.hstack([np.kron(np.eye(knots), y), np.zeros((knots, codes + 1))])
    square = np.hstack([np.kron(np.eye(knots), y * y), np.zeros((knots, codes + 1))])
    law = np.eye(knots * codes, columns)
    least = np.hstack([np.zeros((codes, knots * codes)), np.eye(codes), np.zeros((codes, 1))])
    least = np.tile(least, (knots, 1))
    t = np.arange((knots - 1) * 8 + 1) / 8  # 8 places a cell, in knots
    cell = np.minimum(t.astype(int), knots - 2)
    share = (t - cell)[:, None]
    between = square[cell] * (1 - share) + square[cell + 1] * share
    between[:, -1] = -1
    below, most = [least - law, law - ratio * least], [np.zeros(2 * knots * codes)]
    cost = np.eye(columns)[-1]
    if weights is None:
        below.append(between)
        most.append((2 * t / (knots - 1) - 1) ** 2)
    else:
        cost = weights @ square
    a, b = np.vstack(below), np.concatenate(most)
    done = scipy.optimize.linprog(
        cost, a, b, np.vstack([each, mean]), np.concatenate([np.ones(knots), x])
    )
    return float(done.fun)


@pytest.mark.parametrize("knots", [2, 5, 8])
@pytest.mark.parametrize("ratio", [1.3, E, 30.0])
def test_for_given_outputs_it_finds_what_the_plain_programme_finds(
    ratio: float, knots: int
) -> None:
    outputs = np.linspace(-1.2, 1.2, 8)
    lopsided = np.arange(1, knots + 1) / (knots * (knots + 1) / 2)
    for weights in (None, np.ones(knots) / knots, lopsided):
        made = programme(ratio, knots, 8, weights)
        point = made.at(outputs)
        assert point is not None
        expected = plain_cost(ratio, knots, outputs / made.gain, weights)
        cost = point.cost / made.gain**2
        assert cost == pytest.approx(expected, rel=2e-4)  # the ties and least weights cost that


@pytest.mark.parametrize("knots", [5, 8])
def test_symmetry_costs_nothing_where_the_outputs_are_symmetric(knots: int) -> None:
    outputs = np.linspace(-1.3, 1.3, 8)
    folded = programme(E, knots, 8, None).at(outputs)
    whole = Programme(E, None, np.arange(knots), np.arange(8), np.ones(8)).at(outputs)
    assert folded is not None
    assert whole is not None
    assert folded.cost == pytest.approx(whole.cost, rel=1e-8)


@pytest.mark.parametrize("weights", [None, np.arange(9) / 36], ids=["worst", "expected"])
def test_a_descent_ends_at_a_better_table_that_is_unbiased_and_within_the_ratio(
    weights: np.ndarray | None,
) -> None:
    made = programme(E, 9, 8, weights)
    start = made.at(np.linspace(-1.25, 1.25, 8))
    point = made.descend(np.linspace(-1.25, 1.25, 8))
    assert start is not None
    assert point is not None
    assert point.cost < start.cost * 0.995
    assert np.diff(point.outputs).min() > 0.0099
    law, y = made.probabilities(point), point.outputs / made.gain
    places = np.linspace(-1, 1, 9)[: made.rows]
    np.testing.assert_allclose(law.sum(axis=1), 1, atol=1e-8)
    np.testing.assert_allclose(law @ y, places, atol=1e-8)
    columns = np.vstack([law, law[:, ::-1]]) if weights is None else law
    assert (columns.max(axis=0) <= columns.min(axis=0) * E * (1 + 1e-7)).all()
    if weights is None:
        assert (law @ y**2 - places**2).max() <= point.cost / made.gain**2 * (1 + 1e-7)


def test_outputs_inside_the_range_of_stochastic_rounding_have_no_table() -> None:
    made = programme(E, 5, 8, None)
    assert made.at(np.linspace(-0.9, 0.9, 8)) is None
    assert made.descend(np.linspace(-0.9, 0.9, 8)) is None
