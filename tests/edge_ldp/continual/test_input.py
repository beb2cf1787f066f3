"""What a stream does with input that it should never get: typed errors, or as documented."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from edge_ldp import ParameterError
from edge_ldp.continual import (
    Curator,
    Design,
    Fixed,
    NoisyMax,
    Quantile,
    Released,
    Shape,
    parse_state,
    tops_design,
)
from edge_ldp.continual.curator import MAX_SLOT
from tests.edge_ldp.continual.paths import noise_from
from tests.edge_ldp.continual.streams import DESIGNS, READINGS, SMALL, run

F = Fraction


@pytest.mark.parametrize("slot", [MAX_SLOT + 1, 10**30, -5, "7", 7.0, True])
def test_a_slot_that_no_state_could_hold_is_refused_and_nothing_changes(slot: Any) -> None:
    curator = Curator(DESIGNS["public"], draw=noise_from(1))
    curator.push(3)
    before = curator.state()
    with pytest.raises(ParameterError, match="slot"):
        curator.push(3, slot=slot)
    assert curator.state() == before


def test_the_clock_may_leap_as_far_as_a_slot_goes_and_the_state_still_parses() -> None:
    """A gap of years is missing slots: one step, no noise, no budget, no zeros."""
    curator = Curator(DESIGNS["public"], draw=noise_from(1))
    collected = Released(curator.design)
    for slot in (0, 5, 10**9, MAX_SLOT):
        collected.add(curator.push(4, slot=slot))
        assert parse_state(curator.state().to_json()) == curator.state()
    assert curator.account.released == 4
    assert collected.range(0, 10**9).readings == 2
    assert collected.range(0, 10**9).missing == 10**9 - 2
    assert curator.push(4).slot == MAX_SLOT + 1
    assert parse_state(curator.state().to_json()) == curator.state()


def test_a_clock_that_steps_back_releases_no_slot_again() -> None:
    curator = Curator(DESIGNS["tops"], draw=noise_from(2))
    for slot in range(30):
        curator.push(READINGS[slot], slot=slot)
    before = curator.state()
    for slot in range(30):
        with pytest.raises(ParameterError):
            curator.push(READINGS[slot], slot=slot)
    assert curator.state() == before


def test_a_reading_beyond_every_machine_word_counts_as_theta() -> None:
    huge = [10**40 if k % 7 == 0 else reading for k, reading in enumerate(READINGS)]
    cut = [min(reading, 50) for reading in huge]
    for name in ("tops", "tree", "causal", "flat", "public", "sequential"):
        assert run(DESIGNS[name], [*huge]) == run(DESIGNS[name], [*cut])


def test_theta_may_be_the_ceiling_and_not_above() -> None:
    assert tops_design(**SMALL, theta=50).optimiser == Fixed(50)
    with pytest.raises(ParameterError, match="theta"):
        tops_design(**SMALL, theta=51)
    assert DESIGNS["tops"].limit(10**9) == 50


@pytest.mark.parametrize("chunk", [1, 3, 16, 17, 63, 100, 4095])
@pytest.mark.parametrize("kind", ["consistent", "tree", "causal", "flat"])
def test_chunks_need_be_no_power_of_the_fanout(chunk: int, kind: str) -> None:
    design = Design(Fixed(9), Shape(kind, 4, chunk), F(1), 9, 0)
    made = run(design, [*READINGS[:300]])
    assert all(release.value is not None for release in made)
    curator = Curator(design)
    for _ in range(2 * chunk + 1):
        curator.push(1)
    assert curator.account.chunks == 3


BUDGETS: list[Any] = [F(0), F(-1), F(1, 1 << 16), F(33), 0.1, 1, "0.1", None]
MAKERS: list[Callable[[Any], object]] = [
    lambda e: Design(Fixed(3), Shape("flat", 2, 4), e, 5, 0),
    lambda e: NoisyMax(5, Shape("flat", 2, 4), e, F(1)),
    lambda e: NoisyMax(5, Shape("flat", 2, 4), F(1), e),
    Quantile,
]


@pytest.mark.parametrize("epsilon", BUDGETS)
@pytest.mark.parametrize("make", MAKERS)
def test_a_budget_that_is_no_rational_of_the_allowed_size_is_refused(
    make: Callable[[Any], object], epsilon: Any
) -> None:
    with pytest.raises(ParameterError, match="epsilon"):
        make(epsilon)


def test_a_budget_too_small_for_integer_noise_is_refused_before_any_reading() -> None:
    """θ·levels/ε ≤ 2^40: at the edge it works, above it is refused; ε has its own least value."""
    ceiling = (1 << 40) // 10_000
    edge = Design(Fixed(ceiling), Shape("flat", 2, 4), F(1, 10_000), ceiling, 0)
    assert Curator(edge, draw=noise_from(1)).push(1).value is not None
    with pytest.raises(ParameterError, match="large enough for integer noise"):
        Design(Fixed(1), Shape("flat", 2, 4), F(1, 10_000), ceiling + 1, 0)
