"""Variances against brute force, the reference's constants, and simulated noise."""

import hashlib
from collections.abc import Iterator
from fractions import Fraction
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_ldp.continual.shape import Shape
from edge_ldp.continual.smoothers import Exponential, Mean, Moving, Recent, Smoother
from edge_ldp.continual.variance import (
    Run,
    coefficient,
    disjoint,
    node_variance,
    prefix,
    runs_within_chunks,
    value_runs,
    walk,
)
from tests.edge_ldp.continual.test_consistency import eqs_10_and_11

F = Fraction
R = 1 << 20


def pairs(count: int) -> Iterator[tuple[int, int]]:
    """Uniform index pairs of a fixed stream of bytes."""
    words = np.frombuffer(hashlib.shake_128(b"pairs").digest(count * 8), "<u4") % R
    for first, end in words.reshape(-1, 2).tolist():
        yield min(first, end), max(first, end)


@pytest.mark.parametrize(
    ("shape", "constant"),
    [
        (Shape("tree", 2, R), 14400),
        (Shape("tree", 16, R), 3183.5),
        (Shape("consistent", 16, R), 1196.1),
        (Shape("consistent", 16, R, 1), 661.6),
        (Shape("consistent", 16, R, 2), 290.4),
        (Shape("consistent", 16, R, 3), 91.4),
    ],
    ids=str,
)
def test_the_constants_of_the_reference_come_out(shape: Shape, constant: float) -> None:
    """K = 2·levels²·mean coefficient over 2,000 random ranges, ± 2 %."""
    found = [float(coefficient(shape, value_runs(shape, Recent(), *pair))) for pair in pairs(2000)]
    assert 2 * shape.levels**2 * fmean(found) == pytest.approx(constant, rel=0.02)


@st.composite
def weights(draw: st.DrawFn) -> tuple[Shape, list[Run]]:
    fanout = draw(st.integers(2, 4))
    shape = Shape(
        draw(st.sampled_from(["consistent", "causal", "flat", "tree"])),
        fanout,
        draw(st.sampled_from([fanout**2, fanout**2 + 1, 2 * fanout, 16])),
    )
    runs = [
        (min(a, b), max(a, b), F(w, 3))
        for a, b, w in draw(
            st.lists(
                st.tuples(
                    st.integers(0, shape.blocks), st.integers(0, shape.blocks), st.integers(-4, 4)
                ),
                max_size=3,
            )
        )
    ]
    return shape, runs


@given(weights())
def test_coefficients_are_sums_of_squares_over_every_node(case: tuple[Shape, list[Run]]) -> None:
    """Brute force: what each node's noise is multiplied by, from unit trees."""
    shape, runs = case
    c = [sum((w for a, b, w in runs if a <= i < b), F(0)) for i in range(shape.blocks)]
    total = F(0)
    if shape.kind == "flat":
        total = sum((w * w for w in c), F(0))
    elif shape.kind == "consistent":
        for top in range(shape.tops):
            mine = c[top * shape.subtree : (top + 1) * shape.subtree]
            mine += [F(0)] * (shape.subtree - len(mine))
            sizes = [shape.subtree // shape.fanout**level for level in range(shape.levels)]
            for level, size in enumerate(sizes):
                for index in range(size):
                    unit = [[0] * n for n in sizes]
                    unit[level][index] = 1
                    leaves = eqs_10_and_11(unit, shape.fanout)
                    total += sum(w * x for w, x in zip(mine, leaves, strict=True)) ** 2
    else:
        factors: dict[tuple[int, int], Fraction] = {}
        for start, end, w in disjoint(runs):
            nodes = (
                [(n, w) for n in walk(shape, start, end)]
                if shape.kind == "tree"
                else [(n, w) for n in prefix(shape, end)] + [(n, -w) for n in prefix(shape, start)]
            )
            for node, sign in nodes:
                factors[node] = factors.get(node, F(0)) + sign
        total = sum((f * f for f in factors.values()), F(0))
    assert coefficient(shape, runs) == total


@given(st.integers(2, 5), st.integers(1, 200), st.data())
def test_walks_and_prefixes_cover_their_blocks_once(
    fanout: int, chunk: int, data: st.DataObject
) -> None:
    shape = Shape("tree", fanout, chunk)
    first = data.draw(st.integers(0, chunk))
    end = data.draw(st.integers(first, chunk))

    def covered(nodes: Iterator[tuple[int, int]]) -> list[int]:
        return sorted(
            block
            for level, index in nodes
            for block in range(index * fanout**level, (index + 1) * fanout**level)
        )

    assert covered(walk(shape, first, end)) == list(range(first, end))
    assert covered(prefix(shape, end)) == list(range(end))


@pytest.mark.parametrize("smoother", [Recent(), Mean(), Moving(3), Exponential()])
def test_weights_of_a_sum_are_what_the_smoother_does(smoother: Smoother) -> None:
    """A unit in one block moves the sum of released values by that block's weight."""
    shape = Shape("consistent", 4, 64, 1)
    for first, end in [(0, 7), (3, 30), (8, 16), (5, 6), (61, 64)]:
        runs = disjoint(value_runs(shape, smoother, first, end))
        for block in range(16):
            made = type(smoother)()
            if isinstance(smoother, Moving):
                made = Moving(3)
            sums = [F(0)]
            for at in range(16):
                unit = 1_000_000 * (at == block)
                rate = made.total(F(0)) / 4
                sums += [sums[4 * at] + rate * k for k in (1, 2, 3)] + [sums[4 * at] + unit]
                made.add(unit)
            want = (sums[end] - sums[first]) / 1_000_000
            have = sum((w for a, b, w in runs if a <= block < b), F(0))
            assert abs(have - want) < F(1, 100_000)


def test_ranges_over_chunks_fall_apart() -> None:
    assert runs_within_chunks([(3, 25, F(1)), (24, 25, F(-1))], 10) == {
        0: [(3, 10, F(1))],
        1: [(0, 10, F(1))],
        2: [(0, 4, F(1))],
    }


def test_a_node_has_the_variance_of_discrete_laplace_noise() -> None:
    assert node_variance(F(1000)) == pytest.approx(2 * 1000**2, rel=1e-6)
    assert node_variance(F(1, 2)) == pytest.approx(2 * 0.135335 / 0.864665**2, rel=1e-5)


def test_a_tree_for_readings_that_react_has_two_and_a_half_times_the_variance() -> None:
    """The price of "causal" beside "consistent", on average over sums of random ranges."""
    chunk = 16**3
    pairs = np.sort(np.random.default_rng(5).integers(0, chunk, (200, 2)), axis=1)
    causal, consistent = (
        sum(
            float(coefficient(Shape(kind, 16, chunk), [(a, b + 1, F(1))]))
            for a, b in pairs.tolist()
        )
        for kind in ("causal", "consistent")
    )
    assert 2.3 < causal / consistent < 2.7
