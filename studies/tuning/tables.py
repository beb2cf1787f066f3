"""Optimal unbiased tables: the tuned mechanism's weights and outputs as certified integers.

Only here is SciPy needed: ready tables for common ε ship with the library, so a device needs no
solver. Floats decide accuracy only; ratio, totals and bias are certified on the integers.
Sources: docs/methods.md, Optimal tables; Chaudhuri, Guo, Rabbat, UAI 2022 (arXiv 2203.08134).
"""

from __future__ import annotations

from itertools import combinations, pairwise
from math import exp
from typing import TYPE_CHECKING

import numpy as np

from edge_ldp.checks import a, chance, exact_integer, floats, integer_in, optional, taking
from edge_ldp.device.errors import EdgeLdpError, ParameterError
from edge_ldp.mechanisms import Response, Tuned
from edge_ldp.ratio import floor_ratio
from studies.tuning.programme import DualPoint, Programme, programme

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from edge_ldp.ratio import Epsilon, Ratio

    Floats = NDArray[np.float64]
    Row = tuple[int, ...]

TOTAL = 1 << 40  # every row's total weight
SCALE = 1 << 16  # outputs are integers in units of 1/SCALE on [-1, 1]
BIAS_BITS = 30  # |bias| ≤ 2^-30 of the range
MAX_KNOTS = 129  # a plan carries every row
_KNOTS = ((1.7, 5), (4.5, 9), (60.0, 17))  # (largest ratio, knots), measured: ADR 11
_MOST_KNOTS = 33
_SLACK = 1e-7  # of ε: room for rounding below the certified ratio
_STARTS = (1.02, 1.1, 1.25, 1.4, 1.6)  # half-ranges, in units of (E+1)/(E−1)


class TuningError(EdgeLdpError):
    """No table, or one that is not what it must be; `reason` says in what."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"table: {reason}")
        self.reason = reason


@taking(low=exact_integer, high=exact_integer, bits=integer_in(3, 4), even_share=chance)
def tune(  # noqa: PLR0913 (keywords of one constructor)
    *,
    epsilon: Epsilon,
    low: int,
    high: int,
    bits: int = 4,
    density: ArrayLike | None = None,
    even_share: float = 0.1,
) -> Tuned:
    """Return the tuned mechanism of least worst-case variance, for any ε from 0.00014 to 11.

    With a `density` (probabilities of equal cells of [low, high], any number of them) of least
    variance expected under it instead, `even_share` of it replaced by an even density: rare values
    fare worse, and a share above 0 bounds how much (ADR 11). The density must be public: an
    estimate from reports, never readings. Cost: seconds. Raises as `solve`, and ParameterError.
    """
    ratio = floor_ratio(epsilon)
    if density is None:
        return Tuned.of(solve(ratio, bits), low=low, high=high)
    knots = default_knots(ratio)
    given, even = knot_weights(density, knots), knot_weights([1], knots)
    mixed = (1 - even_share) * given + even_share * even
    return Tuned.of(solve(ratio, bits, knots=knots, weights=mixed), low=low, high=high)


@taking(
    ratio=a("edge_ldp.ratio.Ratio"),
    bits=integer_in(3, 4),
    knots=optional(integer_in(2, MAX_KNOTS)),
    weights=optional(floats),
)
def solve(
    ratio: Ratio, bits: int = 4, *, knots: int | None = None, weights: ArrayLike | None = None
) -> Response:
    """Return the certified table of 2^bits codes with the least variance over all of [-1, 1].

    Least worst-case variance; with `weights` (the probability of each knot, see `knot_weights`)
    least expected variance, which includes that of values between the knots. Symmetric,
    P(y|x) = P(−y|−x), unless the weights are not. Raises ParameterError, and TableError if no
    certified table is found.
    """
    if not ratio.den < (ratio.num - ratio.den) << 13 or not ratio.num <= ratio.den << 16:
        raise ParameterError("ratio", "above 1 + 2^-13, at most 2^16")
    size = default_knots(ratio) if knots is None else knots
    mass = None if weights is None else _probabilities("weights", weights)
    if mass is not None and len(mass) != size:
        raise ParameterError("weights", f"{size} numbers, one for each knot")
    made = programme(exp(ratio.epsilon - _SLACK), size, 1 << bits, mass)
    found = (made.descend(np.linspace(-a, a, 1 << bits)) for a in _STARTS)
    best = min((p for p in found if p is not None), key=lambda p: p.cost, default=None)
    return certified(made, best, ratio)


def default_knots(ratio: Ratio) -> int:
    """Return how many knots are worth their place in a device's memory, 5..33."""
    enough = (knots for most, knots in _KNOTS if ratio.num <= most * ratio.den)
    return next(enough, _MOST_KNOTS)


def knot_weights(density: ArrayLike, knots: int) -> Floats:
    """Return the probability that the lattice puts a value on each knot, knots ≥ 2.

    `density`: probabilities of equal cells of the range, uniform inside a cell. Raises
    ParameterError unless they are finite, not negative and add up to 1 (to 1e-6).
    """
    mass = _probabilities("density", density)
    edges = np.linspace(0, 1, len(mass) + 1)
    below = np.concatenate([[0.0], np.cumsum(mass)])
    areas = np.concatenate([[0.0], np.cumsum((below[1:] + below[:-1]) / 2 / len(mass))])
    at = np.linspace(0, 1, knots)
    cell = np.clip(np.searchsorted(edges, at, side="right") - 1, 0, len(mass) - 1)
    inside = at - edges[cell]
    area = areas[cell] + below[cell] * inside + mass[cell] * len(mass) * inside**2 / 2
    step = 1 / (knots - 1)  # a knot's hat is the second difference of the area below the law
    bent = np.diff(np.concatenate([[0.0], area, area[-1:] + step]), 2)
    return np.maximum(bent / step, 0)


