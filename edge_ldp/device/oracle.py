"""Frequency oracles: one category in, one report out, whose law no category changes by more than E.

A report is a public part, drawn without looking at the value (a hash's seed, a row of the Hadamard
matrix, a level of a tree), and a code of a channel. All offer size and perturb(value, draw). Every
value takes the same draws, in the order in which they stand in the report.
Sources: [SW] §2.1 (GRR, OLH), §4.2 (HRR, HH, HaarHRR); Wang et al., USENIX Security 2017 (OUE).
"""

from collections import namedtuple

from edge_ldp.device.channel import MAX_SIZE, check_integers, wave
from edge_ldp.device.draw import WORD_RANGE
from edge_ldp.device.errors import ParameterError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from edge_ldp.device.channel import Wave
    from edge_ldp.device.draw import Uniform

PRIME = (1 << 31) - 1  # of the hash (a·x + b) mod PRIME mod g
MAX_CATEGORIES = 1 << 31


class Grr(namedtuple("Grr", ("size", "channel"))):
    """Generalised randomised response; report (code,), a category. Build it with `grr()`."""

    __slots__ = ()
    size: int
    channel: "Wave"

    def perturb(self, value: int, draw: "Uniform") -> "tuple[int]":
        """Return (code,), by one draw; raises ParameterError for a value outside."""
        size, channel = self
        if type(value) is not int or not 0 <= value < size:
            raise outside(size)
        return (channel.sample(value, draw),)


class Olh(namedtuple("Olh", ("size", "prime", "channel"))):
    """Optimised local hashing; report (a, b, code of the hashed value). Build it with `olh()`."""

    __slots__ = ()
    size: int
    prime: int
    channel: "Wave"

    def perturb(self, value: int, draw: "Uniform") -> "tuple[int, int, int]":
        """Return (a, b, code), by three draws; raises ParameterError for a value outside."""
        size, prime, channel = self
        if type(value) is not int or not 0 <= value < size:
            raise outside(size)
        a = 1 + draw(prime - 1)
        b = draw(prime)
        return a, b, channel.sample((a * value + b) % prime % channel.d, draw)


class Hrr(namedtuple("Hrr", ("size", "order", "channel"))):
    """Hadamard randomised response; report (row, bit). Build it with `hrr()`.

    The bit is the value's entry in that row of the Hadamard matrix of `order` rows, 1 for -1.
    """

    __slots__ = ()
    size: int
    order: int
    channel: "Wave"

    def perturb(self, value: int, draw: "Uniform") -> "tuple[int, int]":
        """Return (row, bit), by two draws; raises ParameterError for a value outside."""
        size, order, channel = self
        if type(value) is not int or not 0 <= value < size:
            raise outside(size)
        row = draw(order)
        return row, channel.sample(parity(row & value), draw)


