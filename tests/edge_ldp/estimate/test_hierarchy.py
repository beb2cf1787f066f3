import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_ldp.errors import CountsError
from edge_ldp.estimate.hierarchy import FrequencyTree, consistency, hh, hh_levels, regular_tree
from edge_ldp.estimate.pure import Supports, supports

Levels = list[np.ndarray]


def below(tree: FrequencyTree) -> np.ndarray:
    """Row per node (levels one after another), column per leaf: 1 where the leaf is below it."""
    rows = [np.eye(len(tree.parents[-1]))]
    for parents in tree.parents[:0:-1]:
        level = np.zeros((int(parents.max()) + 1, rows[-1].shape[1]))
        np.add.at(level, parents, rows[-1])
        rows.append(level)
    return np.concatenate(rows[::-1])


def least_squares(tree: FrequencyTree, estimates: Levels, weights: np.ndarray) -> np.ndarray:
    """The dense answer: leaves that add up to 1, empty ones 0, by Lagrange's equations."""
    used = ~tree.empty[-1]
    matrix = below(tree)[:, used]
    count = matrix.shape[1]
    system = np.zeros((count + 1, count + 1))
    system[:count, :count] = matrix.T @ (weights[:, None] * matrix)
    system[:count, count] = system[count, :count] = 1
    right = np.append(matrix.T @ (weights * np.concatenate(estimates)), 1)
    leaves = np.zeros(len(used))
    leaves[used] = np.linalg.solve(system, right)[:count]
    return leaves


@given(st.integers(1, 30), st.integers(2, 5), st.integers(0, 2**32), st.booleans())
def test_it_is_the_weighted_least_squares(size: int, fanout: int, seed: int, equal: bool) -> None:  # noqa: FBT001
    tree = regular_tree(size, fanout)
    rng = np.random.default_rng(seed)
    estimates = [rng.normal(size=len(at)) for at in tree.parents]
    estimates = [np.where(e, 0, x) for x, e in zip(estimates, tree.empty, strict=True)]
    variances = [1.0 if equal else v for v in rng.uniform(0.2, 3, len(estimates))]
    found = consistency(tree, variances).of(estimates)
    weights = np.concatenate(
        [np.full(len(x), 1 / v) for x, v in zip(estimates, variances, strict=True)]
    )
    dense = least_squares(tree, estimates, weights)
    np.testing.assert_allclose(found[-1], dense, atol=1e-9)
    np.testing.assert_allclose(np.concatenate(found), below(tree) @ dense, atol=1e-9)


def test_variances_may_differ_from_node_to_node() -> None:
    """As in AHEAD's trees, where an unsplit node is its own only child."""
    tree = FrequencyTree(
        parents=(np.array([0, 0, 0]), np.array([0, 0, 1, 2, 2])),
        empty=(np.zeros(3, bool), np.zeros(5, bool)),
    )
    rng = np.random.default_rng(1)
    estimates = [rng.normal(size=3), rng.normal(size=5)]
    variances = [rng.uniform(0.1, 2, 3), rng.uniform(0.1, 2, 5)]
    found = consistency(tree, variances).of(estimates)
    dense = least_squares(tree, estimates, 1 / np.concatenate(variances))
    np.testing.assert_allclose(found[-1], dense, atol=1e-12)


def test_with_equal_variances_it_is_equations_10_and_11() -> None:
    """Written out for fanout 2 and height 3, root known to be 1."""
    rng = np.random.default_rng(2)
    two, four, eight = (rng.normal(size=k) for k in (2, 4, 8))
    up4 = 2 / 3 * four + 1 / 3 * eight.reshape(4, 2).sum(1)  # eq 10, l = 2
    up2 = 4 / 7 * two + 3 / 7 * up4.reshape(2, 2).sum(1)  # eq 10, l = 3
    down2 = up2 + (1 - up2.sum()) / 2  # eq 11
    down4 = up4 + np.repeat(down2 - up4.reshape(2, 2).sum(1), 2) / 2
    down8 = eight + np.repeat(down4 - eight.reshape(4, 2).sum(1), 2) / 2
    found = consistency(regular_tree(8, 2), [1, 1, 1]).of([two, four, eight])
    for level, expected in zip(found, (down2, down4, down8), strict=True):
        np.testing.assert_allclose(level, expected, atol=1e-14)


def test_a_consistent_tree_stays() -> None:
    tree = regular_tree(11, 3)
    leaves = np.zeros(27)
    leaves[:11] = np.random.default_rng(3).dirichlet(np.ones(11))
    levels = tree.totals(leaves)
    for found, level in zip(consistency(tree, [3, 1, 2]).of(levels), levels, strict=True):
        np.testing.assert_allclose(found, level, atol=1e-15)


def exact_levels(x: np.ndarray, fanout: int, n: int, own: float, other: float) -> list[Supports]:
    tree = regular_tree(len(x), fanout)
    leaves = np.zeros(len(tree.parents[-1]))
    leaves[: len(x)] = x
    return [
        supports(np.rint(n * (other + (own - other) * level)), n, own=own, other=other)
        for level in tree.totals(leaves)
    ]


@pytest.mark.parametrize("weighted", [True, False])
def test_mean_supports_give_the_density_back(weighted: bool) -> None:  # noqa: FBT001
    x = np.random.default_rng(4).dirichlet(np.ones(50))
    levels = exact_levels(x, 4, 10**12, 0.5, 0.2)
    leaves = hh_levels(levels, 50, weighted=weighted)[-1]
    np.testing.assert_allclose(leaves[:50], x, atol=1e-10)
    assert not leaves[50:].any()
    found = hh(levels, 50, weighted=weighted, edges=np.arange(51) * 10)
    np.testing.assert_allclose(found.probabilities, x, atol=1e-10)
    assert found.n == 3 * 10**12
    assert found.edges[-1] == 500


def test_levels_of_another_tree_are_refused() -> None:
    levels = exact_levels(np.full(16, 1 / 16), 4, 1000, 0.5, 0.2)
    for wrong, size in ((levels[:1], 16), (levels[::-1], 16), (levels, 17), (levels, 4), ([], 4)):
        with pytest.raises(CountsError):
            hh_levels(wrong, size)
