"""The portable clients against models written from the contract: every draw, and its order."""

from collections.abc import Callable
from fractions import Fraction
from math import prod
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_ldp.device.channel import Wave, wave
from edge_ldp.device.errors import ParameterError
from edge_ldp.device.oracle import (
    PRIME,
    grr,
    haar_hrr,
    hierarchy,
    hrr,
    level_sizes,
    log2_above,
    olh,
    oue,
    parity,
)
from tests.edge_ldp.device.oracle_models import (
    Model,
    Report,
    grr_model,
    haar_model,
    hrr_model,
    odd,
    olh_model,
    oue_model,
    tree_model,
)
from tests.edge_ldp.laws import Uniform, outcomes, scripted

MIXED = (grr(3, 5, 2), olh(9, 2, 5, 2, prime=11))
CLIENTS: list[tuple[Any, Model]] = [
    (grr(2, 3, 1), grr_model(2, 3, 1)),
    (grr(5, 5, 2), grr_model(5, 5, 2)),
    (olh(4, 3, 3, 1, prime=5), olh_model(3, 5, 3, 1)),
    (olh(7, 2, 3, 2, prime=7), olh_model(2, 7, 3, 2)),
    (hrr(2, 5, 2), hrr_model(2, 5, 2)),
    (hrr(5, 3, 1), hrr_model(5, 3, 1)),
    (hrr(8, 3, 1), hrr_model(8, 3, 1)),
    (oue(2, 5, 2), oue_model(2, 5, 2)),
    (oue(4, 2, 1), oue_model(4, 2, 1)),
    (hierarchy(5, 3, MIXED), tree_model(3, [grr_model(3, 5, 2), olh_model(2, 11, 5, 2)])),
    (
        hierarchy(7, 2, (grr(2, 2, 1), grr(4, 3, 1), grr(8, 3, 2))),
        tree_model(2, [grr_model(2, 2, 1), grr_model(4, 3, 1), grr_model(8, 3, 2)]),
    ),
    (haar_hrr(2, 5, 2), haar_model(2, 5, 2)),
    (haar_hrr(5, 5, 2), haar_model(5, 5, 2)),
    (haar_hrr(8, 3, 1), haar_model(8, 3, 1)),
]


def law(run: Callable[[Uniform], Any]) -> dict[tuple[Report, Report], Fraction]:
    """Return the probability of every (n of each draw, report)."""
    found: dict[tuple[Report, Report], Fraction] = {}
    for asked, report in outcomes(run):
        key = asked, tuple(report)
        found[key] = found.get(key, Fraction(0)) + Fraction(1, prod(asked))
    return found


@pytest.mark.parametrize(("client", "model"), CLIENTS, ids=[repr(one) for one, _ in CLIENTS])
def test_draws_and_reports_have_the_law_of_the_contract(client: Any, model: Model) -> None:
    for value in range(client.size):
        found = law(lambda draw: client.perturb(value, draw))  # noqa: B023 (called at once)
        assert found == law(lambda draw: model(value, draw))  # noqa: B023


def test_a_report_that_a_reader_can_follow_by_hand() -> None:
    assert grr(4, 3, 1).perturb(2, scripted(2)) == (2,)  # of 3 + 3 tickets the last own one
    assert grr(4, 3, 1).perturb(2, scripted(5)) == (3,)
    assert olh(9, 3, 3, 1).perturb(7, scripted(4, 2, 0)) == (5, 2, (5 * 7 + 2) % 3)
    assert hrr(6, 3, 1).perturb(5, scripted(7, 0)) == (7, 0)  # 101 & 111: two bits, even
    assert hrr(6, 3, 1).perturb(5, scripted(3, 3)) == (3, 0)  # one bit, and a lie
    assert oue(9, 3, 1).perturb(8, scripted(1, 2, 1, 7, 7, 7, 7, 7, 3)) == b"\x05\x01"
    assert [oue(n, 3, 1).perturb(0, scripted(*[7] * n)) for n in (7, 8)] == [b"\0", b"\0"]
    assert haar_hrr(8, 3, 1).perturb(6, scripted(1, 0, 0)) == (1, 0, 1)  # 6 is in the right half
    tree = hierarchy(40, 4, (grr(4, 3, 1), grr(16, 3, 1), olh(64, 3, 3, 1)))
    assert tree.perturb(39, scripted(0, 0)) == (0, 2)
    assert tree.perturb(39, scripted(1, 0)) == (1, 9)
    assert tree.perturb(39, scripted(2, 0, 0, 0)) == (2, 1, 0, 39 % 3)


