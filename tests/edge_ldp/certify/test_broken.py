"""The control: whatever is broken on purpose, a claim fails, and the right one."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any, Self

import pytest

from edge_ldp import Hybrid, Mechanism, Piecewise, SquareWave, StochasticRounding
from edge_ldp.certify import Certificate, certify, certify_pair
from edge_ldp.certify.channels import prove_channel
from edge_ldp.device.channel import Wave
from edge_ldp.device.randomizer import Randomizer
from edge_ldp.device.table import Profile, Table, table
from edge_ldp.mechanisms import GeneralWave, Tuned, from_plan
from edge_ldp.mechanisms.decoders import Affine, ListedDecoder, affine

ONE = Fraction(1)
Uniform = Callable[[int], int]


def failed(proved: Certificate) -> set[str]:
    """Return the names of the claims that fail, parts aside."""
    return {claim.name for claim in proved.claims if not claim.holds}


def with_channel(mechanism: Mechanism, kind: type[Any], branch: int = 0) -> Mechanism:
    """Return the mechanism with a branch's channel replaced by one of another class."""
    channels: list[Any] = list(mechanism.randomizer.channels)
    channels[branch] = kind(*channels[branch])
    mechanism.randomizer = mechanism.randomizer._replace(channels=tuple(channels))
    return mechanism


def with_randomizer(mechanism: Mechanism, kind: type[Randomizer]) -> Mechanism:
    mechanism.randomizer = kind(*mechanism.randomizer)
    return mechanism


def sound() -> Mechanism:
    return Hybrid(epsilon=1, low=0, high=1000, size=64)


def test_the_control_of_the_control_holds() -> None:
    assert failed(certify(sound(), ONE)) == set()


@pytest.mark.parametrize(
    "epsilon",
    [
        *("1e-3", "1", "8"),
        *(pytest.param(one, marks=pytest.mark.slow) for one in ("0.01", "0.1", "0.5", "2", "4")),
    ],
)
@pytest.mark.parametrize("kind", [StochasticRounding, Piecewise, SquareWave, Hybrid])
def test_odds_rounded_up_are_above_e_to_the_epsilon(kind: type[Any], epsilon: str) -> None:
    plan = kind(epsilon=epsilon, low=0, high=2000).to_plan()
    for wave in plan["waves"]:
        wave[2] += 1
    assert failed(certify(from_plan(plan), Fraction(epsilon))) == {"ratio"}


def test_one_branch_above_the_ratio_is_enough_also_if_it_never_serves() -> None:
    plan = Hybrid(epsilon="0.5", low=0, high=1000).to_plan()
    assert plan["coin"] == [0, 65_536]
    plan["waves"][0][2] += 1  # type: ignore[index]
    assert failed(certify(from_plan(plan), Fraction(1, 2))) == {"ratio"}


class WindowTooFar(Wave):
    """Samples one code to the right of the window that the weights tell of."""

    __slots__ = ()

    def sample(self, index: int, draw: Uniform) -> int:
        code: int = super().sample(index, draw)
        return code + 1 if index <= code < index + 2 * self.c + 1 < self.code_count else code


class WindowTooWide(Wave):
    """Gives the code after the window the near weight."""

    __slots__ = ()

    def weight(self, index: int, code: int) -> int:
        return self.r_num if index <= code <= index + 2 * self.c + 1 else self.r_den


