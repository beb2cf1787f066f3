"""Theorem 3.1 in exact rationals, and what makes integers as good: post-processing of the tree."""

from fractions import Fraction
from itertools import accumulate, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_ldp.continual.arrays import ArrayNoise
from edge_ldp.continual.chunk import block_noise
from edge_ldp.continual.consistency import (
    FRACTION_BITS,
    consistent_leaves,
    lean_noise,
    subtree_noise,
    whole,
)
from edge_ldp.continual.noise import NodeNoise
from edge_ldp.continual.shape import Shape

F = Fraction
Levels = list[list[int]]
KEY = bytes(range(32))


def least_squares(levels: Levels, fanout: int) -> list[Fraction]:
    """Leaves x that minimise Σ (node - Σ x below)²: normal equations, eliminated exactly."""
    count = len(levels[0])
    rows = [[F(0)] * count + [F(0)] for _ in range(count)]
    for level, nodes in enumerate(levels):
        size = fanout**level
        for index, node in enumerate(nodes):
            below = range(index * size, (index + 1) * size)
            for i in below:
                for j in below:
                    rows[i][j] += 1
                rows[i][count] += node
    for i in range(count):
        rows[i] = [one / rows[i][i] for one in rows[i]]
        for k in range(count):
            if k != i and rows[k][i]:
                rows[k] = [a - rows[k][i] * b for a, b in zip(rows[k], rows[i], strict=True)]
    return [row[count] for row in rows]


