"""Sums of released values, and how far off they may be."""

from fractions import Fraction
from itertools import accumulate

import pytest

from edge_ldp import ParameterError
from edge_ldp.continual import Release, Released, tops_design
from tests.edge_ldp.continual.streams import DESIGNS, READINGS, SMALL, run

F = Fraction


@pytest.mark.parametrize("keys", [10, pytest.param(40, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["tree", "odd tree", "unpruned", "causal", "flat", "public"])
def test_intervals_cover_the_sum_that_was_cut_at_theta(name: str, keys: int) -> None:
    """60 ranges of each key: at least 90 % where 95 are promised (ranges of a key overlap)."""
    design = DESIGNS[name]
    covered = count = 0
    size = design.shape.block
    for seed in range(keys):
        made = run(design, [*READINGS], seed)
        collected = Released(design)
        for release in made:
            collected.add(release)
        theta = max(release.theta or 0 for release in made)
        for k in range(60):
            first = design.readings + k // size * size
            end = first + (1 + k * k % (290 - k)) // size * size
            low, high = collected.range(first, end).interval()
            true = sum(min(reading, theta) for reading in READINGS[first:end])
            covered += low - 2 <= true <= high + 2
            count += 1
    assert covered / count > 0.90


def test_sums_over_a_tree_are_walked_over_its_nodes() -> None:
    """With the noise of a wide walk taken off, exactly the readings: also over two chunks."""
    design = tops_design(**{**SMALL, "chunk": 41}, pruned=0, kind="tree", theta=50)
    real, zero = Released(design), Released(design)
    for release, other in zip(run(design, [*READINGS]), run(design, [0] * 300), strict=True):
        real.add(release)
        zero.add(other)
    clamped = [0, *accumulate(min(reading, 50) for reading in READINGS)]
    for first, end in [(0, 300), (3, 4), (7, 7), (20, 66), (41, 82), (1, 299)]:
        difference = real.range(first, end).total - zero.range(first, end).total
        assert difference == clamped[end] - clamped[first]


def test_ranges_that_cannot_be_are_refused() -> None:
    collected = Released(DESIGNS["public"])
    collected.add(Release(4, 1, 9))
    with pytest.raises(ParameterError):
        collected.add(Release(4, 1, 9))
    with pytest.raises(ParameterError):
        collected.range(5, 4)
    with pytest.raises(ParameterError):
        collected.range(0, 9).interval(1)
    assert collected.range(5, 9).readings == 0


def test_a_medians_share_of_the_noise_is_not_claimed() -> None:
    collected = Released(DESIGNS["median"])
    for release in run(DESIGNS["median"], [*READINGS]):
        collected.add(release)
    assert collected.range(10, 14).is_exact
    assert not collected.range(10, 15).is_exact
