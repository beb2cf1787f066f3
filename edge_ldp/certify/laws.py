"""What the contract says a channel is, written down apart from the code that it judges.

A wave or profile is a band: a row of near weights that moves with the input, and one far weight
for every other code, so everything about it follows in O(inputs + codes). A table is its rows.
Source: docs/design.md, The kernel.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, pairwise
from typing import TYPE_CHECKING, TypeAlias

from edge_ldp.device.channel import Wave
from edge_ldp.device.table import Profile

if TYPE_CHECKING:
    from edge_ldp.device.channel import Channel

STRUCTURE = "structure"
ENUMERATION = "enumeration"


@dataclass(frozen=True, slots=True)
class WaveBand:
    """d inputs, d + 2c codes: codes i..i+2c weigh `near`, every other code weighs `far`.

    `kind`: what it is, in a word; `method`: how it is known.
    """

    kind: str
    d: int
    near: tuple[int, ...]
    far: int
    method: str = STRUCTURE

    @property
    def code_count(self) -> int:
        """How many codes there are."""
        return self.d + len(self.near) - 1

    def row(self, index: int) -> list[int]:
        """Return the weights of all codes under one input."""
        return [self.far] * index + list(self.near) + [self.far] * (self.d - 1 - index)

    def column(self, code: int) -> list[int]:
        """Return the weights of one code under all inputs."""
        width = len(self.near)
        places = range(code, code - self.d, -1)
        return [self.near[at] if 0 <= at < width else self.far for at in places]

    def order(self, index: int) -> Iterable[int]:
        """Return all codes in the order of the draws that give them: near ones, then the rest."""
        end = index + len(self.near)
        return chain(range(index, end), range(index), range(end, self.code_count))

    def totals(self) -> set[int]:
        """Return the one total: the near weights lie among the codes whatever the input is."""
        return {sum(self.near) + (self.d - 1) * self.far}

    def least(self) -> int:
        """Return the smallest weight."""
        return min(self.far, *self.near)

    def ratio(self) -> Fraction:
        """Return the largest factor between two weights ≥ 1 of a column. Cost: O(codes)."""
        best = (1, 1)
        width, high, low = len(self.near), deque[int](), deque[int]()
        for code in range(self.code_count):
            first = max(0, code - self.d + 1)
            if code < width:
                _push(high, code, self.near, -1)
                _push(low, code, self.near, 1)
            while high[0] < first:
                high.popleft()
            while low[0] < first:
                low.popleft()
            most, least = self.near[high[0]], self.near[low[0]]
            if min(code, width - 1) - first + 1 < self.d:
                most, least = max(most, self.far), min(least, self.far)
            if most * best[1] > best[0] * least:
                best = (most, least)
        return Fraction(*best)

    def moments(self, outputs: Sequence[int]) -> list[tuple[int, int]] | None:
        """Return (Σ weight·output, Σ weight·output²) of every row; None if outputs are uneven."""
        gap = outputs[1] - outputs[0]
        if any(left + gap != right for left, right in pairwise(outputs)):
            return None
        above = [weight - self.far for weight in self.near]
        e0, e1, e2 = (sum(w * k**power for k, w in enumerate(above)) for power in range(3))
        flat = self.far * sum(outputs), self.far * sum(y * y for y in outputs)
        return [
            (flat[0] + y * e0 + gap * e1, flat[1] + y * (y * e0 + 2 * gap * e1) + gap * gap * e2)
            for y in outputs[: self.d]
        ]


@dataclass(frozen=True, slots=True)
class Rows:
    """A table by its rows, every weight of which was read from the channel."""

    rows: tuple[list[int], ...]
    kind: str = "table"
    method: str = ENUMERATION

    def row(self, index: int) -> list[int]:
        """Return the weights of all codes under one input."""
        return self.rows[index]

    def column(self, code: int) -> list[int]:
        """Return the weights of one code under all inputs."""
        return [row[code] for row in self.rows]

    def order(self, index: int) -> Iterable[int]:
        """Return all codes in the order of the draws that give them: rising."""
        return range(len(self.rows[index]))

    def totals(self) -> set[int]:
        """Return the totals that rows have: one, if the channel is sound."""
        return set(map(sum, self.rows))

    def least(self) -> int:
        """Return the smallest weight."""
        return min(map(min, self.rows))

    def ratio(self) -> Fraction:
        """Return the largest factor between two weights ≥ 1 of a column."""
        columns = zip(*self.rows, strict=True)
        return max(Fraction(max(column), min(column)) for column in columns)

    def moments(self, outputs: Sequence[int]) -> list[tuple[int, int]] | None:
        """Return (Σ weight·output, Σ weight·output²) of every row, by definition."""
        return [row_moments(row, outputs) for row in self.rows]


ChannelLaw: TypeAlias = WaveBand | Rows
"""Integer weights of (input, code) pairs, and the order in which a draw runs through them."""


def channel_law(channel: Channel) -> ChannelLaw:
    """Return the law of a channel's parameters; of any other channel, its weights one by one."""
    if isinstance(channel, Wave):
        return WaveBand("wave", channel.d, (channel.r_num,) * (2 * channel.c + 1), channel.r_den)
    if isinstance(channel, Profile):
        return WaveBand("profile", channel.d, channel.weights, channel.r_den)
    codes = range(channel.code_count)
    return Rows(tuple([channel.weight(i, j) for j in codes] for i in range(channel.d)))


def row_moments(row: Sequence[int], outputs: Sequence[int]) -> tuple[int, int]:
    """Return (Σ weight·output, Σ weight·output²) by definition."""
    weighed = [weight * y for weight, y in zip(row, outputs, strict=True)]
    return sum(weighed), sum(w * y for w, y in zip(weighed, outputs, strict=True))


def _push(queue: deque[int], at: int, near: Sequence[int], sign: int) -> None:
    """Keep a queue of places whose weights rise (sign 1) or fall (−1): its head is the extreme."""
    while queue and sign * near[queue[-1]] >= sign * near[at]:
        queue.pop()
    queue.append(at)
