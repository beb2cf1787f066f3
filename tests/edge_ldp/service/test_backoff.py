"""Waits grow, are capped, and are spread out."""

import pytest

from edge_ldp.device.errors import EntropyError
from edge_ldp.entropy import StuckEntropyError
from edge_ldp.service.backoff import JITTER_STEPS, backoff_s, unhurried


@pytest.mark.parametrize(
    ("attempt", "longest"), [(0, 0.5), (1, 1.0), (3, 4.0), (6, 30.0), (40, 30.0), (10**9, 30.0)]
)
def test_the_wait_is_spread_over_a_range_that_doubles_up_to_the_cap(
    attempt: int, longest: float
) -> None:
    assert backoff_s(attempt, lambda n: n - 1) == longest
    assert 0 < backoff_s(attempt, lambda _: 0) == longest / JITTER_STEPS
    assert backoff_s(attempt, lambda n: n // 2 - 1) == longest / 2


def test_base_and_cap_are_the_callers() -> None:
    assert backoff_s(2, lambda n: n - 1, base_s=3.0, cap_s=100.0) == 12.0
    assert backoff_s(9, lambda n: n - 1, base_s=3.0, cap_s=100.0) == 100.0


def test_without_randomness_a_wait_is_half_of_its_range_AGT_11() -> None:
    def dry(_: int) -> int:
        raise EntropyError("none")

    def stuck(_: int) -> int:
        raise StuckEntropyError

    assert unhurried(lambda n: n - 1)(10) == 9
    assert unhurried(dry)(10) == 5
    with pytest.raises(StuckEntropyError):
        unhurried(stuck)(10)
