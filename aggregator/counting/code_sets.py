"""How often, at most, an honest device's reports fall into sets of codes that are fixed beforehand.

The sets are every single code, and the m highest and the m lowest by decoded value, m = 1, 2, 4, …,
of stream and of survey reports. No honest report is of a given code with probability above the
code's largest weight / W (times its branch's coin and its kind's share), nor of one of the m
highest above the most that one input gives them together. Source: docs/design.md, The aggregator.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2s
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import numpy as np

from edge_ldp.device.channel import Wave
from edge_ldp.device.table import Profile
from edge_ldp.estimate.operator import operator_of
from edge_ldp.vectorized import decode_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edge_ldp import Mechanism
    from edge_ldp.arrays import Floats, Ints
    from edge_ldp.device.channel import Channel
    from edge_ldp.estimate.operator import Operator
    from edge_ldp.protocol.plan import Plan


_UP = 1 + 1e-9  # bounds are floats: rounded against marking


@dataclass(frozen=True, slots=True, eq=False)
class Watch:
    """What honest devices do at most under one plan; made by `watch_of`.

    `codes`: largest probability of each code; `tails`: of each tail, called by `names`. A code is
    in the tails `highest[code]` and `lowest[code]` and in all that follow them in the same row of
    `rows` (first and stop of nested tails). `law`: equal for plans that allow the same.
    """

    codes: Floats
    tails: Floats
    names: tuple[str, ...]
    highest: Ints
    lowest: Ints
    rows: tuple[tuple[int, int], ...]
    law: str

    @property
    def sets(self) -> int:
        """How many sets of codes are tested."""
        return len(self.codes) + len(self.tails)


def watch_of(plan: Plan) -> Watch:
    """Return what no honest device exceeds under the plan.

    Plans that differ in ranges and times only have one law, which is remembered. Cost: O(codes ·
    log codes), some 40 ms.
    """
    return _watch(_Law(plan))


def watch_mechanism(mechanism: Mechanism) -> Watch:
    """Return the same where all reports are of one mechanism."""
    return _joined([_part(mechanism, 1.0, "stream")])


def largest_weights(channel: Channel) -> list[int]:
    """Return each code's largest weight under any input."""
    if isinstance(channel, Wave):
        return [channel.r_num] * channel.code_count
    if isinstance(channel, Profile):
        return _largest_shifted(channel)
    return [
        max(channel.weight(i, code) for i in range(channel.d)) for code in range(channel.code_count)
    ]


def _largest_shifted(channel: Profile) -> list[int]:
    """Return the same of a profile; an upper bound if it has several peaks and is wider than d.

    Code j is reached by the profile's entries j−d+1..j, as far as they exist.
    """
    so_far = list(accumulate(channel.weights, max))
    to_come = list(accumulate(reversed(channel.weights), max))[::-1]
    last = len(so_far) - 1
    return [
        min(so_far[min(code, last)], to_come[max(0, code - channel.d + 1)])
        for code in range(channel.code_count)
    ]


class _Law:
    """A plan as far as its law goes: channels, coins and share."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        both = (plan.stream_mechanism, plan.survey_mechanism)
        self._key = (plan.share, tuple((m.encoder, *m.branches) for m in both))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Law) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


@lru_cache(maxsize=32)
def _watch(law: _Law) -> Watch:
    plan = law.plan
    num, den = plan.share
    parts = [
        _part(plan.stream_mechanism, (den - num) / den, "stream"),
        _part(plan.survey_mechanism, num / den, "survey"),
    ]
    return _joined(parts)


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """Sets of one kind of report, as in Watch; its rows are the highest and the lowest codes."""

    codes: Floats
    tails: tuple[Floats, Floats]
    levels: tuple[Ints, Ints]
    names: tuple[str, ...]


def _part(mechanism: Mechanism, share: float, kind: str) -> _Part:
    codes = [
        share * float(coin * largest / channel.total)
        for coin, _, channel in mechanism.branches
        for largest in largest_weights(channel)
    ]
    operator = operator_of(mechanism)
    rising = np.argsort(decode_table(mechanism), kind="stable")
    rising = rising[operator.possible[rising]]
    sizes = [min(1 << level, len(rising)) for level in range((len(rising) - 1).bit_length() + 1)]
    tails, levels = [], []
    for order in (rising[::-1], rising):
        tails.append(share * np.array([_most(operator, order[:size]) for size in sizes]))
        level = np.full(operator.codes, len(sizes) - 1)  # the guard lets no impossible code pass
        level[order] = np.searchsorted(sizes, np.arange(len(order)), side="right")
        levels.append(level)
    names = tuple(f"{size} {end} {kind} codes" for end in ("highest", "lowest") for size in sizes)
    return _Part(np.array(codes), (tails[0], tails[1]), (levels[0], levels[1]), names)


def _most(operator: Operator, codes: Ints) -> float:
    """Return the largest probability that one input gives the codes together."""
    inside = np.zeros(operator.codes)
    inside[codes] = 1.0
    return float(operator.adjoint(inside).max())


def _joined(parts: Sequence[_Part]) -> Watch:
    codes = np.concatenate([part.codes for part in parts])
    tails = [tail for part in parts for tail in part.tails]
    cuts = np.cumsum([0, *map(len, tails)]).tolist()
    starts = [cuts[2 * k : 2 * k + 2] for k in range(len(parts))]
    highest, lowest = (
        np.concatenate(
            [start[end] + part.levels[end] for start, part in zip(starts, parts, strict=True)]
        )
        for end in range(2)
    )
    bounds = [np.minimum(of * _UP, 1.0) for of in (codes, np.concatenate(tails))]
    seal = blake2s(digest_size=8)
    for array in (*bounds, highest, lowest):
        seal.update(array.tobytes())
    return Watch(
        codes=bounds[0],
        tails=bounds[1],
        names=tuple(name for part in parts for name in part.names),
        highest=highest,
        lowest=lowest,
        rows=tuple(pairwise(cuts)),
        law=seal.hexdigest(),
    )
