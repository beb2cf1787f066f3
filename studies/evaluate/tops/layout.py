"""How a data set is laid out: m readings that θ is chosen from, then the stream of r values.

The paper's sets are continued by themselves, mirrored, as the authors do; a user's own data and
quick runs keep their length. [ToPS] §5.1; the mirroring is the published code's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from edge_ldp.device.errors import ParameterError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from studies.evaluate.study import Values

    Integers = NDArray[np.int64]

PAPER = ("pos", "retail", "webview", "fares", "household")
READINGS, CHUNK = 1 << 16, 1 << 20
QUICK = 17 << 12  # 4,096 readings for θ and a stream of 16^4
FEWEST = 17 << 4
_STEPS = (1 << 12, 1 << 8, 1 << 4)  # what s = 3, 2, 1 prune


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Readings that θ is chosen from, the stream that is released, and the largest value."""

    readings: Integers
    stream: Integers
    ceiling: int


def lay_out(values: Values) -> Layout:
    """Return the data set's readings and stream, both counted from its low end.

    A set of the paper with more than 69,632 values gives m = 65,536 and r = 2^20; any other
    about n/17 and the rest, cut to multiples of 256 and 4,096 (of 16 and 256, or of 1 and 16, when
    there is less). Raises ParameterError for fewer than 272 values.
    """
    shifted = values.values - values.low
    count, ceiling = len(shifted), values.ceiling - values.low
    if values.name in PAPER and count > QUICK:
        whole = mirrored(shifted, READINGS + CHUNK)
        return Layout(whole[:READINGS], whole[READINGS:], ceiling)
    if count < FEWEST:
        raise ParameterError(f"values of {values.name}", f"{FEWEST} or more")
    step = next(step for step in _STEPS if count >= 17 * step // 16)
    readings = count // 17 // (step // 16) * (step // 16)
    end = readings + (count - readings) // step * step
    return Layout(shifted[:readings], shifted[readings:end], ceiling)


def mirrored(values: Integers, length: int) -> Integers:
    """Return `length` values: these, then these backwards, then these again, and so on."""
    pieces: list[Integers] = []
    have = 0
    while have < length:
        pieces.append(values[:: -1 if len(pieces) % 2 else 1][: length - have])
        have += len(pieces[-1])
    return np.concatenate(pieces)


def drawn_again(readings: Integers, rng: np.random.Generator) -> Integers:
    """Return 16 times as many values, drawn from these with replacement.

    For figures 6 and 7, where θ's readings and the stream have one distribution: the paper says
    "the same m values", the published code draws.
    """
    return rng.choice(readings, 16 * len(readings))
