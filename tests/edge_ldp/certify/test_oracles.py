"""Frequency oracles: what is proved of them, and that broken ones fail."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import pytest

from edge_ldp.certify import Certificate, certify
from edge_ldp.certify.contracts import contract_of
from edge_ldp.device import oracle as device
from edge_ldp.device.errors import ParameterError
from edge_ldp.device.oracle import parity
from edge_ldp.oracles import Grr, HaarHrr, Hierarchy, Hrr, Olh, Oracle, Oue

ONE = Fraction(1)
KINDS = [Grr, Olh, Hrr, Oue, Hierarchy, HaarHrr]
Uniform = Callable[[int], int]


def failed(proved: Certificate) -> set[str]:
    parts = [proved, *proved.parts.values()]
    return {claim.name for part in parts for claim in part.claims if not claim.holds}


@pytest.mark.parametrize("size", [2, 3, 5, 8, 100])
@pytest.mark.parametrize("kind", KINDS)
def test_oracles_of_any_size_are_proved(kind: type[Any], size: int) -> None:
    made: Oracle = kind(epsilon=1, size=size)
    proved = certify(made, ONE)
    assert failed(proved) == set()
    assert proved.ratio == made.max_ratio == Fraction(178_145, 65_536)
    assert proved.figures["bits"] == made.report_bits


# one kind here, and all at 100 categories
@pytest.mark.parametrize(
    "kind", [Hrr, *(pytest.param(kind, marks=pytest.mark.slow) for kind in (Olh, Oue, HaarHrr))]
)
def test_many_categories_are_proved(kind: type[Any]) -> None:
    assert certify(kind(epsilon=1, size=65_536), ONE).holds


SEEDED = [
    Grr.of(device.grr(5, 7, 2)),
    Olh.of(device.olh(5, 3, 7, 2, prime=7)),
    Hrr.of(device.hrr(5, 7, 2)),
    HaarHrr.of(device.haar_hrr(5, 7, 2)),
    HaarHrr.of(device.haar_hrr(8, 3, 1)),
]


def reports_of(made: Oracle, value: int) -> list[tuple[Sequence[int], Fraction]]:
    """Return every report of a value with its probability, by the contract's public draws."""
    contract = contract_of(made)
    answers: list[tuple[int, ...]] = [()]
    for _ in range(len(contract.asked(contract.publics[0]))):
        answers = [(*a, k) for a in answers for k in range(asked_next(contract.asked, a))]
    found: list[tuple[Sequence[int], Fraction]] = []
    for drawn in answers:
        share = Fraction(1)
        for n in contract.asked(drawn):
            share /= n
        public = contract.public(drawn)
        row = contract.input_of(value, public)
        wave = contract.wave
        for code in range(wave.code_count):
            chance = share * Fraction(wave.weight(row, code), wave.total)
            found.append(((*public, code), chance))
    return found


def asked_next(asked: Callable[[tuple[int, ...]], list[int]], drawn: tuple[int, ...]) -> int:
    """Return the n of the draw after those drawn."""
    return asked(drawn or (0,))[len(drawn)]


@pytest.mark.parametrize("made", SEEDED, ids=repr)
def test_the_means_worked_out_are_those_of_all_reports(made: Oracle) -> None:
    contract = contract_of(made)
    assert contract.is_unbiased
    for value in range(made.size):
        law = reports_of(made, value)
        assert sum(chance for _, chance in law) == 1
        means = [Fraction(0)] * made.size
        squares = [Fraction(0)] * made.size
        for report, chance in law:
            for item, entry in enumerate(made.decode(report)):
                means[item] += chance * entry
                squares[item] += chance * entry**2
        assert means == [item == value for item in range(made.size)]
        variances = [squares[k] - means[k] ** 2 for k in range(made.size)]
        assert variances == [contract.variances[k != value] for k in range(made.size)]


# The control: broken clients and estimators


class SeedsFromZero(device.Olh):
    """Lets a hash be constant: a = 0."""

    __slots__ = ()

    def perturb(self, value: int, draw: Uniform) -> tuple[int, int, int]:
        a, b = draw(self.prime), draw(self.prime)
        return a, b, self.channel.sample((a * value + b) % self.prime % self.channel.d, draw)


class LooksAtTheValue(device.Hrr):
    """Draws a row that agrees with the value."""

    __slots__ = ()

    def perturb(self, value: int, draw: Uniform) -> tuple[int, int]:
        row = draw(self.order) & ~value
        return row, self.channel.sample(parity(row & value), draw)


