"""How sure an attacker is after a day whether a home drew 400 or 700 W, by the stream's range.

    python -m studies.prying.pair

He knows that it is one of the two, all day, each as likely, and guesses by Bayes' rule from the
eight reports of a day at ε 1. *Usual plan*: hybrid, 16 points, at the least θ that the default
bounds admit; *sharpest*: the best of all admitted forms of `attacker`, from there up to thrice that
θ, also where an owner writes `sharpness = 4`. Exact laws of eight reports,
by convolution of log-likelihood ratios on a grid of 0.001. Held by `tests/studies/prying`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np

from edge_ldp import Hybrid, SquareWave
from edge_ldp.protocol.plan_bounds import PlanBounds, least_theta
from studies.prying.attacker import RATIO, admitted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from edge_ldp import Mechanism
    from studies.prying.attacker import Floats

REPORTS = 8
PAIR = (400, 700)  # W
RANGES = ((0, 43_470), (0, 17_250), (550, 1054))
DEFAULT, TIGHTER = PlanBounds(), PlanBounds(sharpness=4)
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
    sys.stdout.write("low, ceiling      usual plan  sharpest  with sharpness = 4\n")
    for low, ceiling in RANGES:
        row = f"{low:>5} {ceiling:>8} W  {confused(usual(low, ceiling)):>10.1%}"
        least = (sharpest(low, ceiling, shape) for shape in (DEFAULT, TIGHTER))
        sys.stdout.write(f"{row}  {'  '.join(f'{one:>8.1%}' for one in least)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
