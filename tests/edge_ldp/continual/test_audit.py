"""Neighbouring streams audited: what their releases tell apart stays below ε, and is seen if not.

Two streams of four readings differ in one, by θ. A false accusation has a chance of 10⁻⁶ an audit.
"""

from collections import Counter
from fractions import Fraction
from hashlib import shake_256
from math import log

import pytest

from edge_ldp.continual import Curator, Design, Fixed, NoisyMax, Shape
from edge_ldp.device.draw import Draw
from tests.edge_ldp.audit import epsilon_at_least

F = Fraction
COUNT = 10_000
TREE = Shape("consistent", 16, 1 << 20)


def tape(label: str) -> Draw:
    block = 0

    def entropy(size: int) -> bytes:
        nonlocal block
        block += 1
        return shake_256(f"{label} {block}".encode()).digest(size)

    return Draw(entropy, 512)


def released(kind: str, epsilon: Fraction) -> float:
    """Audit the first reading, 0 or θ = 3, from all four releases and their nodes."""
    design = Design(Fixed(3), Shape(kind, 2, 4), epsilon, 3, 0)
    draw = tape(kind).below

    def perturb(value: int) -> int:
        curator = Curator(design, draw=draw)
        made = [curator.push(reading) for reading in (value, 1, 2, 1)]
        code = 0
        for number in [made[0].value or 0, sum(r.value or 0 for r in made[:2]), *made[1].nodes]:
            code = code * 9 + min(8, max(0, number // 3 + 4))
        return code

    return epsilon_at_least(perturb, (0, 3), COUNT)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["flat", "tree", "causal", "consistent"])
def test_released_streams_of_neighbours_stay_within_epsilon(kind: str) -> None:
    assert 0 < released(kind, F(1)) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["flat", "tree", "causal", "consistent"])
def test_too_little_noise_is_seen(kind: str) -> None:
    """As if the levels, or a budget of 2, had been forgotten."""
    assert released(kind, F(3)) > 1


@pytest.mark.parametrize("noise", ["exponential", "laplace"])
@pytest.mark.parametrize(("epsilon", "is_sound"), [(F(1), True), (F(3), False)])
def test_thresholds_of_neighbours_stay_within_epsilon(
    noise: str, epsilon: Fraction, *, is_sound: bool
) -> None:
    optimiser = NoisyMax(4, TREE, F(1), epsilon, noise)
    draw = tape(f"{noise} {epsilon}").below
    found = epsilon_at_least(
        lambda value: optimiser.choose(Counter([value, 1, 1]), draw), (0, 4), COUNT
    )
    assert (found <= 1) == is_sound
    assert found > log(1.2)
