"""What the trees' privacy rests on, seen in real releases: one reading moves little, noise fits.

One changed reading moves one node in each level, by θ at most; every node's noise is discrete
Laplace of scale θ·levels/ε. Both together are ε-DP, whatever the other readings are.
"""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_ldp.continual import Curator, Design, Fixed, Shape
from tests.edge_ldp.continual.paths import noise_from

F = Fraction
THETA = 5
readings = st.lists(st.integers(0, 9), min_size=16, max_size=16)


def nodes(kind: str, values: list[int]) -> list[int]:
    """Every number that is released, from one key; of consistent and causal trees, the leaves."""
    design = Design(Fixed(THETA), Shape(kind, 2, 16), F(1), 9, 0)
    curator = Curator(design, draw=noise_from(3))
    found = []
    for value in values:
        release = curator.push(value)
        found += [release.value or 0, *release.nodes]
    return found


@pytest.mark.parametrize("kind", ["flat", "tree", "causal", "consistent"])
@given(values=readings, at=st.integers(0, 15), other=st.integers(0, 9))
def test_a_changed_reading_moves_one_node_a_level_by_theta_at_most(
    kind: str, values: list[int], at: int, other: int
) -> None:
    near = [*values[:at], other, *values[at + 1 :]]
    change = abs(min(other, THETA) - min(values[at], THETA))
    moved = [abs(a - b) for a, b in zip(nodes(kind, values), nodes(kind, near), strict=True)]
    levels = 4 if kind == "tree" else 1
    assert sorted(moved, reverse=True)[:levels] == [change] * levels
    assert sum(moved) == levels * change


@pytest.mark.parametrize("fanout", [2, 3, 16])
@pytest.mark.parametrize("kind", ["flat", "tree", "causal", "consistent"])
def test_every_node_has_noise_of_scale_theta_levels_over_epsilon(kind: str, fanout: int) -> None:
    for pruned in (0, 1) if kind != "tree" else (0,):
        shape = Shape(kind, fanout, fanout**3, pruned)
        curator = Curator(Design(Fixed(THETA), shape, F(1, 7), 9, 0), draw=noise_from(1))
        curator.push(1)
        assert curator.chunk is not None
        levels = 1 if kind == "flat" else 3 - pruned
        assert curator.chunk.noise.scale == THETA * levels * 7
