"""What a table claims and what it is worth, from its integers alone."""

from fractions import Fraction
from itertools import pairwise

import numpy as np

from edge_ldp.mechanisms import Response
from edge_ldp.ratio import Ratio
from studies.tuning.tables import TOTAL


def moments(response: Response) -> list[Fraction]:
    """Return the exact mean square on [-1, 1] under each knot."""
    squares = [y * y for y in response.outputs]
    unit = TOTAL * response.scale**2
    return [
        Fraction(sum(w * y for w, y in zip(row, squares, strict=True)), unit)
        for row in response.weights
    ]


def worst_variance(response: Response) -> Fraction:
    """Return the exact largest variance over the real interval, from its mean squares.

    Between knots the mean square is linear in x, so the variance a + b·x − x² has its top at b/2
    or at an end.
    """
    last = len(response.weights) - 1
    places = [Fraction(2 * i - last, last) for i in range(last + 1)]
    tops = []
    for (left, at_left), (right, at_right) in pairwise(zip(places, moments(response), strict=True)):
        slope = (at_right - at_left) / (right - left)
        top = min(max(slope / 2, left), right)
        tops.append(at_left + slope * (top - left) - top * top)
    return max(tops)


def expected_variance(response: Response, density: np.ndarray) -> float:
    """Return the variance expected under equal cells' probabilities, by 1000 points a cell."""
    cells = len(density)
    x = (np.arange(cells * 1000) + 0.5) * 2 / (cells * 1000) - 1
    knots = np.linspace(-1, 1, len(response.weights))
    law = np.interp(x, knots, [float(m) for m in moments(response)]) - x * x
    return float(law @ np.repeat(density / 1000, 1000))


def assert_sound(response: Response, ratio: Ratio) -> None:
    """Check row totals, ratio, bias, signs and order, by fractions and the definition."""
    last = len(response.weights) - 1
    assert all(type(w) is int and w > 0 for row in response.weights for w in row)
    assert {sum(row) for row in response.weights} == {TOTAL}
    for j in range(len(response.outputs)):
        column = [row[j] for row in response.weights]
        assert Fraction(max(column), min(column)) <= Fraction(ratio.num, ratio.den)
    for i, row in enumerate(response.weights):
        mean = sum(w * y for w, y in zip(row, response.outputs, strict=True))
        bias = Fraction(mean, TOTAL * response.scale) - Fraction(2 * i - last, last)
        assert abs(bias) / 2 <= Fraction(1, 1 << 30)
    assert list(response.outputs) == sorted(set(response.outputs))


def is_symmetric(response: Response) -> bool:
    turned = tuple(row[::-1] for row in response.weights[::-1])
    return turned == response.weights and [-y for y in response.outputs[::-1]] == list(
        response.outputs
    )


def meter_like(scale: float) -> np.ndarray:
    """Return an exponential density on 40 cells; `scale` in units of the range."""
    mass = np.exp(-(np.arange(40) + 0.5) / 40 / scale)
    density: np.ndarray = mass / mass.sum()
    return density
