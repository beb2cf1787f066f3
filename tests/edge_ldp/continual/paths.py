"""Draws for tests, and laws of samplers that may draw for ever: paths down to a smallest chance."""

from collections.abc import Callable
from fractions import Fraction
from math import prod

from edge_ldp.ratio import exp_fraction

Uniform = Callable[[int], int]
Flip = Callable[[Fraction], bool]
Law = dict[int, Fraction]


class TooUnlikelyError(Exception):
    """The path is cut here."""


def noise_from(seed: int) -> Uniform:
    """Return repeatable uniform integers."""
    state = [seed]

    def draw(n: int) -> int:
        state[0] = (state[0] * 0x9E3779B97F4A7C15F39CC0605CEDC835 + 1) % (1 << 128)
        return (state[0] >> 32) % n

    return draw


def bounded_law(run: Callable[[Uniform], int], least: Fraction) -> tuple[Law, Fraction]:
    """Return each result's probability over all paths above `least`, and what was cut off."""
    script: list[int] = []
    law: Law = {}
    cut = Fraction(0)
    while True:
        asked: list[int] = []

        def draw(n: int, asked: list[int] = asked) -> int:
            if len(asked) == len(script):
                if Fraction(1, prod(asked) * n) < least:
                    raise TooUnlikelyError
                script.append(0)
            asked.append(n)
            return script[len(asked) - 1]

        try:
            result = run(draw)
            law[result] = law.get(result, Fraction(0)) + Fraction(1, prod(asked))
        except TooUnlikelyError:
            cut += Fraction(1, prod(asked))
        while script and script[-1] + 1 == asked[len(script) - 1]:
            script.pop()
        if not script:
            return law, cut
        script[-1] += 1


def flipped_law(run: Callable[[Uniform, Flip], int]) -> Law:
    """Return the law of what draws uniform integers and flips e^-x, exact to 2^-150."""
    law: Law = {}
    todo: list[tuple[tuple[int, ...], Fraction]] = [((), Fraction(1))]
    while todo:
        script, _ = todo.pop()
        chance = Fraction(1)
        at = 0

        def step(weights: list[Fraction], script: tuple[int, ...] = script) -> int:
            nonlocal chance, at
            at += 1
            if at <= len(script):
                choice = script[at - 1]
            else:
                raise _Branch(weights)
            chance *= weights[choice]
            return choice

        def draw(n: int) -> int:
            return step([Fraction(1, n)] * n)

        def flip(x: Fraction) -> bool:
            heads = exp_fraction(-x)
            return step([1 - heads, heads]) == 1

        try:
            result = run(draw, flip)
            law[result] = law.get(result, Fraction(0)) + chance
        except _Branch as branch:
            todo += [((*script, c), w) for c, w in enumerate(branch.weights) if w]
    return law


class _Branch(Exception):  # noqa: N818 - no error, a place where the law branches
    def __init__(self, weights: list[Fraction]) -> None:
        super().__init__()
        self.weights = weights