class OneBitTooOften(device.Oue):
    """Takes `<=` for `<`."""

    __slots__ = ()

    def perturb(self, value: int, draw: Uniform) -> bytes:
        own, other = self.r_num + self.r_den, 2 * self.r_den
        bits = bytearray((self.size + 7) // 8)
        for item in range(self.size):
            if draw(2 * own) <= (own if item == value else other):
                bits[item >> 3] |= 1 << (item & 7)
        return bytes(bits)


class WrongHalf(device.HaarHrr):
    """Takes the node's parity for the half's."""

    __slots__ = ()

    def perturb(self, value: int, draw: Uniform) -> tuple[int, int, int]:
        level = draw(self.height)
        row = draw(1 << (self.height - 1 - level))
        return level, row, self.channel.sample(parity(row & (value >> (level + 1))), draw)


class NearTheRoot(device.Hierarchy):
    """Never asks about the leaves."""

    __slots__ = ()

    def perturb(self, value: int, draw: Uniform) -> tuple[int, ...]:
        level = min(draw(len(self.levels)), len(self.levels) - 2)
        report: tuple[int, ...] = self.levels[level].perturb(value // self.widths[level], draw)
        return (level, *report)


@pytest.mark.parametrize(
    ("kind", "broken"),
    [
        (Olh, SeedsFromZero),
        (Hrr, LooksAtTheValue),
        (Oue, OneBitTooOften),
        (HaarHrr, WrongHalf),
        (Hierarchy, NearTheRoot),
    ],
)
def test_a_broken_client_fails(kind: type[Any], broken: type[Any]) -> None:
    made = kind(epsilon=1, size=40)
    bad = broken(*made.client)
    made.client, made._perturb = bad, bad.perturb  # noqa: SLF001 — a device that is broken
    assert failed(certify(made, ONE)) == {"client"}


def test_a_tree_with_its_levels_upside_down_fails() -> None:
    made = Hierarchy(epsilon=1, size=40)
    made.client = made.client._replace(levels=made.client.levels[::-1])
    assert {"client", "plan"} <= failed(certify(made, ONE))


class NoCollisions(Olh):
    """The usual estimator: as if a hash had exactly 1/g of the others."""

    @property
    def other(self) -> Fraction:
        return Fraction(1, self.client.channel.d)


class Halved(Hrr):
    """Forgets that half of the codes are lies."""

    def decode(self, report: Sequence[int]) -> list[Fraction]:
        return [entry / 2 for entry in super().decode(report)]


class ForgetsTheLeaves(Hierarchy):
    """Takes the items from another level."""

    def decode(self, report: Sequence[int]) -> list[Fraction]:
        return [0 * entry for entry in super().decode(report)]


class Unscaled(Hierarchy):
    """Forgets that only one level was asked."""

    def decode_levels(self, report: Sequence[int]) -> list[list[Fraction]]:
        return [[e / len(self.levels) for e in row] for row in super().decode_levels(report)]


class FavoursSet(Oue):
    """Counts a set bit as one."""

    def decode(self, report: Sequence[int]) -> list[Fraction]:
        _, code = self.split(report)
        return [Fraction(code >> item & 1) for item in range(self.size)]


@pytest.mark.parametrize(
    ("kind", "claim"),
    [
        (NoCollisions, "decode"),
        (Halved, "decode"),
        (Unscaled, "unbiased"),
        (ForgetsTheLeaves, "unbiased"),
        (FavoursSet, "unbiased"),
    ],
)
def test_a_biased_estimator_fails(kind: type[Any], claim: str) -> None:
    assert claim in failed(certify(kind(epsilon=1, size=40), ONE))


class Louder(Grr):
    """States a flatter law than its client has."""

    def probabilities(self, value: int, public: Sequence[int] = ()) -> list[Fraction]:
        law = super().probabilities(value, public)
        return [(p + Fraction(1, self.size)) / 2 for p in law]

    @property
    def max_ratio(self) -> Fraction:
        return Fraction(2)


def test_a_law_or_ratio_that_is_not_the_clients_fails() -> None:
    assert failed(certify(Louder(epsilon=1, size=8), ONE)) == {"law", "figures"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", ["0.1", "1", "4"])
def test_odds_rounded_up_fail(kind: type[Any], epsilon: str) -> None:
    plan = kind(epsilon=epsilon, size=20).to_plan()
    for place in [plan, *plan.get("levels", [])]:
        if "ratio" in place:
            place["ratio"][0] += 1
        for wave in place.get("waves", []):
            wave[2] += 1
    assert "ratio" in failed(certify(kind.from_plan(plan), Fraction(epsilon)))


def test_an_oracle_of_no_wave_has_no_contract() -> None:
    with pytest.raises(ParameterError):
        contract_of(Oue(epsilon=1, size=4))
