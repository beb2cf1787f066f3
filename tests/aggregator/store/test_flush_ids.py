"""Ids of flushes say their day by themselves, whatever the clock said."""

from uuid import RFC_4122, UUID, uuid4

from hypothesis import given
from hypothesis import strategies as st

from aggregator.store.flush_ids import DAY_MS, DAYS, flush_day, flush_id

RANDOM = st.binary(min_size=10, max_size=10)


@given(st.integers(0, 2**48 - 1), RANDOM)
def test_an_id_is_a_uuid_of_version_7_that_holds_its_time_and_74_random_bits(
    at_ms: int, random: bytes
) -> None:
    made = UUID(bytes=flush_id(at_ms, random))
    assert (made.version, made.variant) == (7, RFC_4122)
    assert made.int >> 80 == at_ms
    free = ~(0xF << 76 | 0b11 << 62) & (1 << 80) - 1
    assert free.bit_count() == 74
    assert made.int & free == int.from_bytes(random, "big") & free


@given(st.integers(0, 10**6), RANDOM)
def test_the_day_turns_at_midnight_utc_and_returns_after_a_week(day: int, random: bytes) -> None:
    first, last = day * DAY_MS, (day + 1) * DAY_MS - 1
    assert {flush_day(flush_id(at_ms, random)) for at_ms in (first, last)} == {day % DAYS}
    assert flush_day(flush_id(last + 1, random)) == (day + 1) % DAYS


@given(st.integers(), RANDOM)
def test_no_clock_makes_an_id_without_a_day(at_ms: int, random: bytes) -> None:
    made = flush_id(at_ms, random)
    assert len(made) == 16
    assert 0 <= flush_day(made) < DAYS


def test_ids_that_older_versions_made_have_a_day_too() -> None:
    assert {flush_day(uuid4().bytes) for _ in range(1000)} == set(range(DAYS))  # miss: 7·(6/7)^1000
