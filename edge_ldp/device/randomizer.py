"""One value in, one code out: encoder, mixture coin and channel, in the fixed order of draws.

A randomizer has one or two branches (channels) with disjoint codes. Which branch serves is decided
by a coin that does not look at the value, so the largest ratio is that of the worst branch. Order
of draws per report (docs/design.md, The kernel): survey coin, branch coin (two branches only),
rounding draw (lattice only, also when the remainder is 0), channel draw.
"""

from collections import namedtuple

from edge_ldp.device.channel import MAX_SIZE
from edge_ldp.device.errors import ParameterError
from edge_ldp.device.lattice import to_bucket, to_lattice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from edge_ldp.device.channel import Channel
    from edge_ldp.device.draw import Uniform

BUCKETS = 0
LATTICE = 1


class Randomizer(namedtuple("Randomizer", ("low", "high", "encoder", "coin", "channels"))):
    """What the device runs for one kind of report; build it with `randomizer()`.

    `coin` = (num, den): the first of two branches serves with probability num/den; (1, 1) for one.
    Codes of the first branch come first.
    """

    __slots__ = ()
    low: int
    high: int
    encoder: int
    coin: "tuple[int, int]"
    channels: "tuple[Channel, ...]"

    @property
    def code_count(self) -> int:
        """How many codes all branches have together."""
        return sum(channel.code_count for channel in self.channels)

    def perturb(self, value: int, draw: "Uniform") -> int:
        """Return one report's code for `value`, clamped to [low, high]. Number of draws: fixed."""
        low, high, encoder, (num, den), channels = self
        channel = channels[0]
        offset = 0
        if len(channels) > 1 and draw(den) >= num:
            offset = channel.code_count
            channel = channels[1]
        if encoder == BUCKETS:
            index = to_bucket(value, low, high, channel.d)
        else:
            index = to_lattice(value, low, high, channel.d, draw)
        code: int = channel.sample(index, draw)
        return offset + code

    def within(self, num: int, den: int) -> bool:
        """Say whether no two values' probabilities of any code differ by more than num/den."""
        ratios = [channel.ratio() for channel in self.channels]
        return all(most * den <= num * least for most, least in ratios)


def randomizer(
    low: int, high: int, encoder: int, coin: "tuple[int, int]", channels: "tuple[Channel, ...]"
) -> Randomizer:
    """Return the checked Randomizer; raises ParameterError naming the parameter and its range."""
    if type(low) is not int or type(high) is not int:
        raise ParameterError("low, high", "integers")
    if low >= high:
        raise ParameterError("high", "more than low")
    if high - low >= 1 << 48:
        raise ParameterError("high", "less than low + 2**48")
    if not 1 <= len(channels) <= 2:  # noqa: PLR2004 (one branch, or a mixture of two)
        raise ParameterError("channels", "one or two")
    num, den = coin
    if type(num) is not int or type(den) is not int or not 1 <= den <= 1 << 32:
        raise ParameterError("coin", "integers (num, den) with 1 <= den <= 2**32")
    if not 0 <= num <= den or (len(channels) == 1 and num != den):
        raise ParameterError("coin", "0 <= num <= den, and num = den for one branch")
    made = Randomizer(low, high, encoder, (num, den), tuple(channels))
    if made.code_count > MAX_SIZE:
        raise ParameterError("channels", "at most 65536 codes together")
    if encoder not in (BUCKETS, LATTICE):
        raise ParameterError("encoder", "buckets or lattice")
    if encoder == BUCKETS and any(channel.d > high - low + 1 for channel in channels):
        raise ParameterError("size", "at most high - low + 1 buckets")
    return made


class Reporter(namedtuple("Reporter", ("stream", "survey", "share"))):
    """What a plan makes a device run in an included slot; build it with `reporter()`.

    `share` = (num, den): a slot gives a survey report with probability num/den, by a coin of its
    own. Stream codes come first, survey codes follow them (docs/design.md, Messages).
    """

    __slots__ = ()
    stream: Randomizer
    survey: Randomizer
    share: "tuple[int, int]"

    @property
    def code_count(self) -> int:
        """How many codes stream and survey reports have together."""
        return self.stream.code_count + self.survey.code_count

    def report(self, value: int, draw: "Uniform") -> int:
        """Return the code of the one report for `value`."""
        if draw(self.share[1]) < self.share[0]:
            return self.stream.code_count + self.survey.perturb(value, draw)
        return self.stream.perturb(value, draw)

    def within(self, num: int, den: int) -> bool:
        """Say whether neither kind of report exceeds the ratio num/den."""
        return self.stream.within(num, den) and self.survey.within(num, den)


def reporter(stream: Randomizer, survey: Randomizer, share: "tuple[int, int]") -> Reporter:
    """Return the checked Reporter; raises ParameterError naming the parameter and its range."""
    num, den = share
    if type(num) is not int or type(den) is not int or not 1 <= den <= 1 << 32:
        raise ParameterError("share", "integers (num, den) with 1 <= den <= 2**32")
    if not 0 <= num <= den:
        raise ParameterError("share", "0 <= num <= den")
    made = Reporter(stream, survey, (num, den))
    if made.code_count > MAX_SIZE:
        raise ParameterError("size", "at most 65536 stream and survey codes together")
    return made
