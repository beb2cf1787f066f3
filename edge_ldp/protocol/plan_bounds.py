"""The shape of plans: how sharply a sequence of them may ask, as the owner of a device bounds it.

ε bounds what one report tells, whatever a plan asks. It does not bound how cleverly many plans ask:
a θ next to a home's base load, or survey borders that move, find a constant as by a binary search.
So `low` is the owner's, θ and survey ranges are the owner's range or a stated part of it, borders
of survey buckets lie on one fixed grid, and no stream report tells more of a value than a stated
multiple of what plain rounding tells. From the last one follows a bound for every attacker, also
one that chooses each plan by all that came before (docs/privacy.md, studies/prying).
All integers, rounded against the plan. Sources: docs/design.md, Privacy model; docs/faults.md,
PLN-14.
"""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from math import isqrt
from typing import Any, NamedTuple

from edge_ldp.device.channel import Wave
from edge_ldp.lean_class import lean_class
from edge_ldp.mechanisms import Mechanism
from edge_ldp.ratio import Ratio

TYPE_CHECKING = False
if TYPE_CHECKING:
    from edge_ldp.device.channel import Channel

DAY_S = 86_400
_SCALE = 1 << 40  # of sums of fractions that are rounded up
# the number that a plan beyond a bound asks for, and the most that an owner can give
_NUMBERS = {
    "narrow": ("theta_halvings", 40),
    "sharp": ("theta_halvings", 40),
    "survey": ("survey_halvings", 40),
    "buckets": ("survey_buckets", 1 << 16),
}


@lean_class(frozen=True, slots=True)
class PlanBounds:
    """What an owner lets plans ask; smaller numbers and longer times are tighter.

    `theta_halvings`: θ − low is at least the range halved so often; `survey_halvings`: a survey's
    range is the whole one, halved at most so often, from low on; `survey_buckets`: the finest grid
    of a survey over the whole range, a power of two; `survey_share`: of slots, at most.
    `sharpness`: information of a stream report about a value, at most, in multiples of what
    stochastic rounding at the policy's ratio and the least θ gives. A plan stays in force for at
    least `days` and `reports` of its stream, a θ for at least `range_days`.
    """

    theta_halvings: int = 4
    survey_halvings: int = 0
    survey_buckets: int = 1024
    survey_share: Fraction = Fraction(1)
    sharpness: int = 3
    days: int = 1
    reports: int = 8
    range_days: int = 7

    def least_square(self, span: int, ratio: Ratio) -> Fraction:
        """Return the square of the standard error that a stream report has at least, unit².

        Stochastic rounding over [0, s] tells at most (num − den)²/(num·den)/s².
        """
        smallest = Fraction(span, 1 << self.theta_halvings)
        step = ratio.num - ratio.den
        return smallest**2 * Fraction(ratio.num * ratio.den, self.sharpness * step * step)


class PlanRequest(NamedTuple):
    """What a plan asks of [low, ceiling], the owner's range: all that `misshape` looks at."""

    low: int
    ceiling: int
    ratio: Ratio
    sums: Mechanism
    survey: Mechanism
    share: tuple[int, int]


class Refusal(NamedTuple):
    """Why a plan is not taken: a short code, stable, and the numbers that say so."""

    code: str
    words: str


def misshape(asked: PlanRequest, shape: PlanBounds) -> Refusal | None:
    """Return the first bound that a plan exceeds, or None."""
    return next(_misshapes(asked, shape), None)


def loosened(asked: PlanRequest, shape: PlanBounds) -> PlanBounds | None:
    """Return the bounds that admit a plan, no number of them looser than it takes; or None."""
    while (bound := misshape(asked, shape)) is not None:
        name, most = _NUMBERS.get(bound.code, ("", 0))
        value = getattr(shape, name, most)
        value = 2 * value if bound.code == "buckets" else value + 1
        if value > most:
            return None
        number: dict[str, Any] = {name: value}
        shape = replace(shape, **number)
    return shape


