"""What the contract says an oracle of one wave does, written down apart from the code it judges.

A report is public draws, then a code of the wave under an input that value and public part fix. An
item's decoded entry has mean 1 for the reporter's own item and 0 for any other: the means are
worked out here, by counting, for every kind of other item that there is.
Sources: [SW] §2.1, §4.2; Wang et al., USENIX Security 2017.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from edge_ldp.certify.channels import evenly_chosen
from edge_ldp.device.channel import Wave
from edge_ldp.device.errors import ParameterError
from edge_ldp.oracles import Grr, HaarHrr, Hrr, Olh, Oracle

SPOTS = 4  # of each public number and of the items
Public = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Contract:
    """An oracle of one wave by definition.

    `asked`: the n of each public draw, which may depend on those before it; `public`: what the
    report carries of the answers; `input_of(value, public)`: of the wave; `entry(item, public,
    code)`: decoded. `means`: of the own item's entry, then of every kind of other item's.
    """

    wave: Wave
    asked: Callable[[Public], list[int]]
    publics: Sequence[Public]
    public: Callable[[Public], Public]
    input_of: Callable[[int, Public], int]
    entry: Callable[[int, Public, int], Fraction]
    means: tuple[Fraction, ...]
    variances: tuple[Fraction, Fraction]
    influence: Fraction

    @property
    def is_unbiased(self) -> bool:
        """Whether the own item's mean is 1 and every other item's 0."""
        return self.means[0] == 1 and not any(self.means[1:])


def contract_of(oracle: Oracle) -> Contract:
    """Return the contract of an oracle of one wave; raises ParameterError for any other."""
    if isinstance(oracle, Grr):
        return _grr(oracle.client.channel)
    if isinstance(oracle, Olh):
        return _olh(oracle.client.channel, oracle.client.prime)
    if isinstance(oracle, Hrr):
        return _hrr(oracle.client.channel, oracle.size)
    if isinstance(oracle, HaarHrr):
        return _haar(oracle.client.channel, oracle.size)
    raise ParameterError("oracle", "an oracle of one wave")


def _grr(wave: Wave) -> Contract:
    own, other = (Fraction(weight, wave.total) for weight in (wave.r_num, wave.r_den))
    entries = _entries(own, other)
    return Contract(
        wave=wave,
        asked=lambda _: [],
        publics=[()],
        public=lambda answers: answers,
        input_of=lambda value, _: value,
        entry=lambda item, _, code: entries[item == code],
        means=tuple(share * entries[1] + (1 - share) * entries[0] for share in (own, other)),
        variances=_support_variances(own, other),
        influence=max(map(abs, entries)),
    )


def _olh(wave: Wave, prime: int) -> Contract:
    """Local hashing: of two items, every pair of different residues is hit equally often."""
    residues = (len(range(hashed, prime, wave.d)) for hashed in range(wave.d))
    alike = Fraction(sum(n * (n - 1) for n in residues), prime * (prime - 1))
    own, lie = (Fraction(weight, wave.total) for weight in (wave.r_num, wave.r_den))
    other = alike * own + (1 - alike) * lie
    entries = _entries(own, other)

    def hashed(value: int, public: Public) -> int:
        return (public[0] * value + public[1]) % prime % wave.d

    return Contract(
        wave=wave,
        asked=lambda _: [prime - 1, prime],
        publics=[
            (a, b) for a in evenly_chosen(prime - 1, SPOTS) for b in evenly_chosen(prime, SPOTS)
        ],
        public=lambda answers: (1 + answers[0], answers[1]),
        input_of=hashed,
        entry=lambda item, public, code: entries[hashed(item, public) == code],
        means=tuple(share * entries[1] + (1 - share) * entries[0] for share in (own, other)),
        variances=_support_variances(own, other),
        influence=max(map(abs, entries)),
    )


def _hrr(wave: Wave, size: int) -> Contract:
    """Hadamard: two columns agree in half of the rows, so their signs add up to 0."""
    order = 1 << (size - 1).bit_length()
    gain, per_row = _gain(wave)
    masks = [0, *(mask for mask in evenly_chosen(order, SPOTS) if mask)]
    sums = [sum(_sign(row & mask) for row in range(order)) for mask in masks]
    return Contract(
        wave=wave,
        asked=lambda _: [order],
        publics=[(row,) for row in evenly_chosen(order, 2 * SPOTS)],
        public=lambda answers: answers,
        input_of=lambda value, public: _parity(public[0] & value),
        entry=lambda item, public, code: _sign(public[0] & item) * (1 - 2 * code) * gain,
        means=tuple(gain * per_row * total / order for total in sums),
        variances=(gain**2 - 1, gain**2),
        influence=gain,
    )


def _haar(wave: Wave, size: int) -> Contract:
    """Haar: items part at one level, below which they share no node and above which both halves."""
    height = (size - 1).bit_length()
    gain, per_row = _gain(wave)
    least = Fraction(1, 1 << height)
    shares = [height * gain * per_row / height / (2 << level) for level in range(height)]
    others = (least - shares[level] + sum(shares[level + 1 :]) for level in range(height))
    square = sum(Fraction(height * gain**2, 4 ** (level + 1)) for level in range(height))

    def entry(item: int, public: Public, code: int) -> Fraction:
        level, row = public
        half = item >> level
        sign = _sign(row & (half >> 1)) * (1 - 2 * (half & 1)) * (1 - 2 * code)
        return least + Fraction(sign * height * gain, 2 << level)

    return Contract(
        wave=wave,
        asked=lambda answers: [height, 1 << (height - 1 - answers[0])],
        publics=[
            (level, row)
            for level in evenly_chosen(height, 2 * SPOTS)
            for row in evenly_chosen(1 << (height - 1 - level), SPOTS)
        ],
        public=lambda answers: answers,
        input_of=lambda value, public: (
            _parity(public[1] & (value >> (public[0] + 1))) ^ (value >> public[0] & 1)
        ),
        entry=entry,
        means=(least + sum(shares), *others),
        variances=(square - (1 - least) ** 2, square - least**2),
        influence=least + height * gain / 2,
    )


def _entries(own: Fraction, other: Fraction) -> tuple[Fraction, Fraction]:
    """Return the entries of an item that a report does not support, and of one that it does."""
    return -other / (own - other), (1 - other) / (own - other)


def _support_variances(own: Fraction, other: Fraction) -> tuple[Fraction, Fraction]:
    """Return the variance of the own item's entry and of another's."""
    square = (own - other) ** 2
    return own * (1 - own) / square, other * (1 - other) / square


def _gain(wave: Wave) -> tuple[Fraction, Fraction]:
    """Return what a reported sign counts, and the mean of the sign for a true sign of 1."""
    mean = Fraction(wave.weight(0, 0) - wave.weight(0, 1), wave.total)
    return Fraction(wave.r_num + wave.r_den, wave.r_num - wave.r_den), mean


def _parity(bits: int) -> int:
    return bits.bit_count() & 1


def _sign(bits: int) -> int:
    return 1 - 2 * _parity(bits)
