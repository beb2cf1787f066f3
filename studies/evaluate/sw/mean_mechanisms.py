"""Mean and variance by mechanisms made for means, as [SW] §6.3 adapts them.

The mean takes all values. The variance takes two halves: the first tells the mean, and each of the
second reports the square of its distance from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edge_ldp import Piecewise, StochasticRounding
from edge_ldp.vectorized import decode_many, perturb_many

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from edge_ldp import Mechanism
    from studies.evaluate.study import Values

    Ints = NDArray[np.int64]

SR, PM = "SR", "PM"
_KINDS: dict[str, Callable[..., Mechanism]] = {SR: StochasticRounding, PM: Piecewise}
MEANS = tuple(_KINDS)
_STEPS = 1 << 20  # integers that squares are put on


def moment_errors(
    kind: str, values: Values, epsilon: float, rng: np.random.Generator
) -> dict[str, float]:
    """Return the absolute errors of mean and variance, in the range and its square."""
    span = values.ceiling - values.low
    drawn = rng.permutation(values.values)
    first, second = np.array_split(drawn, 2)
    whole = _mean(kind, drawn, (values.low, values.ceiling), epsilon, rng)
    errors = {"mean": abs(whole - drawn.mean()) / (span + 1)}
    if len(second):
        half = _mean(kind, first, (values.low, values.ceiling), epsilon, rng)
        half = float(np.clip(half, values.low, values.ceiling))
        squares = np.rint(((second - half) / span) ** 2 * _STEPS).astype(np.int64)
        found = _mean(kind, squares, (0, _STEPS), epsilon, rng) / _STEPS * span**2
        errors["variance"] = abs(found - drawn.var()) / (span + 1) ** 2
    return {name: float(error) for name, error in errors.items()}


def _mean(
    kind: str, values: Ints, ends: tuple[int, int], epsilon: float, rng: np.random.Generator
) -> float:
    mechanism = _KINDS[kind](epsilon=epsilon, low=ends[0], high=ends[1])
    codes = perturb_many(mechanism, values, entropy=rng.bytes)
    return float(decode_many(mechanism, codes).mean())
