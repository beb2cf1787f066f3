"""The audit accuses what is broken, each way in which samplers break, and nothing that is sound."""

from collections.abc import Callable
from hashlib import shake_256
from math import log

import pytest

from edge_ldp import GeneralWave, Hybrid, Mechanism, Piecewise, SquareWave, StochasticRounding
from edge_ldp.device.channel import wave
from edge_ldp.device.draw import Draw
from tests.edge_ldp.audit import epsilon_at_least

COUNT = 50_000
EPSILON = 1.0

SOUND: list[Mechanism] = [
    StochasticRounding(epsilon=1, low=0, high=99),
    Piecewise(epsilon=1, low=0, high=99, size=16),
    Hybrid(epsilon=1, low=0, high=99, size=16),
    SquareWave(epsilon=1, low=0, high=99, size=16),
    GeneralWave(epsilon=1, low=0, high=99, size=16),
]


def tape(label: str) -> Draw:
    """Return draws from a seeded stream, so that a run is the same every time."""
    block = 0

    def entropy(size: int) -> bytes:
        nonlocal block
        block += 1
        return shake_256(f"{label} {block}".encode()).digest(size)

    return Draw(entropy, 512)


@pytest.mark.parametrize("m", SOUND, ids=repr)
def test_a_sound_mechanism_is_not_accused_PRV_08(m: Mechanism) -> None:
    draw = tape(repr(m)).below
    found = epsilon_at_least(lambda v: m.perturb(v, draw=draw), (m.low, m.high), COUNT)
    assert found <= EPSILON
    assert found > 0.3  # and the audit is not blind


def rounded_up(index: int, draw: Callable[[int], int]) -> int:
    """Randomised response whose odds e are rounded up to 3."""
    return wave(2, 0, 3, 1).sample(index, draw)


def one_code_short(index: int, draw: Callable[[int], int]) -> int:
    """A square wave with `<=` for `<`: the first code after the window is never drawn."""
    made = wave(9, 2, 3, 1)
    u = draw(made.total)
    if u < made.near_total:
        return index + u // made.r_num
    k = (u - made.near_total) // made.r_den
    return k if k <= index else k + 2 * made.c + 1


def one_code_wide(index: int, draw: Callable[[int], int]) -> int:
    """A square wave whose window is one code wider than its total says."""
    u = draw(25)  # (2c + 1)·3 + 8·1 would be 23
    return index + u // 3 if u < 18 else (k := u - 18) + 6 * (k >= index)


def without_rejection(index: int, draw: Callable[[int], int]) -> int:
    """Randomised response on a short word without rejection: 5 values for 4."""
    return index ^ (draw(5) % 4 == 3)


@pytest.mark.parametrize(
    ("sample", "values", "epsilon"),
    [
        (rounded_up, (0, 1), EPSILON),
        (one_code_short, (4, 8), log(3)),
        (one_code_wide, (0, 8), log(3)),
        (without_rejection, (0, 1), log(3)),
    ],
)
def test_a_broken_sampler_is_accused(
    sample: Callable[[int, Callable[[int], int]], int], values: tuple[int, int], epsilon: float
) -> None:
    draw = tape(sample.__name__).below
    one, other = values
    found = max(
        epsilon_at_least(lambda v: sample(v, draw), pair, COUNT)
        for pair in ((one, other), (other, one))
    )
    assert found > epsilon
