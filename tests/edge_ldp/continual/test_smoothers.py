"""Predictions are causal and what their names say; their states are whole."""

from fractions import Fraction
from statistics import median_low

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_ldp import ParameterError
from edge_ldp.continual import smoothers as room
from edge_ldp.continual.smoothers import (
    SMOOTHERS,
    Exponential,
    Mean,
    Median,
    Moving,
    Recent,
    Smoother,
)

F = Fraction
FIRST = F(7, 2)
blocks_of = st.lists(st.integers(-(10**6), 10**6), max_size=30)


def predictions(smoother: Smoother, blocks: list[int]) -> list[Fraction]:
    found = [smoother.total(FIRST)]
    for block in blocks:
        smoother.add(block)
        found.append(smoother.total(FIRST))
    return found


@given(blocks_of)
def test_each_predicts_from_finished_blocks_as_its_name_says(blocks: list[int]) -> None:
    at = range(1, len(blocks) + 1)
    assert predictions(Recent(), blocks) == [FIRST, *blocks]
    assert predictions(Mean(), blocks) == [FIRST, *(F(sum(blocks[:t]), t) for t in at)]
    assert predictions(Median(), blocks) == [FIRST, *(median_low(blocks[:t]) for t in at)]
    assert predictions(Moving(3), blocks) == [
        FIRST,
        *(F(sum(blocks[max(0, t - 3) : t]), min(t, 3)) for t in at),
    ]
    level = FIRST
    want = [level]
    for block in blocks:
        level = F(3, 5) * block + F(2, 5) * level
        want.append(level)
    for have, exact in zip(predictions(Exponential(), blocks), want, strict=True):
        assert abs(have - exact) < F(1, 2**14)


@pytest.mark.parametrize("name", sorted(SMOOTHERS))
@given(blocks=blocks_of, more=blocks_of)
def test_a_restored_smoother_goes_on_as_the_first(
    name: str, blocks: list[int], more: list[int]
) -> None:
    first, again = SMOOTHERS[name](), SMOOTHERS[name]()
    predictions(first, blocks)
    again.restore(first.state())
    assert predictions(first, more) == predictions(again, more)


@pytest.mark.parametrize("name", sorted(SMOOTHERS))
def test_states_stay_bounded(name: str) -> None:
    smoother = SMOOTHERS[name]()
    for block in range(20_000):
        smoother.add(block)
        smoother.total(FIRST)
    assert len(smoother.state()) <= room.MEDIAN_BLOCKS


def test_weights_begin_with_nothing() -> None:
    for kind in SMOOTHERS.values():
        assert kind().weights(0) == []
        whole = sum((w * (end - start) for start, end, w in kind().weights(100)), F(0))
        assert abs(whole - kind().is_linear) < F(1, 10**20)


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("recent", [1, 2]),
        ("mean", [1]),
        ("mean", [-1, 2]),
        ("moving", [1] * 5),
        ("exponential", [1, 2]),
        ("median", [0] * 8193),
    ],
)
def test_states_that_cannot_be_are_refused(name: str, state: list[int]) -> None:
    with pytest.raises(ParameterError):
        SMOOTHERS[name]().restore(state)
