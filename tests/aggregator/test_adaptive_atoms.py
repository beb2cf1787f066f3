"""Atoms: found where they are, nowhere else, and put where the reports allow them to be."""

import numpy as np
import pytest
from numpy.typing import NDArray

from aggregator.adaptive.atoms import Atoms, _no_atom, _Search, atoms_in, pieces, spread
from aggregator.adaptive.drift import surprise
from aggregator.adaptive.fit import Fit, Target, fit
from aggregator.adaptive.likelihood import reports_of
from aggregator.adaptive.posterior import Posterior, infer
from aggregator.adaptive.regret import Aim, costs_on
from aggregator.adaptive.shape import ATOM_SPREAD, Prior, Shape, hypotheses
from aggregator.estimate.joint import Evidence, cells, view_of
from edge_ldp import SquareWave

Floats = NDArray[np.float64]
CEILING, MEAN, ATOM, SHARE = 999, 60.0, 300, 0.05
EDGES, UNITS = cells(0, CEILING), np.arange(CEILING + 2)
PRIOR = Prior(EDGES, MEAN, {0.5: 40.0, 0.97: 210.0})
SMOOTH = Shape(0.5, 0.97, 15.0, 0.3, 0.0)
AIM = Aim(4.289, 2**20)
# fmt: off
GAINS = np.array([
    *range(16),
    18, 21, 24, 27, 30, 33, 36, 48, 60, 72, 84, 96, 108, 120, 132, 144, 157, 171, 186, 203,
    221, 241, 263, 287, 313, 341, 372, 406, 443, 483, 527, 575, 627, 684, 746, 814, 888,
    968, 1056, 1152, 1256, 1370, 1494, 1629, 1776, 1937, 2112, 2303, 2511, 2738, 2986, 3256,
    3293, 3330, 3551, 3872, 4222, 4604, 5021, 5475, 5971, 6511, 7100, 7743, 8444, 9208,
    10041, 10950, 11941, 13022, 14201, 15486, 16888, 18416, 20083, 21901, 23883, 26045,
    28402, 30973, 33776, 36833, 40167, 43802, 47766, 52089, 56803, 61944, 67550, 73664,
    80331, 87602, 95531, 100001,
])
# fmt: on


def law(share: float) -> Floats:
    masses = -np.diff(np.exp(-UNITS / MEAN))
    masses *= (1 - share) / masses.sum()
    masses[ATOM] += share
    return np.asarray(masses)


def expected(share: float, high: int = 511, n: float = 262_144) -> Evidence:
    wave = SquareWave(epsilon=2, low=0, high=high, size=256)
    return Evidence(wave, n * view_of(wave, UNITS).apply(law(share)))


def fitted(evidence: list[Evidence]) -> Fit:
    start = np.log(-np.diff(np.exp(-EDGES / MEAN))) - PRIOR.log_width
    return fit(Target(reports_of(evidence, EDGES), PRIOR, SMOOTH), start)


def atoms_of(share: float) -> Atoms | None:
    evidence = [expected(share), expected(share, 999)]
    return atoms_in(evidence, EDGES, fitted(evidence))


def test_an_atom_is_found_at_its_value_with_its_share() -> None:
    atoms = atoms_of(SHARE)
    assert atoms is not None
    assert len(atoms.at) == 1
    assert atoms.starts[0] <= ATOM < atoms.edges[atoms.at[0] + 1]
    assert atoms.masses[0] == pytest.approx(SHARE, rel=0.1)
    assert atoms.chances[:, 0].argmax() == atoms.at[0]
    assert atoms.chances.sum() == pytest.approx(1)
    assert 0 <= atoms.price <= np.log(len(atoms.edges) - 1)


