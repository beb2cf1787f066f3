"""Attacks that must fail here, each with a control: docs/methods.md, Attacks."""

from fractions import Fraction
from hashlib import shake_256
from math import exp, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from edge_ldp import Hybrid, Mechanism, StochasticRounding
from edge_ldp.protocol.ledger import Window
from tests.edge_ldp.laws import ALL, inside_and_out, law_of

if TYPE_CHECKING:
    Counts = np.ndarray[Any, np.dtype[np.int64]]

FALSE_ALARM = 0.001  # of each statistical test below, by a normal tail with Bonferroni over codes


# 1 Support: outputs that are possible under one input only


E = exp(1)
HALF_WIDTH = 1 / (2 * E * (E - 2))  # b at ε = 1
STEPS = 1 << 53  # random() is k / 2^53


def naive_square_wave(value: float, spread: float, *, near: bool) -> float:
    """The square wave as it is usually written: in doubles, value in [0, 1], ε = 1."""
    if near:
        return value - HALF_WIDTH + 2 * HALF_WIDTH * spread
    return spread - HALF_WIDTH if spread < value else spread + HALF_WIDTH


def is_possible(output: float, value: float) -> bool:
    """Say whether any state of the generator leads from the value to the output."""
    inverses = {
        True: [(output - value + HALF_WIDTH) / (2 * HALF_WIDTH)],
        False: [output + HALF_WIDTH, output - HALF_WIDTH],
    }
    return any(
        0 <= k < STEPS and naive_square_wave(value, k / STEPS, near=near) == output
        for near, spreads in inverses.items()
        for spread in spreads
        for k in range(int(spread * STEPS) - 8, int(spread * STEPS) + 9)
    )


def test_the_support_attack_finds_a_naive_float_square_wave() -> None:
    """The control: with doubles, many outputs cannot come from another value."""
    stream = shake_256(b"support").digest(8 * 400)
    spreads = [
        (int.from_bytes(stream[at : at + 8], "little") >> 11) / STEPS
        for at in range(0, len(stream), 8)
    ]
    outputs = [naive_square_wave(0.3, spread, near=True) for spread in spreads]
    assert all(is_possible(output, 0.3) for output in outputs)
    telling = sum(not is_possible(output, 0.7) for output in outputs) / len(outputs)
    assert 0.03 < telling < 0.75  # docs/methods.md, Attacks: 3–73 %, by the pair of values


@pytest.mark.parametrize("m", ALL, ids=repr)
def test_every_value_reaches_the_same_codes_and_all_that_are_served(m: Mechanism) -> None:
    reached = {frozenset(law_of(m, value)) for value in inside_and_out(m)}
    served = {
        code
        for coin, first, wave in m.branches
        if coin
        for code in range(first, first + wave.code_count)
    }
    assert reached == {frozenset(served)}


# 2 A law that is not what is stated: rounding, modulo bias, a wrong comparison (PRV_08)


def excess(counts: "Counts", law: list[Fraction]) -> float:
    """Return by how many bounds the worst code's count differs from its law; 1 is an alarm."""
    n = int(counts.sum())
    p = np.array([float(share) for share in law])
    bound = NormalDist().inv_cdf(1 - FALSE_ALARM / 2 / len(law))
    return float((np.abs(counts - n * p) / np.sqrt(n * p * (1 - p) + 1e-300)).max() / bound)


def test_modulo_bias_of_a_short_word_is_caught() -> None:
    """The control for rejection: 16-bit words without it favour small codes."""
    m = StochasticRounding(epsilon=1, low=0, high=1)
    (wave,) = m.randomizer.channels
    biased = np.array([0, 0])
    for word in range(1 << 16):  # every word once: the law itself
        biased[wave.sample(0, lambda n: word % n)] += 1  # noqa: B023
    assert excess(biased * 100, m.probabilities(0)) > 1


# 7 Averaging: constant readings over n slots (PRV_11)


def reports_of(days: int, window: Window, slots_a_day: int = 96) -> int:
    """Return the most reports that a window allows in so many days."""
    return -(-days * slots_a_day // window.slots) * window.reports


def test_the_window_makes_a_year_of_averaging_twelve_times_less_than_every_slot() -> None:
    allowed = reports_of(365, Window(8, 97, 1))
    assert allowed == 2896
    m = Hybrid(epsilon=1, low=0, high=1000)
    assert sqrt(m.variance(300) / allowed) == pytest.approx(19.2, abs=0.1)
    assert sqrt(m.variance(300) / (365 * 96)) < 6
