"""One value in, one code out: encoder, mixture coin and channel, in the fixed order of draws.

A randomizer has one or two branches (Waves) with disjoint codes. Which branch serves is decided by
a coin that does not look at the value, so the largest ratio is that of the worst branch.
Order of draws per report (DESIGN §4): survey coin, branch coin (two branches only), rounding draw
(lattice only, also when the remainder is 0), channel draw.
"""

from collections import namedtuple

from edge_ldp.device.channel import MAX_SIZE
from edge_ldp.device.errors import ParameterError
from edge_ldp.device.lattice import to_bucket, to_lattice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from edge_ldp.device.channel import Wave
    from edge_ldp.device.draw import Uniform

BUCKETS = 0
LATTICE = 1


class Randomizer(namedtuple("Randomizer", ("low", "high", "encoder", "coin", "waves"))):
    """What the device runs for one kind of report; build it with `randomizer()`.

    `coin` = (num, den): the first of two branches serves with probability num/den; (1, 1) for one.
    Codes of the first branch come first.
    """

    __slots__ = ()
    low: int
    high: int
    encoder: int
    coin: "tuple[int, int]"
    waves: "tuple[Wave, ...]"

    @property
    def code_count(self) -> int:
        """How many codes all branches have together."""
        return sum(wave.code_count for wave in self.waves)

    def perturb(self, value: int, draw: "Uniform") -> int:
        """Return one report's code for `value`, clamped to [low, high]. Number of draws: fixed."""
        first = self.waves[0]
        offset = 0
        chosen = first
        if len(self.waves) > 1 and draw(self.coin[1]) >= self.coin[0]:
            offset = first.code_count
            chosen = self.waves[1]
        if self.encoder == BUCKETS:
            index = to_bucket(value, self.low, self.high, chosen.d)
        else:
            index = to_lattice(value, self.low, self.high, chosen.d, draw)
        return offset + chosen.sample(index, draw)

    def within(self, num: int, den: int) -> bool:
        """Say whether no two values' probabilities of any code differ by more than num/den."""
        return all(wave.r_num * den <= num * wave.r_den for wave in self.waves)


def randomizer(
    low: int, high: int, encoder: int, coin: "tuple[int, int]", waves: "tuple[Wave, ...]"
) -> Randomizer:
    """Return the checked Randomizer; raises ParameterError naming the parameter and its range."""
    if type(low) is not int or type(high) is not int:
        raise ParameterError("low, high", "integers")
    if low >= high:
        raise ParameterError("high", "more than low")
    if high - low >= 1 << 48:
        raise ParameterError("high", "less than low + 2**48")
    if not 1 <= len(waves) <= 2:  # noqa: PLR2004 (one branch, or a mixture of two)
        raise ParameterError("waves", "one or two")
    num, den = coin
    if type(num) is not int or type(den) is not int or not 1 <= den <= 1 << 32:
        raise ParameterError("coin", "integers (num, den) with 1 <= den <= 2**32")
    if not 0 <= num <= den or (len(waves) == 1 and num != den):
        raise ParameterError("coin", "0 <= num <= den, and num = den for one branch")
    made = Randomizer(low, high, encoder, (num, den), tuple(waves))
    if made.code_count > MAX_SIZE:
        raise ParameterError("waves", "at most 65536 codes together")
    if encoder not in (BUCKETS, LATTICE):
        raise ParameterError("encoder", "buckets or lattice")
    if encoder == BUCKETS and any(wave.d > high - low + 1 for wave in waves):
        raise ParameterError("size", "at most high - low + 1 buckets")
    return made


class Reporter(namedtuple("Reporter", ("stream", "survey", "share"))):
    """What a plan makes a device run in an included slot; build it with `reporter()`.

    `share` = (num, den): a slot gives a survey report with probability num/den, by a coin of its
    own. Stream codes come first, survey codes follow them (DESIGN §8).
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