def test_an_atom_between_the_edges_of_a_cell_is_no_shift_but_one_that_appears_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Exact counts of a law that stays: no even cell explains them near the atom, finer ones do."""
    old, near = [expected(SHARE, 999)], [expected(SHARE, 310)]
    assert surprise(old, near, EDGES) > 0.5
    assert surprise([expected(0.0, 999)], near, EDGES) < 1e-9
    monkeypatch.setattr("aggregator.adaptive.drift.pieces", lambda edges: edges)
    assert surprise(old, near, EDGES) < 1e-3  # the test can fail


def test_a_smooth_law_has_no_atoms() -> None:
    assert atoms_of(0.0) is None


def test_an_atom_that_the_reports_cannot_place_is_none() -> None:
    wave = SquareWave(epsilon=0.2, low=0, high=511, size=256)
    evidence = [Evidence(wave, 65_536 * view_of(wave, UNITS).apply(law(0.01)))]
    assert atoms_in(evidence, EDGES, fitted(evidence)) is None


@pytest.mark.parametrize(
    ("at", "chances", "masses", "gone"),
    [
        ([60, 90], [1.0, 0.0], [0.1, 0.2], None),
        ([40, 90], [0.1, 0.1], [0.1, 0.2], 0),  # ten places each, the nearer one's a wider share
        ([60, 90], [1.0, 0.0], [0.1, 0.6], 1),
        ([89, 90], [1.0, 0.0], [0.2, 0.1], 1),
        ([90, 89], [1.0, 0.0], [0.2, 0.1], 1),
    ],
)
def test_an_atom_has_a_place_of_its_own_and_is_not_all_there_is(
    at: list[int], chances: list[float], masses: list[float], gone: int | None
) -> None:
    """`chances`: of an atom's place, and of each of nine around it."""
    likely = np.zeros((100, 2))
    for which, place in enumerate(at):
        likely[place - 5 : place + 5, which] = chances[1]
        likely[place, which] = chances[0]
    assert _no_atom(np.arange(0, 202, 2), at, likely, np.array(masses)) == gone


def test_gains_go_by_the_derivative_of_the_likelihood_towards_each_place() -> None:
    evidence = [expected(SHARE)]
    search = _Search(evidence, EDGES, smooth := fitted(evidence))
    found = search.fitted([], smooth.psi)
    masses = found.target.masses(found.psi)
    law, counts, tiny = search.reports.expected @ masses, search.reports.counts, 1e-5

    def likelihood(at: Floats) -> float:
        return float((counts * np.log(at) - at).sum())

    _, told = found.scores(search.there)
    gains, _ = search.gains(found)
    for place in (10, int(gains.argmax())):
        ahead, back = law + tiny * search.there[:, place], law - tiny * search.there[:, place]
        slope = (likelihood(ahead) - likelihood(back)) / (2 * tiny)
        assert gains[place] == pytest.approx(
            max(slope, 0) ** 2 / told[place] / 2, rel=1e-3, abs=1e-4
        )


def test_pieces_are_eighths_of_cells_or_single_values() -> None:
    edges = np.array([0, 1, 4, 84])
    assert pieces(edges).tolist() == [0, 1, 2, 3, 4, 14, 24, 34, 44, 54, 64, 74, 84]


def test_masses_are_spread_evenly_over_finer_cells() -> None:
    edges, finer = np.array([0, 4, 12]), np.array([0, 1, 4, 6, 12])
    found = spread(np.array([[0.4], [0.6]]), edges, finer)
    np.testing.assert_allclose(found[:, 0], [0.1, 0.3, 0.15, 0.45])


def test_draws_hold_the_atom_as_often_in_each_place_as_it_is_likely_there() -> None:
    chances = np.array([[0.0], [0.25], [0.75], [0.0]])
    atoms = Atoms(np.array([0, 2, 4, 6, 8]), np.array([2]), chances, np.array([0.5]), 1.0)
    assert atoms.starts.tolist() == [4]
    assert atoms.cut(np.array([0, 8])).tolist() == [0, 4, 6, 8]
    edges = atoms.finest(np.array([0, 8]))
    assert edges.tolist() == [0, 2, 4, 6, 8]
    samples = np.repeat([[0.1], [0.2], [0.5], [0.2]], 4000, axis=1)
    moved = atoms.placed(samples, edges, np.random.default_rng(0))
    np.testing.assert_allclose(moved.sum(axis=0), 1)
    assert {tuple(column) for column in moved.T.round(9).tolist()} == {
        (0.1, 0.7, 0.0, 0.2),
        (0.1, 0.2, 0.5, 0.2),
    }
    assert (moved[2] > 0).mean() == pytest.approx(0.75, abs=0.03)


