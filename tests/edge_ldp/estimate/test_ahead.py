import numpy as np
import pytest

from edge_ldp.device.errors import ParameterError
from edge_ldp.errors import CountsError, NoReportsError
from edge_ldp.estimate.ahead import ENDED, Ahead, ahead
from edge_ldp.estimate.pure import Supports, supports
from tests.edge_ldp.estimate.fleets import ahead_run

N = 10**12


def mean_answer(state: Ahead, x: np.ndarray, n: int = N) -> Supports:
    """The frontier's supports as they are on average."""
    below = np.concatenate([[0], np.cumsum(x)])[state.frontier]
    return supports(np.rint(n * (0.2 + 0.3 * np.diff(below))), n, own=0.5, other=0.2)


def test_without_noise_only_nodes_with_mass_are_split() -> None:
    x = np.zeros(16)
    x[5], x[6] = 0.25, 0.75
    state = ahead(16)
    frontiers = []
    while not state.done:
        frontiers.append(state.frontier.tolist())
        state = state.grown(mean_answer(state, x))
    assert frontiers == [[0, 8, 16], [0, 4, 8, 16], [0, 4, 6, 8, 16], [0, 4, 5, 6, 7, 8, 16]]
    found = state.density()
    np.testing.assert_allclose(found.probabilities, [0, 0, 0.25, 0.75, 0, 0], atol=1e-9)
    assert found.edges.tolist() == frontiers[-1]
    assert found.n == 4 * N
    assert found.warnings == ()


def test_edges_translate_categories() -> None:
    state = ahead(2).grown(mean_answer(ahead(2), np.array([0.5, 0.5])))
    assert state.density(edges=[-3, 10, 70]).edges.tolist() == [-3, 10, 70]
    with pytest.raises(ParameterError, match="edges"):
        state.density(edges=[0, 1])


@pytest.mark.parametrize("size", [2, 3, 5, 100, 1024])
def test_rounds_suffice_to_reach_every_category(size: int) -> None:
    state = ahead(size)
    assert 2 ** (state.rounds - 1) < size <= 2**state.rounds
    last = state.frontier
    while not state.done:
        last = state.frontier
        state = state.grown(mean_answer(state, np.full(size, 1 / size), 2**53))
    assert last.tolist() == list(range(size + 1))


def test_a_node_splits_above_the_threshold_of_the_noise() -> None:
    """OUE at E = 3, 300 reporters: variance 4·3/(300·4) = 0.01, threshold √0.03 = 0.1732."""
    state = ahead(8)
    one, two = (supports([k, 225 - k], 300, own=0.5, other=0.25) for k in (89, 87))
    assert one.variance == pytest.approx(0.01)
    np.testing.assert_allclose([one.frequencies()[0], two.frequencies()[0]], [0.1867, 0.16], 1e-3)
    assert state.grown(one).frontier.tolist() == [0, 2, 4, 6, 8]
    assert state.grown(two).frontier.tolist() == [0, 4, 6, 8]


def test_a_node_asked_twice_is_averaged() -> None:
    """Cohorts of equal size say 0 and 0.1 of an unsplit node: least squares weighs them alike."""

    def answer(*shares: float) -> Supports:
        return supports(
            np.rint(10_000 * (0.2 + 0.3 * np.array(shares))), 10_000, own=0.5, other=0.2
        )

    state = ahead(4).grown(answer(0.0, 1.0))
    assert state.frontier.tolist() == [0, 2, 3, 4]
    found = state.grown(answer(0.1, 0.5, 0.4)).density().probabilities
    # min (a − 0)² + (b + c − 1)² + (a − 0.1)² + (b − 0.5)² + (c − 0.4)², a + b + c = 1
    system = [[2, 0, 0, -1], [0, 2, 1, -1], [0, 1, 2, -1], [1, 1, 1, 0]]
    np.testing.assert_allclose(found, np.linalg.solve(system, [0.1, 1.5, 1.4, 1])[:3], atol=1e-9)


def test_stopped_early_it_warns() -> None:
    state = ahead(16)
    with pytest.raises(NoReportsError):
        state.density()
    state = state.grown(mean_answer(state, np.full(16, 1 / 16)))
    assert state.density().warnings == (ENDED,)


def test_what_does_not_fit_is_refused() -> None:
    state = ahead(4)
    with pytest.raises(CountsError):
        state.grown(supports([1, 1, 1], 2, own=0.5, other=0.2))
    while not state.done:
        state = state.grown(mean_answer(state, np.full(4, 0.25)))
    with pytest.raises(ParameterError, match="last round"):
        state.grown(mean_answer(state, np.full(4, 0.25)))


def test_atoms_are_found_among_a_thousand_categories() -> None:
    """Four atoms, ε = 2, 100,000 reporters; seeded. Over 30 seeds: off by −0.004 ± 0.008."""
    atoms = np.array([17, 300, 301, 900])
    rng = np.random.default_rng(0)
    found = ahead_run(rng.choice(atoms, 100_000), 1024, 2, rng).density()
    for atom in atoms:
        assert found.range(atom, atom + 1) == pytest.approx(0.25, abs=0.03)
