"""Runs of codes and atoms: the cumulative sums against plain loops and matrices."""

from math import log, sqrt

import numpy as np
import pytest

from edge_ldp import Hybrid, Mechanism, SquareWave
from edge_ldp.estimate.operator import model_of, operator_of
from edge_ldp.poisoning.alarm import runs_of
from edge_ldp.poisoning.filter import with_atoms
from tests.edge_ldp.poisoning.test_crowds import MECHANISMS, honest_law


def all_runs(mechanism: Mechanism) -> list[tuple[int, int]]:
    runs = runs_of(operator_of(mechanism))
    return [runs.run(k) for k in range(len(runs.first))]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_every_possible_code_is_a_run_and_no_run_is_everything(mechanism: Mechanism) -> None:
    possible = operator_of(mechanism).possible
    runs = all_runs(mechanism)
    assert len(set(runs)) == len(runs) <= 3 * mechanism.code_count
    assert {first for first, stop in runs if stop == first + 1} == set(np.flatnonzero(possible))
    assert all(possible[first:stop].all() for first, stop in runs)
    assert all(stop - first < possible.sum() for first, stop in runs)


def test_the_highest_and_lowest_codes_are_runs_in_powers_of_two() -> None:
    wave = SquareWave(epsilon=1, low=0, high=31, size=32)
    runs, last = set(all_runs(wave)), wave.code_count
    assert {(0, m) for m in (1, 2, 4, 8, 16, 32)} <= runs
    assert {(last - m, last) for m in (1, 2, 4, 8, 16, 32)} <= runs


def test_runs_do_not_cross_from_one_branch_to_the_other() -> None:
    hybrid = Hybrid(epsilon=1, low=0, high=30, size=16)
    cut = hybrid.code_count - 2
    runs = all_runs(hybrid)
    assert not [run for run in runs if run[0] < cut < run[1]]
    assert {(0, cut), (cut, cut + 2)} <= set(runs)  # a branch itself: the coin may be cheated with


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_excess_is_the_signed_root_of_the_runs_own_likelihood_ratio(mechanism: Mechanism) -> None:
    law = honest_law(mechanism)
    counts = np.random.default_rng(3).multinomial(500, law).astype(float)
    runs = runs_of(operator_of(mechanism))
    for k, found in enumerate(runs.excess(counts, law)):
        inside = slice(*runs.run(k))
        seen, due = counts[inside].sum(), 500 * law[inside].sum()
        ratio = sum(2 * a * log(a / b) for a, b in ((seen, due), (500 - seen, 500 - due)) if a > 0)
        assert found == pytest.approx(np.sign(seen - due) * sqrt(max(ratio, 0)), abs=1e-6)


def test_counts_in_proportion_to_the_law_have_no_excess() -> None:
    mechanism = MECHANISMS[2]
    law = honest_law(mechanism)
    excess = runs_of(operator_of(mechanism)).excess(1000 * law, law)
    assert abs(excess).max() < 1e-5


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_atoms_are_further_columns_of_the_likelihood(mechanism: Mechanism) -> None:
    model = model_of(mechanism)
    last = mechanism.code_count
    joint = with_atoms(model, [(last - 1, last), (last - 2, last)])
    inputs = model.operator.inputs
    matrix = np.array([joint.operator.apply(row).copy() for row in np.eye(inputs + 2)]).T
    honest = np.array([model.operator.apply(row).copy() for row in np.eye(inputs)]).T
    assert np.allclose(matrix[:, :inputs], honest, rtol=0, atol=1e-15)
    assert matrix[-2:, inputs:].tolist() == [[0, 0.5], [1, 0.5]]
    assert not matrix[:-2, inputs:].any()
    y = np.random.default_rng(0).random(last)
    assert np.allclose(joint.operator.adjoint(y), y @ matrix, rtol=0, atol=1e-12)
    assert np.allclose(joint.operator.unscaled().adjoint(y), y @ matrix, rtol=0, atol=1e-12)
    assert len(joint.edges) == inputs + 3
    assert (np.diff(joint.edges) > 0).all()
