"""Predictions of the next block from finished ones: causal, exact rationals, post-processing.

A block is the noisy total of b^s values; `rate` predicts one value. Before any block it is θ/2.
O(1) a block (Median: O(log n)). All offer the same: `add` takes a finished block, `total(first)` is
the next one's, `first` while there is none, `weights(finished)` what each finished block has in it
where that `is_linear`; `restore` continues from a `state`, raises ParameterError where it is none.
Source: [ToPS] Appendix D as read by docs/methods.md, Decided readings: only finished blocks count;
the mean is over them; Moving has w terms, fewer at the start; Exponential begins with θ/2; a median
of two is their lower one, as rates need not be halves of integers.
"""

from collections import deque
from collections.abc import Sequence
from fractions import Fraction
from heapq import heappush, heappushpop
from typing import ClassVar, Final, TypeAlias

from edge_ldp.checks import FRACTION, integer_in, taking
from edge_ldp.device.errors import ParameterError

MEDIAN_BLOCKS = 8192  # then the median begins anew, so that its state is bounded
MAX_TERMS = 4096
_NEGLIGIBLE = 64  # blocks ago; 0.4^64 < 1e-25

Runs = list[tuple[int, int, Fraction]]  # blocks [start, stop) with one weight


class Recent:
    """The last block again: the default."""

    name: ClassVar[str] = "recent"
    is_linear: ClassVar[bool] = True
    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last: int | None = None

    def add(self, block: int) -> None:
        """Take a block."""
        self._last = block

    def total(self, first: Fraction) -> Fraction:
        """Return the last block."""
        return first if self._last is None else Fraction(self._last)

    def weights(self, finished: int) -> Runs:
        """Return weight 1 for the last one."""
        return [(finished - 1, finished, Fraction(1))] if finished else []

    def state(self) -> list[int]:
        """Return the last block, if any."""
        return [] if self._last is None else [self._last]

    def restore(self, state: Sequence[int]) -> None:
        """Continue."""
        _expect(len(state) <= 1)
        self._last = state[0] if state else None


class Mean:
    """The mean of all blocks."""

    name: ClassVar[str] = "mean"
    is_linear: ClassVar[bool] = True
    __slots__ = ("_count", "_sum")

    def __init__(self) -> None:
        self._count = self._sum = 0

    def add(self, block: int) -> None:
        """Take a block."""
        self._count += 1
        self._sum += block

    def total(self, first: Fraction) -> Fraction:
        """Return the mean."""
        return Fraction(self._sum, self._count) if self._count else first

    def weights(self, finished: int) -> Runs:
        """Return equal weights."""
        return [(0, finished, Fraction(1, finished))] if finished else []

    def state(self) -> list[int]:
        """Return count and sum."""
        return [self._count, self._sum]

    def restore(self, state: Sequence[int]) -> None:
        """Continue."""
        _expect(len(state) == len(("count", "sum")) and state[0] >= 0)
        self._count, self._sum = state


class Median:
    """The (lower) median of the blocks since it began anew, 8192 at most."""

    name: ClassVar[str] = "median"
    is_linear: ClassVar[bool] = False
    __slots__ = ("_high", "_low")

    def __init__(self) -> None:
        self._low: list[int] = []  # negated: the heap's first is the median
        self._high: list[int] = []

    def add(self, block: int) -> None:
        """Take a block: two heaps that differ in size by one at most."""
        if len(self._low) + len(self._high) == MEDIAN_BLOCKS:
            self._low, self._high = [], []
        if len(self._low) > len(self._high):
            heappush(self._high, -heappushpop(self._low, -block))
        else:
            heappush(self._low, -heappushpop(self._high, block))

    def total(self, first: Fraction) -> Fraction:
        """Return the median."""
        return Fraction(-self._low[0]) if self._low else first

    def weights(self, finished: int) -> Runs:  # noqa: ARG002 - the protocol's
        """Return nothing: the median is not linear, its noise has no such form."""
        return []

    def state(self) -> list[int]:
        """Return the blocks in order of size."""
        return sorted([*(-block for block in self._low), *self._high])

    def restore(self, state: Sequence[int]) -> None:
        """Continue."""
        _expect(len(state) <= MEDIAN_BLOCKS)
        self._low, self._high = [], []
        for block in state:
            self.add(block)


class Moving:
    """The mean of the last `terms` blocks."""

    name: ClassVar[str] = "moving"
    is_linear: ClassVar[bool] = True
    __slots__ = ("_blocks", "_sum", "_terms")

    @taking(terms=integer_in(1, MAX_TERMS))
    def __init__(self, terms: int = 4) -> None:
        self._terms = terms
        self._blocks: deque[int] = deque()
        self._sum = 0

    def add(self, block: int) -> None:
        """Take a block and drop the one that is too old."""
        self._blocks.append(block)
        self._sum += block
        if len(self._blocks) > self._terms:
            self._sum -= self._blocks.popleft()

    def total(self, first: Fraction) -> Fraction:
        """Return the mean of those held."""
        return Fraction(self._sum, len(self._blocks)) if self._blocks else first

    def weights(self, finished: int) -> Runs:
        """Return equal weights for the last ones."""
        held = min(finished, self._terms)
        return [(finished - held, finished, Fraction(1, held))] if held else []

    def state(self) -> list[int]:
        """Return the blocks, oldest first."""
        return list(self._blocks)

    def restore(self, state: Sequence[int]) -> None:
        """Continue."""
        _expect(len(state) <= self._terms)
        self._blocks = deque(state)
        self._sum = sum(state)


class Exponential:
    """α times the last block and 1-α times the prediction before it, kept to 2^-16."""

    name: ClassVar[str] = "exponential"
    is_linear: ClassVar[bool] = True
    __slots__ = ("_alpha", "_level")

    @taking(alpha=FRACTION)
    def __init__(self, alpha: Fraction = Fraction(3, 5)) -> None:
        if not 0 < alpha <= 1:
            raise ParameterError("alpha", "a rational above 0 and at most 1")
        self._alpha = alpha
        self._level: list[int] = []  # in units of 2^-16; waiting blocks until `total` gives θ/2

    def add(self, block: int) -> None:
        """Take a block."""
        if not self._level:
            self._level = [block << _LEVEL_BITS]
            return
        step = self._alpha * ((block << _LEVEL_BITS) - self._level[0])
        self._level[0] += step.numerator // step.denominator

    def total(self, first: Fraction) -> Fraction:
        """Return the level; θ/2 of the first call is where it starts."""
        if not self._level:
            self._level = [(first.numerator << _LEVEL_BITS) // first.denominator]
        return Fraction(self._level[0], 1 << _LEVEL_BITS)

    def weights(self, finished: int) -> Runs:
        """Return α(1-α)^age of the last 64 blocks; older ones weigh nothing that counts."""
        return [
            (finished - age - 1, finished - age, self._alpha * (1 - self._alpha) ** age)
            for age in range(min(finished, _NEGLIGIBLE))
        ]

    def state(self) -> list[int]:
        """Return the level, if begun."""
        return list(self._level)

    def restore(self, state: Sequence[int]) -> None:
        """Continue."""
        _expect(len(state) <= 1)
        self._level = list(state)


Smoother: TypeAlias = Recent | Mean | Median | Moving | Exponential
SMOOTHERS: Final[dict[str, type[Smoother]]] = {
    kind.name: kind for kind in (Recent, Mean, Median, Moving, Exponential)
}
_LEVEL_BITS = 16


def _expect(is_right: bool) -> None:  # noqa: FBT001 - reads as a sentence
    if not is_right:
        raise ParameterError("smoother state", "one that was stored")
