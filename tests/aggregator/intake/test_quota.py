"""REP-09: who floods is found in bounded memory, and nobody is counted too high."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.intake.quota import COUNTERS, Quota
from tests.reached import reached

HOUR_S = 3600
NOW_S = 500_000 * HOUR_S


def test_REP_09_a_device_is_refused_above_its_limit_until_the_interval_is_over() -> None:
    quota = Quota(10, HOUR_S)
    quota.charge({"loud": 10, "quiet": 1}, NOW_S)
    assert not quota.over(NOW_S)
    quota.charge({"loud": 1}, NOW_S + HOUR_S - 1)
    assert quota.over(NOW_S + HOUR_S - 1) == {"loud"}
    assert not quota.over(NOW_S + HOUR_S)
    quota.charge({"loud": 10}, NOW_S + HOUR_S)
    assert not quota.over(NOW_S + HOUR_S)


def test_REP_09_messages_that_counted_are_no_charge() -> None:
    quota = Quota(1, HOUR_S)
    quota.charge({"busy": 0, "late": -3}, NOW_S)
    assert not quota.over(NOW_S)


def test_REP_09_a_clock_that_goes_back_frees_everybody() -> None:
    quota = Quota(1, HOUR_S)
    quota.charge({"loud": 2}, NOW_S)
    assert not quota.over(NOW_S - 86_400)


def test_REP_09_a_million_names_take_a_bounded_room_and_hide_no_flood() -> None:
    quota = Quota(1000, HOUR_S)
    for turn in range(2000):
        quota.charge({f"{turn}-{at}": 1 for at in range(500)} | {"loud": 2}, NOW_S)
        if turn % 20 == 0:
            held = sum("-" in one for one in reached(quota) if isinstance(one, str))
            assert held <= COUNTERS
    assert quota.over(NOW_S) == {"loud"}


charges = st.lists(
    st.dictionaries(st.integers(0, 4 * COUNTERS).map(str), st.integers(1, 9), max_size=40),
    max_size=60,
)


@settings(max_examples=50, deadline=None)
@given(charges, st.integers(1, 30))
def test_REP_09_no_device_is_refused_below_its_limit_and_none_is_missed_far_above(
    given_: list[dict[str, int]], limit: int
) -> None:
    quota, sent = Quota(limit, HOUR_S), Counter[str]()
    for useless in given_:
        quota.charge(useless, NOW_S)
        sent.update(useless)
    over = quota.over(NOW_S)
    assert all(sent[device] > limit for device in over)
    slack = sent.total() / COUNTERS
    assert all(device in over for device, n in sent.items() if n > limit + slack)
