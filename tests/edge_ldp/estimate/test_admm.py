import numpy as np
import pytest
import scipy

from edge_ldp.errors import CountsError
from edge_ldp.estimate.hierarchy import CAPPED, FrequencyTree, hh_admm, nearest, regular_tree
from edge_ldp.estimate.pure import Supports, supports
from tests.edge_ldp.estimate.test_hierarchy import below, exact_levels


def programme(tree: FrequencyTree, estimates: list[np.ndarray]) -> np.ndarray:
    """The optimum by an active-set method, the sum held to 1 by a weight of 10^4."""
    used = ~tree.empty[-1]
    matrix = below(tree)[:, used]
    rows = np.vstack([matrix, np.full(matrix.shape[1], 1e4)])
    target = np.append(np.concatenate(estimates), 1e4)
    leaves = np.zeros(len(used))
    leaves[used], _ = scipy.optimize.nnls(rows, target)
    return leaves


def noisy(tree: FrequencyTree, seed: int, noise: float) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    leaves = rng.dirichlet(np.full(len(tree.parents[-1]), 0.2)) * ~tree.empty[-1]
    levels = tree.totals(leaves / leaves.sum())
    noised = [level + rng.normal(0, noise, len(level)) for level in levels]
    return [np.where(e, 0, level) for level, e in zip(noised, tree.empty, strict=True)]


@pytest.mark.parametrize("noise", [0.001, 0.03, 1])
@pytest.mark.parametrize(("size", "fanout"), [(4, 4), (16, 4), (64, 4), (50, 4), (20, 2), (27, 3)])
def test_it_is_the_optimum_of_the_quadratic_programme(size: int, fanout: int, noise: float) -> None:
    tree = regular_tree(size, fanout)
    for seed in range(5):
        estimates = noisy(tree, seed, noise)
        leaves, _, done = nearest(tree, estimates, 1e-8, 20_000)
        assert done
        np.testing.assert_allclose(leaves, programme(tree, estimates), atol=1e-6)


def test_at_the_size_in_use_it_meets_the_conditions_of_the_optimum() -> None:
    """At the optimum the gradient is one number where leaves are positive, and no less elsewhere.

    A leaf within the tolerance of 0 may be on either side.
    """
    tree = regular_tree(1024, 4)
    estimates = noisy(tree, 0, 0.01)
    leaves, _, done = nearest(tree, estimates, 1e-9, 20_000)
    assert done
    matrix = below(tree)
    slope = matrix.T @ (matrix @ leaves - np.concatenate(estimates))
    level = slope[leaves > 1e-7]
    assert np.ptp(level) < 1e-6
    assert slope[leaves <= 1e-7].min() > level.mean() - 1e-6


def test_mean_supports_give_the_density_back() -> None:
    x = np.random.default_rng(4).dirichlet(np.ones(50))
    found = hh_admm(exact_levels(x, 4, 10**12, 0.5, 0.2), 50, edges=np.arange(51) * 2)
    np.testing.assert_allclose(found.probabilities, x, atol=1e-7)
    assert found.n == 3 * 10**12
    assert found.warnings == ()


def some_levels() -> list[Supports]:
    rng = np.random.default_rng(0)
    return [supports(rng.binomial(500, 0.3, k), 500, own=0.5, other=0.2) for k in (4, 16)]


def test_at_the_cap_it_warns_and_is_a_density() -> None:
    found = hh_admm(some_levels(), 16, max_iterations=2)
    assert found.iterations == 2
    assert found.warnings == (CAPPED,)
    assert found.probabilities.sum() == pytest.approx(1)


def test_levels_of_another_size_are_refused() -> None:
    with pytest.raises(CountsError):
        hh_admm(some_levels(), 4)
