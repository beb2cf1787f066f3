"""Exact laws by running every draw: no tolerance, no seed, no flakiness."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from math import prod
from typing import TypeVar

from edge_ldp import Mechanism
from edge_ldp.device.draw import Draw
from edge_ldp.mechanisms import (
    Hybrid,
    Piecewise,
    Response,
    SquareWave,
    StochasticRounding,
    Tuned,
    from_plan,
)

T = TypeVar("T")
Uniform = Callable[[int], int]
Law = dict[int, Fraction]


def scripted(*answers: int) -> Uniform:
    """Return a draw that replays a list."""
    left = list(answers)

    def draw(n: int) -> int:
        answer = left.pop(0)
        assert 0 <= answer < n
        return answer

    return draw


def outcomes(run: Callable[[Uniform], T]) -> Iterator[tuple[tuple[int, ...], T]]:
    """Run with every possible sequence of draws; yield (the n's asked for, the result) of each.

    One outcome's probability is 1 / prod(asked).
    """
    script: list[int] = []
    while True:
        asked: list[int] = []

        def draw(n: int, asked: list[int] = asked) -> int:
            if len(asked) == len(script):
                script.append(0)
            asked.append(n)
            return script[len(asked) - 1]

        result = run(draw)
        assert len(asked) == len(script)
        yield tuple(asked), result
        while script and script[-1] + 1 == asked[len(script) - 1]:
            script.pop()
        if not script:
            return
        script[-1] += 1


def exact_law(run: Callable[[Uniform], int]) -> Law:
    """Return the probability of every reachable result, exactly."""
    law: Law = {}
    for asked, result in outcomes(run):
        law[result] = law.get(result, Fraction(0)) + Fraction(1, prod(asked))
    return law


def law_of(mechanism: Mechanism, value: int) -> Law:
    """Return the law of the report for one value."""
    return exact_law(lambda draw: mechanism.perturb(value, draw=draw))


def small(
    kind: type[Mechanism],
    low: int,
    high: int,
    *waves: tuple[int, int, int, int],
    coin: tuple[int, int] = (1, 1),
) -> Mechanism:
    """Return a mechanism of few integers, so that all its draws can be run."""
    return from_plan(
        {
            "mechanism": kind.name,
            "low": low,
            "high": high,
            "coin": list(coin),
            "waves": [list(wave) for wave in waves],
        }
    )


def bumped(low: int, high: int, d: int, r_den: int, weights: tuple[int, ...]) -> Mechanism:
    """Return a general wave of few integers."""
    shape = {"d": d, "r_den": r_den, "weights": list(weights)}
    return from_plan({"mechanism": "general-wave", "low": low, "high": high, "profile": shape})


def listed(
    low: int, high: int, rows: list[list[int]], outputs: tuple[int, ...], scale: int
) -> Mechanism:
    """Return a tuned mechanism of few integers."""
    response = Response(tuple(tuple(row) for row in rows), outputs, scale)
    return Tuned.of(response, low=low, high=high)


SQUARE_WAVES = [
    small(SquareWave, 0, 3, (4, 2, 3, 1)),  # one value per bucket, wide
    small(SquareWave, -3, 7, (4, 1, 5, 2)),  # 11 values in 4 buckets: unequal buckets
    small(SquareWave, -9, -2, (2, 0, 7, 3)),  # no neighbours: randomised response
    small(SquareWave, 0, 5, (3, 3, 4, 3)),  # the wave is wider than the range
]
ROUNDINGS = [
    small(StochasticRounding, 0, 1, (2, 0, 3, 1)),
    small(StochasticRounding, -2, 5, (2, 0, 8, 3)),
]
PIECEWISES = [
    small(Piecewise, 0, 8, (5, 1, 5, 2)),  # the lattice is made of integers
    small(Piecewise, -3, 7, (4, 2, 3, 1)),  # it is not
    small(Piecewise, 0, 2, (6, 1, 4, 3)),  # finer than the integers
]
HYBRIDS = [
    small(Hybrid, 0, 4, (3, 1, 5, 2), (2, 0, 5, 2), coin=(3, 8)),
    small(Hybrid, -3, 2, (4, 1, 3, 1), (2, 0, 2, 1), coin=(1, 3)),  # branches of unequal ratio
    small(Hybrid, 0, 4, (3, 1, 5, 2), (2, 0, 5, 2), coin=(0, 4)),  # as below ε 0.61
    small(Hybrid, -1, 2, (3, 0, 5, 2), (2, 0, 5, 2), coin=(4, 4)),
]
GENERAL_WAVES = [
    bumped(0, 5, 6, 1, (2, 3, 2)),  # one value per bucket
    bumped(-3, 7, 4, 2, (3, 4, 7, 4, 3)),  # unequal buckets; the window is wider than the range
    bumped(0, 8, 3, 2, (5,)),  # no neighbours: randomised response
]
TUNEDS = [
    listed(0, 4, [[3, 2, 1], [2, 2, 2], [1, 2, 3]], (-3, 0, 3), 1),
    listed(-3, 4, [[5, 3, 1, 1], [1, 1, 3, 5]], (-4, -2, 2, 4), 2),  # two knots, no middle
    listed(0, 1, [[3, 2, 1], [2, 2, 2], [1, 2, 3]], (-3, 0, 3), 1),  # finer than the integers
]
BUCKETED = SQUARE_WAVES + GENERAL_WAVES
LATTICED = ROUNDINGS + PIECEWISES + HYBRIDS + TUNEDS
ALL: list[Mechanism] = [*BUCKETED, *LATTICED]


def inside_and_out(mechanism: Mechanism) -> range:
    """Return every integer of the range and some on both sides of it."""
    return range(mechanism.low - 2, mechanism.high + 3)


class Bytes:
    """An entropy source that replays bytes and knows what was asked of it."""

    def __init__(self, replayed: bytes) -> None:
        self.left = replayed
        self.asked: list[int] = []

    def __call__(self, size: int) -> bytes:
        """Return the next bytes; fewer at the end."""
        self.asked.append(size)
        given, self.left = self.left[:size], self.left[size:]
        return given


def words(*numbers: int) -> bytes:
    """Return numbers as the little-endian words that the draws read."""
    return b"".join(number.to_bytes(8, "little") for number in numbers)


def draw_from(replayed: bytes) -> tuple[Draw, Bytes]:
    """Return a scalar draw on exactly these bytes, and the source to look at."""
    source = Bytes(replayed)
    return Draw(source, block_words=1), source