def eqs_10_and_11(levels: Levels, fanout: int) -> list[Fraction]:
    """The paper's two passes, as written there (height 1 = leaves)."""
    b = fanout
    h = [[F(node) for node in nodes] for nodes in levels]
    for at in range(1, len(h)):
        l = at + 1  # noqa: E741 - the paper's letter
        for x in range(len(h[at])):
            below = sum(h[at - 1][x * b : (x + 1) * b])
            h[at][x] = F(b**l - b**at, b**l - 1) * h[at][x] + F(b**at - 1, b**l - 1) * below
    for at in range(len(h) - 2, -1, -1):
        old = list(h[at])
        for x in range(len(old)):
            family = sum(old[x // b * b : (x // b + 1) * b])
            siblings = family - old[x]
            h[at][x] = F(b - 1, b) * old[x] + F(1, b) * (h[at + 1][x // b] - siblings)
    return h[0]


@st.composite
def trees(draw: st.DrawFn, most: int = 100) -> tuple[Levels, int]:
    fanout = draw(st.integers(2, 4))
    height = draw(st.integers(1, 4 if fanout == 2 else 3 if fanout == 3 else 2))
    numbers = st.integers(-most, most)
    levels = [
        draw(st.lists(numbers, min_size=fanout**up, max_size=fanout**up))
        for up in range(height - 1, -1, -1)
    ]
    return levels, fanout


def totals(leaves: list[int], levels: int, fanout: int) -> Levels:
    found = [leaves]
    for _ in range(levels - 1):
        last = found[-1]
        found.append([sum(last[at : at + fanout]) for at in range(0, len(last), fanout)])
    return found


@given(trees())
def test_the_two_passes_are_least_squares(tree: tuple[Levels, int]) -> None:
    assert eqs_10_and_11(*tree) == least_squares(*tree)


@given(trees(), st.data())
def test_online_consistency_is_offline_consistency(
    tree: tuple[Levels, int], data: st.DataObject
) -> None:
    """Theorem 3.1: true value + consistent noise = the noisy tree made consistent, exactly.

    The same of what is really released, in whole numbers: this is what privacy rests on.
    """
    noise, fanout = tree
    size = len(noise[0])
    values = data.draw(st.lists(st.integers(0, 50), min_size=size, max_size=size))
    true = totals(values, len(noise), fanout)
    noisy = [[t + n for t, n in zip(*pair, strict=True)] for pair in zip(true, noise, strict=True)]
    online = [v + n for v, n in zip(values, eqs_10_and_11(noise, fanout), strict=True)]
    assert online == eqs_10_and_11(noisy, fanout) == least_squares(noisy, fanout)
    released = [v + n for v, n in zip(values, whole(consistent_leaves(noise, fanout)), strict=True)]
    assert released == whole(consistent_leaves(noisy, fanout)), "rounding included"


@given(trees(most=10**6))
def test_integers_stay_near_the_exact_rationals(tree: tuple[Levels, int]) -> None:
    levels, fanout = tree
    exact = list(accumulate(eqs_10_and_11(levels, fanout)))
    fixed = list(accumulate(consistent_leaves(levels, fanout)))
    released = list(accumulate(whole(consistent_leaves(levels, fanout))))
    for real, fine, one in zip(exact, fixed, released, strict=True):
        assert abs(F(fine, 1 << FRACTION_BITS) - real) < F(fanout * len(levels), 64)
        assert one == fine >> FRACTION_BITS


SHAPES = [
    Shape("consistent", 2, 64),
    Shape("consistent", 2, 1),
    Shape("consistent", 3, 100),  # no power of its fan-out
    Shape("consistent", 16, 4096, 1),
    Shape("consistent", 16, 768, 1),
    Shape("consistent", 5, 625, 3),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("theta", [1, 10**6])
def test_lists_arrays_and_little_memory_give_the_same_noise(shape: Shape, theta: int) -> None:
    noise = NodeNoise(KEY, shape.scale(theta, F(1, 10)))
    plain = [n for top in range(shape.tops) for n in subtree_noise(noise, shape, top)]
    plain = plain[: shape.blocks]
    assert ArrayNoise(noise, shape).chunk().tolist() == plain
    for first in {0, 1 % shape.blocks, shape.blocks // 2, shape.blocks - 1}:
        assert list(lean_noise(noise, shape, first))[: shape.blocks - first] == plain[first:]
        for memory in ("subtree", "lean", "numpy"):
            found = list(block_noise(noise, shape, memory, first))
            assert found[: shape.blocks - first] == plain[first:]


def test_sums_too_long_for_64_bits_are_done_in_python() -> None:
    shape = Shape("consistent", 16, 1 << 12)
    noise = NodeNoise(KEY, F(1 << 40))
    wide = Shape("consistent", 64, 1 << 18)
    assert ArrayNoise(noise, wide).subtree(0).tolist() == subtree_noise(noise, wide, 0)
    assert ArrayNoise(noise, shape).subtree(1).tolist() == subtree_noise(noise, shape, 1)


@pytest.mark.parametrize(
    ("shape", "fanout"), [(Shape("causal", 2, 16), 2), (Shape("causal", 3, 20), 3)]
)
def test_causal_noise_of_a_prefix_is_that_of_its_finished_nodes_only(
    shape: Shape, fanout: int
) -> None:
    noise = NodeNoise(KEY, F(100))
    summed = list(accumulate(block_noise(noise, shape, "subtree", 0)))
    for end in range(1, shape.chunk + 1):
        want, at = 0, 0
        for level in range(shape.levels - 1, -1, -1):
            while at + fanout**level <= end:
                want += noise.one(level, at // fanout**level)
                at += fanout**level
        assert summed[end - 1] == want
        later = list(block_noise(noise, shape, "subtree", end))
        assert list(accumulate(later, initial=want)) == [want, *summed[end:]]


@pytest.mark.parametrize("kind", ["consistent", "causal"])
def test_tiny_streams_have_a_ratio_of_e_to_the_epsilon_at_most(kind: str) -> None:
    """By enumeration: all streams of 4 values up to θ = 2, all neighbours, all noise in a window.

    For each noise under V there is one under V' with the same release; it is less likely by
    q^(change of all nodes), q = e^(-ε/(θ·levels)). So the exponent must never exceed θ·levels. A
    map n → n + T(V) - T(V') is a bijection, so this bounds every output's probability.
    """
    theta = 2
    shape = Shape(kind, 2, 4)
    streams = list(product(range(theta + 1), repeat=4))
    window = list(product((-1, 0, 2), repeat=6))

    def release(values: tuple[int, ...], noise: tuple[int, ...]) -> list[int]:
        if kind == "consistent":
            tops = [
                consistent_leaves([list(noise[a : a + 2]), [noise[c]]], 2)
                for a, c in ((0, 4), (2, 5))
            ]
            leaves = [n for top in tops for n in whole(top)]
        else:
            n0, _, n2, _, m0, m1 = noise
            leaves = [n0, m0 - n0, n2, m1 - n2]
        return [v + n for v, n in zip(values, leaves, strict=True)]

    for at, other in product(range(4), range(theta + 1)):
        for values in streams[::7]:
            near = (*values[:at], other, *values[at + 1 :])
            true, shifted = (
                [n for level in totals(list(v), 2, 2) for n in level] for v in (values, near)
            )
            change = [t - s for t, s in zip(true, shifted, strict=True)]
            assert sum(map(abs, change)) <= theta * shape.levels
            for noise in window[::11]:
                moved = tuple(n + c for n, c in zip(noise, change, strict=True))
                assert release(values, noise) == release(near, moved)
