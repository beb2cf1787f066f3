"""That a value reaches its channel as the contract says: same draws for all, clamped, unbiased.

Buckets and lattice points by their definitions, written down apart from the code that it judges;
values inside and outside the range, every draw at the borders of what decides. Source:
docs/design.md, The kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from edge_ldp.certify.certificate import ProvedClaim
from edge_ldp.certify.channels import Scripted, evenly_chosen
from edge_ldp.device.randomizer import BUCKETS, Randomizer, Reporter

if TYPE_CHECKING:
    from edge_ldp.device.channel import Channel

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