def test_an_atoms_mass_goes_by_no_neighbour_and_the_rest_is_as_without_it() -> None:
    edges = np.unique(np.append(EDGES, [ATOM, ATOM + 1]))
    at = int(np.searchsorted(edges, ATOM))
    plain = Prior(edges, MEAN, {0.5: 40.0, 0.97: 210.0}).of(SMOOTH)
    mean, precision, determinant = PRIOR.cut(edges, np.array([ATOM]), -4.0).of(SMOOTH)
    inverse, without = np.linalg.inv(precision), np.linalg.inv(plain.precision)
    assert mean[at] == -4.0
    assert inverse[at, at] == pytest.approx(ATOM_SPREAD**2, rel=0.01)
    others = np.delete(np.arange(len(mean)), at)
    np.testing.assert_allclose(mean[others], plain.mean[others])
    same = inverse[np.ix_(others, others)]
    np.testing.assert_allclose(same, without[np.ix_(others, others)], rtol=0.01, atol=0.05)
    assert determinant == pytest.approx(np.linalg.slogdet(precision)[1])


def test_a_prior_that_rounding_leaves_no_factor_of_still_has_its_determinant() -> None:
    """Cells of a look at capital gains: nearly nothing tells the level of the last few."""
    atom = int(np.searchsorted(GAINS, 3293))
    made = Prior(GAINS, 3788.2, {0.5: 211.5, 0.97: 91_566.0}, 3700.2)
    for shape in hypotheses(1.0):
        plain = made.of(shape)
        found = made.cut(GAINS, np.array([3293]), -3.6).of(shape)
        without = plain.log_determinant - np.log(plain.precision[atom, atom])
        free = without - 2 * np.log(ATOM_SPREAD)
        assert found.log_determinant == pytest.approx(free, abs=1e-3)


def test_theta_is_near_the_best_with_an_atom_and_the_same_each_time() -> None:
    evidence = [expected(SHARE), expected(SHARE, 999)]
    found = infer(evidence, EDGES, rng=np.random.default_rng(0))
    again = infer(evidence, EDGES, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(found.samples, again.samples)
    np.testing.assert_allclose(found.samples.sum(axis=0), 1)
    assert not found.torn
    np.testing.assert_array_equal(found.coarse, EDGES)
    assert len(found.edges) > len(EDGES)
    units, truth = costs_on(UNITS, AIM), law(SHARE)
    theta = costs_on(found.edges, AIM).choose(found.samples)[0]
    assert np.interp(theta, units.thetas, units.of(truth)) / units.of(truth).min() < 1.02


def test_cells_that_atoms_cut_are_cut_no_further_and_heavy_ones_are() -> None:
    coarse, edges = np.array([0, 100, 200, 300]), np.array([0, 100, 150, 160, 200, 300])
    masses = np.array([0.2, 0.05, 0.6, 0.05, 0.1])[:, None]
    found = Posterior(edges, masses, np.zeros(3), hypotheses(0.5)[0], coarse)
    assert found.finer().tolist() == [0, 25, 50, 75, 100, 200, 300]
    plain = Posterior(coarse, np.array([[0.2], [0.7], [0.1]]), np.zeros(3), hypotheses(0.5)[0])
    assert plain.finer().tolist() == [0, 25, 50, 75, 100, 125, 150, 175, 200, 300]


def test_a_hump_far_from_low_is_no_atom_before_its_cell_is_cut() -> None:
    heavy = np.append(np.arange(0, 901, 20), [960, 980, CEILING + 1])
    hump = np.exp(-(((UNITS[:-1] - 930) / 10) ** 2) / 2)
    wave = SquareWave(epsilon=2, low=0, high=CEILING, size=256)
    reports = Evidence(wave, 262_144 * view_of(wave, UNITS).apply(hump / hump.sum()))
    found = infer([reports], heavy, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(found.edges, heavy)
    assert len(found.finer()) > len(heavy)
