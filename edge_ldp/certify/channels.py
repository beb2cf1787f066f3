"""Proof of one channel: its weights, their totals and ratio, and that its sampler follows them.

A wave or profile is proved from its structure and spot-checked by whole rows and columns, all of
them up to 2^20 weights; a table by reading every weight. In every row that is read, the sampler is
run at the first and last draw of each code's share. Source: docs/design.md, The kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from typing import TYPE_CHECKING

from edge_ldp.certify.certificate import ProvedClaim
from edge_ldp.certify.laws import ENUMERATION, ChannelLaw, channel_law

if TYPE_CHECKING:
    from edge_ldp.device.channel import Channel

FULL = 1 << 20  # weights that are read one by one, whatever is known of the structure
SPOTS = 8  # rows and columns read of a larger one
_GOLDEN = 0x9E3779B97F4A7C15  # 2^64 over the golden ratio: multiples of it spread evenly
_WORD = 1 << 64


@dataclass(frozen=True, slots=True)
class ChannelProof:
    """What was proved of a channel; `weights` were read in `rows` and `columns`."""

    channel: Channel
    law: ChannelLaw
    ratio: Fraction
    least: int
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    weights: int
    claims: tuple[ProvedClaim, ...]

    def figures(self) -> dict[str, int | str]:
        """Return the figures of the channel for a certificate."""
        return {
            "kind": self.law.kind,
            "method": self.law.method,
            "inputs": self.channel.d,
            "codes": self.channel.code_count,
            "total": self.channel.total,
            "least_weight": self.least,
            "ratio": f"{self.ratio.numerator}/{self.ratio.denominator}",
            "rows": len(self.rows),
            "columns": len(self.columns),
            "weights": self.weights,
        }


def prove_channel(channel: Channel) -> ChannelProof:
    """Return what holds of a channel. Cost: about 1 µs a weight read, and O(inputs + codes)."""
    law = channel_law(channel)
    rows, columns = _spots(channel, law)
    least = law.least()
    ratio = law.ratio() if least > 0 else Fraction(0)
    read = len(rows) * channel.code_count + len(columns) * (channel.d - len(rows))
    return ChannelProof(
        channel=channel,
        law=law,
        ratio=ratio,
        least=least,
        rows=rows,
        columns=columns,
        weights=read,
        claims=(
            _weights(channel, law, rows, columns),
            _totals(channel, law),
            ProvedClaim("positive", least > 0, f"the smallest weight is {least}"),
            _sampler(channel, law, rows),
            _device(channel, ratio),
        ),
    )


def evenly_chosen(count: int, spots: int = SPOTS) -> tuple[int, ...]:
    """Return the first, last and middle of 0..count-1 and, up to `spots`, others spread evenly."""
    others = (k * _GOLDEN % _WORD * count // _WORD for k in range(1, 4 * spots))
    chosen = list(dict.fromkeys(chain((0, count - 1, count // 2), others)))
    return tuple(sorted(chosen[:spots]))


class Scripted:
    """A draw that answers `u` and keeps what it was asked."""

    def __init__(self, *answers: int) -> None:
        self.asked: list[int] = []
        self._answers = answers

    def __call__(self, n: int) -> int:
        """Return the next answer; the last one again when there are no more."""
        self.asked.append(n)
        return self._answers[min(len(self.asked), len(self._answers)) - 1]


def _spots(channel: Channel, law: ChannelLaw) -> tuple[tuple[int, ...], tuple[int, ...]]:
    d, codes = channel.d, channel.code_count
    if law.method == ENUMERATION or d * codes <= FULL:
        return tuple(range(d)), tuple(range(codes))
    return evenly_chosen(d), evenly_chosen(codes)


def _weights(
    channel: Channel, law: ChannelLaw, rows: Sequence[int], columns: Sequence[int]
) -> ProvedClaim:
    """Read weights one by one: all rows if they are all wanted, else whole rows and columns."""
    codes = range(channel.code_count)
    holds = all([channel.weight(i, j) for j in codes] == law.row(i) for i in rows)
    if len(rows) == channel.d:
        proof = f"all {channel.d * channel.code_count:,} weights read one by one"
    else:
        holds = holds and all(
            [channel.weight(i, j) for i in range(channel.d)] == law.column(j) for j in columns
        )
        proof = (
            f"from the structure; {len(rows)} whole rows and {len(columns)} whole columns "
            "read one by one"
        )
    return ProvedClaim("weights", holds, proof)


def _totals(channel: Channel, law: ChannelLaw) -> ProvedClaim:
    holds = law.totals() == {channel.total}
    return ProvedClaim(
        "totals", holds, f"each of the {channel.d:,} rows adds up to {channel.total}"
    )


def _sampler(channel: Channel, law: ChannelLaw, rows: Sequence[int]) -> ProvedClaim:
    holds = law.least() > 0 and all(_row_sampled(channel, law, i) for i in rows)
    runs = 2 * len(rows) * channel.code_count
    return ProvedClaim("sampler", holds, f"{runs:,} draws at the borders of codes give those codes")


def _row_sampled(channel: Channel, law: ChannelLaw, index: int) -> bool:
    """Say whether each code's share of the draws is its weight, by its first and last draw."""
    row, u, asked = law.row(index), 0, 0

    def draw(n: int) -> int:
        nonlocal asked
        asked += 1 if n == channel.total else 2
        return u

    start = 0
    for runs, code in enumerate(law.order(index), 1):
        u = start
        if channel.sample(index, draw) != code:
            return False
        start += row[code]
        u = start - 1
        if channel.sample(index, draw) != code or asked != 2 * runs:
            return False
    return start == channel.total


def _device(channel: Channel, ratio: Fraction) -> ProvedClaim:
    """Check that what a device compares with its policy is not below what was proved."""
    most, least = channel.ratio()
    holds = 0 < least <= most and 1 <= ratio <= Fraction(most, least)
    return ProvedClaim("device", holds, f"a device counts this channel as {most}/{least}, no less")