@pytest.mark.parametrize(("client", "_"), CLIENTS, ids=[repr(one) for one, _ in CLIENTS])
def test_what_is_no_category_is_refused_before_any_draw(client: Any, _: Model) -> None:
    for value in (-1, client.size, 1 << 64, True, False, 1.0, "1", None):
        with pytest.raises(ParameterError) as refused:
            client.perturb(value, scripted())
        assert (refused.value.name, refused.value.expected) == ("value", f"0..{client.size - 1}")


def test_the_largest_hash_sum_is_computed_whole() -> None:
    client = olh(PRIME, 65_536, 65_537, 1)
    a, b, code = client.perturb(PRIME - 1, scripted(PRIME - 2, PRIME - 1, 0))
    assert (a, b) == (PRIME - 1, PRIME - 1)
    assert code == ((PRIME - 1) ** 2 + PRIME - 1) % PRIME % 65_536


@given(st.integers(0, (1 << 32) - 1))
def test_parity_is_that_of_the_bits(bits: int) -> None:
    assert parity(bits) == odd(bits)


def test_parity_of_every_single_bit_is_odd() -> None:
    assert [parity(1 << bit) for bit in range(32)] == [1] * 32
    assert [parity((1 << bit) - 1) for bit in range(33)] == [bit % 2 for bit in range(33)]


@given(st.integers(2, 1 << 31))
def test_the_power_of_two_above_is_the_least(size: int) -> None:
    height = log2_above(size)
    assert 1 << (height - 1) < size <= 1 << height


@given(st.integers(2, 1 << 20), st.integers(2, 1000))
def test_levels_end_with_the_first_that_holds_every_category(size: int, fanout: int) -> None:
    nodes = level_sizes(size, fanout)
    assert nodes == [fanout ** (level + 1) for level in range(len(nodes))]
    assert nodes[-1] // fanout < size <= nodes[-1]


def test_a_made_client_holds_what_its_report_needs() -> None:
    assert grr(5, 3, 1) == (5, wave(5, 0, 3, 1))
    assert olh(5, 3, 3, 1) == (5, PRIME, wave(3, 0, 3, 1))
    assert hrr(5, 3, 1) == (5, 8, wave(2, 0, 3, 1))
    assert oue(5, 3, 1) == (5, 3, 1)
    assert haar_hrr(5, 3, 1) == (5, 3, wave(2, 0, 3, 1))
    assert hierarchy(5, 3, MIXED) == (5, 3, MIXED, (3, 1))
    assert isinstance(grr(5, 3, 1).channel, Wave)


@pytest.mark.parametrize(
    ("make", "wrong", "name"),
    [
        (make, (size, *rest), "size")
        for make, rest, most in (
            (grr, (3, 1), 65_536),
            (olh, (3, 3, 1), PRIME),
            (hrr, (3, 1), 1 << 31),
            (oue, (3, 1), 1 << 31),
            (haar_hrr, (3, 1), 1 << 31),
            (level_sizes, (4,), PRIME),
        )
        for size in (-2, 0, 1, most + 1, 2.0, True, "8", None)
    ]
    + [
        (make, (8, *ratio), name)
        for make in (grr, hrr, oue, haar_hrr)
        for ratio, name in (
            ((1, 1), "r_num"),
            ((1, 2), "r_num"),
            ((1 << 64, 1), "r_num"),
            ((3, 0), "r_den"),
            ((3, -1), "r_den"),
            ((3.0, 1), "r_num"),
            ((3, True), "r_den"),
        )
    ]
    + [(oue, (8, (1 << 63) - 1, 1), "r_num"), (hrr, (8, (1 << 64) - 1, 1), "r_num")]
    + [(olh, (8, g, 3, 1), "g") for g in (1, 0, -3, 65_537, 2.0, True)]
    + [(olh, (8, 3, 3, 3), "r_num"), (olh, (6, 3, 3, 1, 5), "size")]
    + [(level_sizes, (8, fanout), "fanout") for fanout in (1, 0, -2, 65_537, 2.0, True)]
    + [(level_sizes, (65_537, 65_536), "size"), (level_sizes, ((1 << 30) + 1, 2), "size")]
    + [
        (hierarchy, (5, 3, levels), "levels")
        for levels in ((), MIXED[:1], MIXED[::-1], (*MIXED, grr(27, 3, 1)), (grr(3, 3, 1),) * 2)
    ],
)
def test_wrong_parameters_are_refused_by_name(make: Any, wrong: Any, name: str) -> None:
    with pytest.raises(ParameterError) as refused:
        make(*wrong)
    assert refused.value.name == name


def test_the_largest_weights_are_taken() -> None:
    assert oue(2, (1 << 63) - 2, 1).perturb(0, scripted((1 << 63) - 2, 2)) == b"\x01"
    assert hrr(2, (1 << 64) - 2, 1).perturb(0, scripted(1, (1 << 64) - 2)) == (1, 1)
