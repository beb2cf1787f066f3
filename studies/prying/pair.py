"""How sure an attacker is after a day whether a home drew 400 or 700 W, by the stream's range.

    python -m studies.prying.pair

He knows that it is one of the two, all day, each as likely, and guesses by Bayes' rule from the
eight reports of a day at ε 1. *Usual plan*: hybrid, 16 points, at the least θ that the default
bounds admit; *sharpest form*: the best of all admitted forms of `attacker`, from there up to thrice
that θ; *sharpest table*: the best found of tables that are made for this pair, as a plan may carry
(`pointed`). *No plan*: what the bounds themselves leave, whatever is sent, also if each report
followed from those before. Exact laws of eight reports, by convolution of log-likelihood ratios on
a grid of 0.001. Held by `tests/studies/prying`.
"""

from __future__ import annotations

import sys
from math import asin, cos, sin, sqrt
from typing import TYPE_CHECKING

import numpy as np

from edge_ldp import Hybrid, SquareWave, Tuned
from edge_ldp.mechanisms.tuned import Response
from edge_ldp.protocol.plan_bounds import PlanBounds, information, least_theta
from studies.prying.attacker import RATIO, admitted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from edge_ldp import Mechanism
    from studies.prying.attacker import Floats

REPORTS = 8
PAIR = (400, 700)  # W
RANGES = ((0, 43_470), (0, 17_250), (550, 1054))
DEFAULT = PlanBounds()
KNOTS, AWAY = 256, 64  # of a table: 768 weights; its outer codes stand for so many half ranges
FIRST = (0.05, 0.07, 0.0943, 0.12, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9)  # shares of the middle code
WIDER = 20  # tenths of θ more
_STEP = 1e-3


def law(mechanism: Mechanism, value: int) -> Floats:
    """Return the probability of each code for a value, which is clamped to the range."""
    inside, parts = min(max(value, mechanism.low), mechanism.high), []
    for coin, _, channel in mechanism.branches:
        row = np.zeros(channel.code_count)
        for i, share in mechanism.inputs(inside, channel):
            weights = [channel.weight(i, j) for j in range(channel.code_count)]
            row += float(share) * np.array(weights, dtype=np.float64)
        parts.append(float(coin) * row / channel.total)
    found: Floats = np.concatenate(parts)
    return found


def error(first: Floats, second: Floats, reports: int = REPORTS) -> float:
    """Return the probability that the better guess of two laws is wrong after so many reports."""
    there = (first > 0) & (second > 0)  # both or neither: ε is finite
    first, second = first[there], second[there]
    cells = np.round(np.log(first / second) / _STEP).astype(np.int64)
    cells -= cells.min()
    size = 1 << int(np.ceil(np.log2((cells.max() + 1) * reports + 1)))
    both = (np.bincount(cells, one, size) for one in (first, second))
    sums = [np.fft.irfft(np.fft.rfft(one) ** reports, size) for one in both]
    return float(np.minimum(*np.clip(sums, 0, 1)).sum() / 2)


def usual(low: int, ceiling: int) -> Mechanism:
    """Return the hybrid at the least θ of a range."""
    shape, form = DEFAULT, Hybrid(epsilon=1, low=low, high=ceiling, size=16)
    theta = least_theta(form, shape, low=low, ceiling=ceiling, ratio=RATIO)
    return Hybrid.from_plan({**form.to_plan(), "high": theta})


def confused(mechanism: Mechanism, shift: int = 0) -> float:
    """Return the error between the two powers, `shift` W taken off both."""
    first, second = (law(mechanism, power - shift) for power in PAIR)
    return error(first, second)


def sharpest(low: int, ceiling: int, shape: PlanBounds = DEFAULT) -> float:
    """Return the least error of all admitted forms and θ; a range from `low` on is one from 0."""
    forms = admitted(shape, ceiling - low)
    return min(confused(one, shift=low) for form in forms for one in _wider(form, ceiling - low))