class Oue(namedtuple("Oue", ("size", "r_num", "r_den"))):
    """Optimised unary encoding; report ⌈size/8⌉ bytes, bit k of them (byte k>>3, bit k&7) item k's.

    The value's own bit is 1 with probability 1/2, any other with r_den/(r_num + r_den), so the
    largest ratio is r_num/r_den. Build it with `oue()`.
    """

    __slots__ = ()
    size: int
    r_num: int
    r_den: int

    def perturb(self, value: int, draw: "Uniform") -> bytes:
        """Return the bits, by one draw an item; raises ParameterError for a value outside."""
        size, r_num, r_den = self
        if type(value) is not int or not 0 <= value < size:
            raise outside(size)
        own = r_num + r_den
        other = 2 * r_den
        total = 2 * own
        bits = bytearray((size + 7) // 8)
        for item in range(size):
            if draw(total) < (own if item == value else other):
                bits[item >> 3] |= 1 << (item & 7)
        return bytes(bits)


class Hierarchy(namedtuple("Hierarchy", ("size", "fanout", "levels", "widths"))):
    """A tree over the categories; report (level, *report of its oracle about the value's node).

    Level 0 has `fanout` nodes, each next one `fanout` times as many, until every category has its
    own; `widths`: how many categories lie below a node of each. Build it with `hierarchy()`.
    """

    __slots__ = ()
    size: int
    fanout: int
    levels: "tuple[Grr | Olh, ...]"
    widths: "tuple[int, ...]"

    def perturb(self, value: int, draw: "Uniform") -> "tuple[int, ...]":
        """Return (level, *report), by one draw and the oracle's; raises ParameterError."""
        size, _, levels, widths = self
        if type(value) is not int or not 0 <= value < size:
            raise outside(size)
        level = draw(len(levels))
        report: tuple[int, ...] = levels[level].perturb(value // widths[level], draw)
        return (level,) + report  # noqa: RUF005 (MicroPython has no (x, *y))


class HaarHrr(namedtuple("HaarHrr", ("size", "height", "channel"))):
    """HRR on one level of the Haar transform; report (level, row, bit). Build it with `haar_hrr()`.

    A node of level l has 2^(l+1) categories below it. The value's node has coefficient 1, or -1
    where the value lies in its right half; all others of the level have 0.
    """

    __slots__ = ()
    size: int
    height: int
    channel: "Wave"

    def perturb(self, value: int, draw: "Uniform") -> "tuple[int, int, int]":
        """Return (level, row, bit), by three draws; raises ParameterError for a value outside."""
        size, height, channel = self
        if type(value) is not int or not 0 <= value < size:
            raise outside(size)
        level = draw(height)
        half = value >> level
        row = draw(1 << (height - 1 - level))
        return level, row, channel.sample(parity(row & (half >> 1)) ^ (half & 1), draw)


def grr(size: int, r_num: int, r_den: int) -> Grr:
    """Return the checked Grr; raises ParameterError naming the parameter and its range."""
    check_size(size, MAX_SIZE)
    return Grr(size, wave(size, 0, r_num, r_den))


def olh(size: int, g: int, r_num: int, r_den: int, prime: int = PRIME) -> Olh:
    """Return the checked Olh over g hash values; raises ParameterError naming the parameter.

    `prime` is a parameter so that tests can run every seed.
    """
    check_size(size, prime)
    if type(g) is not int or not 2 <= g <= MAX_SIZE:  # noqa: PLR2004 (two codes at least)
        raise ParameterError("g", f"2..{MAX_SIZE}")
    return Olh(size, prime, wave(g, 0, r_num, r_den))


def hrr(size: int, r_num: int, r_den: int) -> Hrr:
    """Return the checked Hrr; raises ParameterError naming the parameter and its range."""
    check_size(size, MAX_CATEGORIES)
    return Hrr(size, 1 << log2_above(size), wave(2, 0, r_num, r_den))


def oue(size: int, r_num: int, r_den: int) -> Oue:
    """Return the checked Oue; raises ParameterError naming the parameter and its range."""
    check_size(size, MAX_CATEGORIES)
    check_integers(("r_num", r_num), ("r_den", r_den))
    if r_den < 1:
        raise ParameterError("r_den", "1 or more")
    if not r_den < r_num < WORD_RANGE // 2 - r_den:
        raise ParameterError("r_num", "more than r_den, with r_num + r_den below 2**63")
    return Oue(size, r_num, r_den)


def hierarchy(size: int, fanout: int, levels: "tuple[Grr | Olh, ...]") -> Hierarchy:
    """Return the checked Hierarchy; raises ParameterError naming the parameter and its range."""
    nodes = level_sizes(size, fanout)
    if [level.size for level in levels] != nodes:
        raise ParameterError("levels", "one of fanout, fanout**2, … nodes each, up to size or more")
    widths = tuple(nodes[-1] // count for count in nodes)
    return Hierarchy(size, fanout, tuple(levels), widths)


def level_sizes(size: int, fanout: int) -> "list[int]":
    """Return the nodes of each level, from below the root to the leaves; raises ParameterError."""
    check_size(size, PRIME)
    if type(fanout) is not int or not 2 <= fanout <= MAX_SIZE:  # noqa: PLR2004 (a tree branches)
        raise ParameterError("fanout", f"2..{MAX_SIZE}")
    nodes = [fanout]
    while nodes[-1] < size:
        nodes.append(nodes[-1] * fanout)
    if nodes[-1] > PRIME:
        raise ParameterError("size", f"at most {PRIME} leaves")
    return nodes


def haar_hrr(size: int, r_num: int, r_den: int) -> HaarHrr:
    """Return the checked HaarHrr; raises ParameterError naming the parameter and its range."""
    check_size(size, MAX_CATEGORIES)
    return HaarHrr(size, log2_above(size), wave(2, 0, r_num, r_den))


def parity(bits: int) -> int:
    """Return 1 if an odd number of bits of 0..2**32-1 is set, by the same steps for all of them."""
    bits ^= bits >> 16
    bits ^= bits >> 8
    bits ^= bits >> 4
    return 0x6996 >> (bits & 15) & 1  # bit k of 0x6996 is the parity of k


def log2_above(size: int) -> int:
    """Return the least h with 2**h ≥ size."""
    height = 0
    while 1 << height < size:
        height += 1
    return height


def check_size(size: int, most: int) -> None:
    """Raise ParameterError unless there are 2 to `most` categories."""
    if type(size) is not int or not 2 <= size <= most:  # noqa: PLR2004 (one tells nothing)
        raise ParameterError("size", f"2..{most}")


def outside(size: int) -> ParameterError:
    """Return the error for what is no category; it does not carry the value."""
    return ParameterError("value", f"0..{size - 1}")