def least_theta(sums: Mechanism, shape: PlanBounds, *, low: int, ceiling: int, ratio: Ratio) -> int:
    """Return the lowest θ that a stream mechanism of this form, at any θ, is admitted with.

    It may lie above the ceiling: then no θ is.
    """
    span = ceiling - low
    floor = -(-span // (1 << shape.theta_halvings))
    at_unit = information(sums) * (sums.high - sums.low) ** 2  # for a span of 1
    square = at_unit * shape.least_square(span, ratio)
    blurred = isqrt(-(-square.numerator // square.denominator))
    while blurred * blurred < square:
        blurred += 1
    return low + max(1, floor, blurred)


def information(mechanism: Mechanism) -> Fraction:
    """Return Fisher's information of one report about a value on a lattice, unit⁻², at most.

    1/√ of it is the standard error that no unbiased reading of a report goes below. Between two
    points of a lattice the law is linear in the value, so its information is largest at a point.
    Rounded up; the maxima of two branches are added, wherever they lie. Cost: O(weights).
    """
    span = mechanism.high - mechanism.low
    total = sum(
        (
            coin * _of_channel(channel) * (channel.d - 1) ** 2
            for coin, _, channel in mechanism.branches
        ),
        start=Fraction(0),
    )
    return total / (span * span)


def _misshapes(asked: PlanRequest, shape: PlanBounds) -> Iterator[Refusal]:
    low, ceiling, ratio, sums, _, (num, den) = asked
    span = ceiling - low
    if sums.low != low:
        yield Refusal("low", f"sums from {sums.low}: from {low}, the owner's low")
    if (sums.high - low) << shape.theta_halvings < span:
        least = low - (-span >> shape.theta_halvings)
        yield Refusal("narrow", f"θ {sums.high}: at least {least}")
    if num > den * shape.survey_share:
        yield Refusal("share", f"surveys {num}/{den}: at most {float(shape.survey_share):g}")
    yield from _misshaped_survey(asked, shape)
    precision, square = information(sums), shape.least_square(span, ratio)
    if precision * square > 1:
        errors = (round(isqrt(int(1 / precision))), isqrt(int(square)))
        yield Refusal("sharp", "a report errs by {}: at least {}".format(*errors))


def _misshaped_survey(asked: PlanRequest, shape: PlanBounds) -> Iterator[Refusal]:
    low, ceiling, _, _, survey, _ = asked
    tops = [low + ((ceiling - low + 1) >> k) - 1 for k in range(shape.survey_halvings + 1)]
    tops[0] = ceiling
    if survey.low != low or survey.high not in tops:
        found = f"survey {survey.low} to {survey.high}"
        return (yield Refusal("survey", f"{found}: from {low} to {' or '.join(map(str, tops))}"))
    most = shape.survey_buckets >> tops.index(survey.high)
    each = survey.high - low + 1  # a bucket for each value: no border can move
    if survey.size > most or (survey.size & (survey.size - 1) and survey.size != each):
        words = f"{survey.size} buckets: a power of two, at most {most}"
        yield Refusal("buckets", words)


def _of_channel(channel: "Channel") -> Fraction:
    """Return the most information about where between two neighbouring inputs a value lies."""
    if isinstance(channel, Wave):  # two codes change, alike everywhere
        step = channel.r_num - channel.r_den
        both = Fraction(1, channel.r_num) + Fraction(1, channel.r_den)
        return step * step * both / channel.total
    rows = [[channel.weight(i, j) for j in range(channel.code_count)] for i in range(channel.d)]
    most = max(
        sum(-(-_SCALE * (a - b) ** 2 // at) for a, b, at in zip(row, after, here, strict=True))
        for row, after in pairwise(rows)
        for here in (row, after)
    )
    return Fraction(most, _SCALE * channel.total)