def pointed(low: int, ceiling: int, shape: PlanBounds = DEFAULT) -> float:
    """Return the least error of admitted tables that are made for the pair.

    Of three codes the middle one turns rarer from one power to the other, by as much in each watt
    as the bounds admit; the outer two stand for values so far off that their means say the rest.
    """
    most = 1 / float(shape.least_square(ceiling - low, RATIO))
    made = (_pointed(first, ceiling - low, shape) for first in FIRST)
    admitted = [
        one
        for one in made
        if information(one) <= most and one.randomizer.within(RATIO.num, RATIO.den)
    ]
    return min(confused(one, shift=low) for one in admitted)


def least_error(low: int, ceiling: int, shape: PlanBounds = DEFAULT) -> float:
    """Return an error that no plans within a shape go below, whatever their reports.

    The guess of two laws of affinity a is wrong in (1 − √(1 − a²))/2 or more; affinities of reports
    multiply. A sum's information is at most 1/σ², so its laws under two values d apart lie within
    the angle d/2σ of each other (Hellinger's), and their affinity is at least its cosine.
    """
    span = ceiling - low
    least = min(cos(_angle(span, shape)), survey_affinity(low, ceiling, shape))
    return (1 - sqrt(1 - least ** (2 * REPORTS))) / 2


def survey_affinity(low: int, ceiling: int, shape: PlanBounds = DEFAULT) -> float:
    """Return the least affinity of both powers' laws by a survey of any admitted size and width."""
    values, (num, den) = ceiling - low + 1, (RATIO.num, RATIO.den)
    sizes = {1 << bits for bits in range(1, shape.survey_buckets.bit_length())} | {values}
    least = 1.0
    for size in (one for one in sizes if one <= min(values, shape.survey_buckets)):
        first, second = (min(max(at - low, 0), values - 1) * size // values for at in PAIR)
        for c in range(size + 1):
            apart = min(second - first, 2 * c + 1)  # codes on each side that weigh otherwise
            total = (2 * c + 1) * num + (size - 1) * den
            least = min(least, 1 - apart * (sqrt(num) - sqrt(den)) ** 2 / total)
    return least


def _angle(span: int, shape: PlanBounds) -> float:
    """Return the angle between the laws of a report under both powers, at most."""
    return (PAIR[1] - PAIR[0]) / 2 / sqrt(shape.least_square(span, RATIO))


def _pointed(first: float, span: int, shape: PlanBounds) -> Mechanism:
    theta = -(-span >> shape.theta_halvings)
    total = (1 << 34) // (2 * AWAY * (KNOTS - 1)) * (2 * AWAY * (KNOTS - 1))
    slope = 0.985 * _angle(span, shape) / (PAIR[1] - PAIR[0])  # less what a knot's width adds
    rows = []
    for knot in range(KNOTS):
        value = min(max(knot * theta / (KNOTS - 1), PAIR[0]), PAIR[1])
        middle = int(sin(asin(sqrt(first)) - slope * (value - PAIR[0])) ** 2 * total)
        apart = total * (2 * knot - KNOTS + 1) // ((KNOTS - 1) * AWAY)
        middle += (total - middle - apart) % 2
        rows.append(((total - middle - apart) // 2, middle, (total - middle + apart) // 2))
    return Tuned.of(Response(tuple(rows), (-AWAY, 0, AWAY), 1), low=0, high=theta)


def _wider(form: Mechanism, ceiling: int) -> Iterator[Mechanism]:
    """Yield a form and, of a sum, the same at higher θ, where its borders lie elsewhere."""
    yield form
    if not isinstance(form, SquareWave):
        for tenths in range(1, WIDER + 1):
            theta = form.high * (10 + tenths) // 10
            if theta <= ceiling:
                yield type(form).from_plan({**form.to_plan(), "high": theta})


def main() -> int:
    """Print the table."""
    sys.stdout.write("low, ceiling      usual plan  sharpest form  sharpest table  no plan\n")
    for low, ceiling in RANGES:
        told = [confused(usual(low, ceiling)), sharpest(low, ceiling)]
        told += [pointed(low, ceiling), least_error(low, ceiling)]
        row = "".join(f"{one:>14.1%}" for one in told)
        sys.stdout.write(f"{low:>5} {ceiling:>8} W  {row}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