class OffAtTheBorder(Wave):
    """Takes `<=` for `<` where near draws end."""

    __slots__ = ()

    def sample(self, index: int, draw: Uniform) -> int:
        u = draw(self.total)
        if u <= self.near_total:
            return int(index + u // self.r_num)
        k = (u - self.near_total) // self.r_den
        return int(k if k < index else k + 2 * self.c + 1)


class DrawsTwice(Wave):
    """Throws a draw away where the input is 0: the number of draws tells."""

    __slots__ = ()

    def sample(self, index: int, draw: Uniform) -> int:
        if index == 0:
            draw(self.total)
        return super().sample(index, draw)


class Understated(Wave):
    """Tells the device's policy less than it does."""

    __slots__ = ()

    def ratio(self) -> tuple[int, int]:
        return self.r_num - 1, self.r_den


class Miscounted(Wave):
    """Claims a total that its weights do not have."""

    __slots__ = ()

    def __new__(cls, *fields: Any) -> Self:
        return cls._make((*fields[:-1], fields[-1] + 1))


@pytest.mark.parametrize(
    ("kind", "claims"),
    [
        (WindowTooFar, {"sampler"}),
        (WindowTooWide, {"weights"}),
        (OffAtTheBorder, {"sampler"}),
        (DrawsTwice, {"sampler", "encoder"}),
        (Understated, {"device"}),
        (Miscounted, {"totals", "sampler", "unbiased", "figures", "plan"}),
    ],
)
def test_a_broken_wave_fails(kind: type[Wave], claims: set[str]) -> None:
    assert failed(certify(with_channel(sound(), kind), ONE)) == claims


@pytest.mark.parametrize("kind", [OffAtTheBorder, DrawsTwice, Understated, Miscounted])
def test_a_broken_wave_fails_also_as_the_second_of_two(kind: type[Wave]) -> None:
    assert failed(certify(with_channel(sound(), kind, branch=1), ONE))


@pytest.mark.parametrize("kind", [WindowTooFar, WindowTooWide, OffAtTheBorder])
def test_a_wave_too_large_to_be_read_whole_fails_by_its_spots(kind: type[Wave]) -> None:
    large = SquareWave(epsilon=1, low=0, high=4000)
    assert failed(certify(with_channel(large, kind), ONE)) & {"sampler", "weights"}


class Tilted(Profile):
    """Samples the profile from its other end."""

    __slots__ = ()

    def sample(self, index: int, draw: Uniform) -> int:
        code: int = super().sample(index, draw)
        at = code - index
        return index + 2 * self.c - at if 0 <= at <= 2 * self.c else code


def test_a_broken_profile_fails() -> None:
    wave = GeneralWave(epsilon=1, low=0, high=1000, size=64)
    assert "sampler" in failed(certify(with_channel(wave, Tilted), ONE))


def tuned(sums: Callable[[list[list[int]]], None]) -> Mechanism:
    """Return a ready table with its cumulative weights changed behind its maker's back."""
    made = Tuned(epsilon=1, low=0, high=1000)
    rows = [list(row) for row in made.table.sums]
    sums(rows)
    bad = made.table._replace(sums=tuple(tuple(row) for row in rows))
    made.randomizer = made.randomizer._replace(channels=(bad,))
    return made


def longer_row(rows: list[list[int]]) -> None:
    rows[2][-1] += 1


def zero_weight(rows: list[list[int]]) -> None:
    rows[2][3] = rows[2][2]


def heavier_code(rows: list[list[int]]) -> None:
    most = max(range(16), key=lambda j: rows[0][j] - (rows[0][j - 1] if j else 0))
    for at in range(most, 15):
        rows[0][at] += 10**6


@pytest.mark.parametrize(
    ("change", "claims"),
    [
        (longer_row, {"totals", "sampler", "plan"}),
        (zero_weight, {"positive", "sampler", "ratio", "plan", "device"}),
        (heavier_code, {"ratio", "device", "unbiased", "plan"}),
    ],
)
def test_a_table_that_was_tampered_with_fails(
    change: Callable[[list[list[int]]], None], claims: set[str]
) -> None:
    assert claims <= failed(certify(tuned(change), ONE))


def test_a_plan_that_would_carry_another_table_fails() -> None:
    made = Tuned(epsilon=1, low=0, high=1000)
    first, *rest = made.response.weights
    made.response = replace(made.response, weights=((first[0] + 1, *first[1:]), *rest))
    assert failed(certify(made, ONE)) == {"plan"}


def test_a_table_that_understates_its_ratio_fails() -> None:
    understated = table([[1, 4], [3, 2]])._replace(bound=(2, 1))
    claims = {claim.name: claim.holds for claim in prove_channel(understated).claims}
    assert claims == {
        "weights": True,
        "totals": True,
        "positive": True,
        "sampler": True,
        "device": False,
    }


class LinearTable(Table):
    """Searches for the first sum that is no less than the draw."""

    __slots__ = ()

    def sample(self, index: int, draw: Uniform) -> int:
        u = draw(self.total)
        return next(j for j, most in enumerate(self.sums[index]) if most >= u)


def test_a_search_that_takes_no_less_for_more_fails() -> None:
    assert failed(certify(with_channel(Tuned(epsilon=1, low=0, high=9), LinearTable), ONE)) == {
        "sampler"
    }


class Shifted(Piecewise):
    """Decodes every code a hundredth of a step too high."""

    @property
    def decoders(self) -> Any:
        true = affine(self.waves[0])
        first, second, third = true.excess
        shift = Fraction(first, 100)
        return (Affine(true.total, (first, second - int(shift), third), true.flat),)


def test_biased_outputs_of_a_wave_fail() -> None:
    found = certify(Shifted(epsilon=1, low=0, high=1000, size=64), ONE)
    assert "unbiased" in failed(found)
    assert Fraction(found.figures["bias"] or 0) > Fraction(1, 10**4)


class Uneven(Piecewise):
    """Decodes one code elsewhere."""

    def decode_exact(self, code: int) -> Fraction:
        return super().decode_exact(code) + (code == 3)


def test_a_wave_that_decodes_unevenly_fails_without_figures() -> None:
    found = certify(Uneven(epsilon=1, low=0, high=1000, size=64), ONE)
    assert failed(found) == {"unbiased"}
    assert found.figures["worst_variance"] is None


def test_biased_outputs_of_a_table_fail() -> None:
    made = Tuned(epsilon=1, low=0, high=1000)
    indices = [made.decoders[0].index(j) for j in range(16)]
    indices[7] += Fraction(1, 10**6)
    made.__dict__["decoders"] = (ListedDecoder(made.table, tuple(indices)),)
    assert "unbiased" in failed(certify(made, ONE))


class SkipsRounding(Randomizer):
    """Does not draw where nothing is to be rounded: the number of draws tells."""

    __slots__ = ()

    def perturb(self, value: int, draw: Uniform) -> int:
        def shorter(n: int) -> int:
            return 0 if n == self.high - self.low and value == self.low else draw(n)

        return super().perturb(value, shorter)


class LoadedCoin(Randomizer):
    """Tosses another coin for high values."""

    __slots__ = ()

    def perturb(self, value: int, draw: Uniform) -> int:
        num, den = self.coin
        coin = (num + 1, den) if value > self.high // 2 else self.coin
        return Randomizer.perturb(Randomizer(*self._replace(coin=coin)), value, draw)


class Unclamped(Randomizer):
    """Wraps values that lie above the range."""

    __slots__ = ()

    def perturb(self, value: int, draw: Uniform) -> int:
        return super().perturb(value % (self.high + 1), draw)


class RoundsDown(Randomizer):
    """Rounds to the lower point, and throws the draw away."""

    __slots__ = ()

    def perturb(self, value: int, draw: Uniform) -> int:
        span = self.high - self.low

        def down(n: int) -> int:
            answer = draw(n)
            return span - 1 if n == span else answer

        return super().perturb(value, down)


class Overlapping(Randomizer):
    """Has the second branch's first code for the first branch's last."""

    __slots__ = ()

    @property
    def code_count(self) -> int:
        return super().code_count - 1

    def perturb(self, value: int, draw: Uniform) -> int:
        code: int = super().perturb(value, draw)
        return code - 1 if code >= self.channels[0].code_count else code


@pytest.mark.parametrize("kind", [SkipsRounding, LoadedCoin, Unclamped, RoundsDown])
def test_a_value_that_reaches_its_channel_otherwise_fails(kind: type[Randomizer]) -> None:
    assert failed(certify(with_randomizer(sound(), kind), ONE)) == {"encoder"}


def test_branches_that_share_a_code_fail() -> None:
    assert {"coin", "encoder"} <= failed(certify(with_randomizer(sound(), Overlapping), ONE))


def test_a_plan_with_a_broken_part_fails_in_that_part() -> None:
    survey = with_channel(SquareWave(epsilon=1, low=0, high=1000, size=64), OffAtTheBorder)
    proved = certify_pair(sound(), survey, (1, 16), ONE)
    assert not proved.holds
    assert failed(proved.parts["survey_mechanism"]) == {"sampler"}
    assert failed(proved.parts["stream_mechanism"]) == set()


def test_a_plan_whose_parts_have_different_ratios_has_the_larger() -> None:
    steep = SquareWave(epsilon=2, low=0, high=1000, size=64)
    proved = certify_pair(sound(), steep, (1, 16), ONE)
    assert proved.ratio == steep.max_ratio
    assert "ratio" in {claim.name for claim in proved.claims if not claim.holds}
