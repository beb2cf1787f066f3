"""Proof of one channel: its weights, their totals and ratio, and that its sampler follows them.

A wave or profile is proved from its structure and spot-checked by whole rows and columns, all of
them up to 2^20 weights; a table by reading every weight. In every row that is read, the sampler is
run at the first and last draw of each code's share.

And that a value reaches its channel as the contract says: same draws for all, clamped, unbiased;
buckets and lattice points by their definitions, written down apart from the code that is judged,
values inside and outside the range, every draw at the borders of what decides. Source:
docs/design.md, The kernel.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from edge_ldp.certify.certificate import ProvedClaim
from edge_ldp.certify.laws import ENUMERATION, ChannelLaw, channel_law
from edge_ldp.device.randomizer import BUCKETS, Randomizer, Reporter

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


_FAR = 1 << 60


class Case(NamedTuple):
    """A value, the draws that are asked for (n, answer), and the code that they give."""

    value: int
    draws: tuple[tuple[int, int], ...]
    code: int


def encoder_claim(randomizer: Randomizer) -> ProvedClaim:
    """Check what a value becomes; values inside, at the ends of and outside the range."""
    holds = count = 0
    for case in _cases(randomizer):
        draw = Scripted(*(answer for _, answer in case.draws))
        code = randomizer.perturb(case.value, draw)
        count += 1
        holds += code == case.code and draw.asked == [n for n, _ in case.draws]
    kind = "buckets" if randomizer.encoder == BUCKETS else "an unbiased lattice"
    proof = (
        f"{count:,} reports of values in and out of the range, by {kind}: the same draws for all"
    )
    return ProvedClaim("encoder", holds == count, proof)


def coin_claim(randomizer: Randomizer) -> ProvedClaim:
    """Check the coin of a mixture, which no value moves, and that no code has two branches."""
    num, den = randomizer.coin
    channels = randomizer.channels
    if len(channels) == 1:
        return ProvedClaim("coin", num == den, "one branch, no coin")
    counts = [channel.code_count for channel in channels]
    disjoint = randomizer.code_count == sum(counts)
    share = Fraction(num, den)
    proof = (
        f"the first branch serves with probability {share.numerator}/{share.denominator} whatever "
        f"the value; its codes are 0..{counts[0] - 1}, the second's "
        f"{counts[0]}..{counts[0] + counts[1] - 1}"
    )
    return ProvedClaim("coin", 0 <= num <= den and disjoint, proof)


def share_claim(reporter: Reporter) -> ProvedClaim:
    """Check the coin between survey and stream reports: drawn first, codes of the stream first."""
    num, den = reporter.share
    holds = 0 <= num <= den
    parts = [(reporter.survey, reporter.stream.code_count, u) for u in {0, num - 1} if 0 <= u < num]
    parts += [(reporter.stream, 0, u) for u in {num, den - 1} if num <= u < den]
    for part, first, u in parts:
        for case in _cases(part):
            draw = Scripted(u, *(answer for _, answer in case.draws))
            code = reporter.report(case.value, draw)
            holds = holds and code == first + case.code
            holds = holds and draw.asked == [den, *(n for n, _ in case.draws)]
    proof = f"a slot gives a survey report with probability {num}/{den}, whatever the value"
    return ProvedClaim("share", holds, proof)


def _cases(randomizer: Randomizer) -> Iterator[Case]:
    """Yield values with the draws that decide, and the codes that the contract gives them."""
    low, high, encoder, (num, den), channels = randomizer
    first = 0
    for channel, coins in zip(channels, (range(num), range(num, den)), strict=False):
        tossed = [((den, u),) for u in {coins[0], coins[-1]}] if coins else []
        for value in _values(low, high):
            inside = min(max(value, low), high)
            for index, rounding in _inputs(inside - low, high - low, encoder, channel.d):
                for draw in (0, channel.total - 1):
                    code = first + _sampled(channel, index, draw)
                    for toss in tossed if len(channels) > 1 else [()]:
                        yield Case(value, (*toss, *rounding, (channel.total, draw)), code)
        first += channel.code_count


def _values(low: int, high: int) -> list[int]:
    """Return values at both ends, between them and far outside."""
    inside = [low + place for place in evenly_chosen(high - low + 1)]
    return [low - _FAR, low - 1, *inside, high + 1, high + _FAR]


def _inputs(
    above: int, span: int, encoder: int, d: int
) -> Iterator[tuple[int, tuple[tuple[int, int], ...]]]:
    """Yield (input, rounding draw) of a value `above` low: the last draw up, the first one down."""
    if encoder == BUCKETS:
        yield above * d // (span + 1), ()
        return
    index, rest = divmod(above * (d - 1), span)
    if rest:
        yield index + 1, ((span, rest - 1),)
    yield index, ((span, rest),)


def _sampled(channel: Channel, index: int, u: int) -> int:
    return channel.sample(index, lambda _: u)