def certify_table(response: Response, ratio: Ratio) -> None:
    """Check every claim on the integers; raises TableError for the first that fails.

    Row totals 2^40, no weight below 1, no two weights of a code further apart than the ratio,
    outputs rising, bias at every knot (so everywhere) at most 2^-30 of the range.
    """
    rows, outputs, last = response.weights, response.outputs, len(response.weights) - 1
    if last < 1 or any(len(row) != len(outputs) for row in rows) or response.scale < 1:
        raise TuningError("not a table")
    if any(type(n) is not int for row in (*rows, outputs, (response.scale,)) for n in row):
        raise TuningError("not integers")
    if any(left >= right for left, right in pairwise(outputs)):
        raise TuningError("outputs do not rise")
    if any(min(row) < 1 or sum(row) != TOTAL for row in rows):
        raise TuningError("a weight below 1, or a row total that is not 2^40")
    if any(max(code) * ratio.den > min(code) * ratio.num for code in zip(*rows, strict=True)):
        raise TuningError("a ratio above the one allowed")
    for i, row in enumerate(rows):
        mean = sum(weight * y for weight, y in zip(row, outputs, strict=True))
        excess = mean * last - TOTAL * response.scale * (2 * i - last)
        if abs(excess) << BIAS_BITS > 2 * TOTAL * response.scale * last:
            raise TuningError("a bias above 2^-30 of the range")


def _probabilities(name: str, given: ArrayLike) -> Floats:
    mass = np.array(given, dtype=np.float64)
    if mass.ndim != 1 or not mass.size or not np.isfinite(mass).all() or mass.min() < 0:
        raise ParameterError(name, "a list of finite numbers of at least 0")
    if abs(mass.sum() - 1) > 1e-6:
        raise ParameterError(name, "a sum of 1")
    normal: Floats = mass / mass.sum()
    return normal


def certified(made: Programme, best: DualPoint | None, ratio: Ratio) -> Response:
    """Put the outputs on integers, solve for those, put the weights on integers, certify."""
    outputs = np.zeros(0) if best is None else np.rint(best.outputs / made.gain * SCALE)
    final = None if best is None else made.at(outputs * made.gain / SCALE)
    if final is None:
        raise TuningError("no solution of the linear programme")
    response = _rounded(made, final, tuple(int(y) for y in outputs), ratio)
    certify_table(response, ratio)
    return response


def _rounded(made: Programme, final: DualPoint, outputs: Row, ratio: Ratio) -> Response:
    """Return integer weights, each between its code's floor and the ratio times that."""
    shares = final.least / (made.ratio + 1) * (1 - _SLACK / 2)  # half the slack below, half above
    floors = [int(share * TOTAL) for share in shares]
    caps = [floor * ratio.num // ratio.den for floor in floors]
    laws = made.probabilities(final)
    last = len(made.mirror) - 1
    rows = []
    for i, law in enumerate(laws):
        if len(laws) <= last and 2 * i == last:  # its own mirror image, so without bias
            half = len(outputs) // 2
            even = ((law + law[::-1]) / 2)[:half]
            row = _with_total(even, floors[:half], caps[:half], TOTAL // 2)
            rows.append(tuple(row + row[::-1]))
            continue
        row = _with_total(law, floors, caps, TOTAL)
        _centre(row, floors, caps, outputs, (2 * i - last, last))
        rows.append(tuple(row))
    rows += [row[::-1] for row in rows[: last + 1 - len(rows)][::-1]]
    return Response(tuple(rows), outputs, SCALE)


def _with_total(law: Floats, floors: list[int], caps: list[int], total: int) -> list[int]:
    """Return weights near law·TOTAL, inside their bounds, that add up to `total`."""
    row = [
        min(max(round(p * TOTAL), low), high)
        for p, low, high in zip(law.tolist(), floors, caps, strict=True)
    ]
    missing = total - sum(row)
    for j in sorted(range(len(row)), key=lambda j: row[j], reverse=True):
        moved = min(max(missing, floors[j] - row[j]), caps[j] - row[j])
        row[j] += moved
        missing -= moved
    return row


def _centre(
    row: list[int], floors: list[int], caps: list[int], outputs: Row, place: tuple[int, int]
) -> None:
    """Move units between codes, in place, until the mean is the knot's place to about a unit.

    Widest pairs first: what a pair leaves is at most half its gap, for the narrower ones.
    """
    above, last = place
    missing = TOTAL * SCALE * above - last * sum(w * y for w, y in zip(row, outputs, strict=True))
    pairs = sorted(combinations(range(len(row)), 2), key=lambda p: outputs[p[0]] - outputs[p[1]])
    for low, high in pairs:
        gap = (outputs[high] - outputs[low]) * last
        units = (2 * missing + gap) // (2 * gap)
        units = min(units, row[low] - floors[low], caps[high] - row[high])
        units = max(units, floors[high] - row[high], row[low] - caps[low])
        row[low] -= units
        row[high] += units
        missing -= units * gap
