"""Which of two aggregators ends, whatever order the messages of both come in: NET-27."""

from itertools import count, permutations

import pytest

from aggregator.errors import RivalError
from aggregator.plans.rivals import (
    ALONE_S,
    ANSWERS,
    LIKE_A_TWIN,
    NEW_S,
    SHAKEN_S,
    STEADY_S,
    TIMES,
    WHILE_S,
    Rivals,
)
from edge_ldp.protocol.presence import Presence

A, B, C = "a" * 16, "b" * 16, "c" * 16
STORE = "1" * 16


def began(process: str, began_s: int) -> Rivals:
    made = Rivals(process, began_s)
    made.linked(0.0)
    return made


def here(of: Rivals, *, online: bool = True, since_s: int = 0) -> Presence:
    return Presence(online, since_s, process=of.process, began_s=of.began_s)


def test_of_two_processes_just_the_later_one_ends_NET_27() -> None:
    """However their messages mix: both hear both, in the broker's one order."""
    for ids in permutations((A, B)):
        for times in ((1, 2), (2, 1), (5, 5)):
            pair = [began(*one) for one in zip(ids, times, strict=True)]
            said = [*map(here, pair)]
            ended = set[str]()
            for _ in range(4):
                for one in pair:
                    for told in said:
                        if one.process not in ended:
                            try:
                                one.hear(told, 1.0)
                            except RivalError:
                                ended.add(one.process)
                said = [here(one) for one in pair if one.process not in ended]
            (last,) = ended
            assert last == max(zip(times, ids, strict=True))[1]


def test_what_stood_there_before_us_ends_nobody_NET_27() -> None:
    """An earlier run of the same service, killed or not, and aggregators of older versions."""
    one = began(B, 9)
    assert not one.hear(Presence(is_online=True, process=A, began_s=1), 1.0)
    assert not one.hear(Presence(is_online=True), 1.0)
    assert not one.hear(here(one), 1.0)
    assert not one.hear(Presence(is_online=True), 2.0)
    assert one.health(2.0) == "ok"
    # its last will comes late, where its connection stood half open
    assert one.hear(Presence(is_online=False, since_s=1, process=A, began_s=1), 3.0)
    assert one.hear(Presence(is_online=False, since_s=1, process=A, began_s=1), 4.0)
    assert "another aggregator" in one.health(4.0)
    assert one.health(4.0 + WHILE_S + 1) == "ok"
    with pytest.raises(RivalError, match="came first"):  # two links: it lives
        one.hear(Presence(is_online=False, since_s=2, process=A, began_s=1), 5.0)


def test_the_first_says_again_that_it_is_there_whatever_the_later_one_says() -> None:
    one = began(A, 1)
    one.hear(here(one), 1.0)
    for online in (True, False, True):
        assert one.hear(Presence(online, 3, process=C, began_s=2), 2.0)


def test_who_found_the_others_plan_ends_when_it_is_answered_NET_27() -> None:
    second, first = began("", 0), began("", 0)
    second.store, first.store = STORE, "2" * 16
    second.found(0.0)
    assert first.met(STORE, 1.0)
    with pytest.raises(RivalError, match=f"plans of store {first.store}"):
        second.met(first.store, 1.0)


def test_plans_do_not_decide_where_presences_do() -> None:
    """Else both could end, by two clocks that differ."""
    one = began(A, 1)
    one.found(0.0)
    one.hear(here(one), 1.0)
    one.hear(Presence(is_online=True, process=B, began_s=2), 1.0)
    assert one.met(STORE, 2.0)


def test_plans_are_not_answered_without_end_and_the_larger_name_ends() -> None:
    pair = [began("", 0), began("", 0)]
    pair[0].store, pair[1].store = "1" * 16, "2" * 16
    for now_s in range(ANSWERS):
        assert pair[0].met(pair[1].store, now_s)
        assert pair[1].met(pair[0].store, now_s)
    assert not pair[0].met(pair[1].store, ANSWERS)
    assert not pair[0].met(None, ANSWERS)
    with pytest.raises(RivalError):
        pair[1].met(pair[0].store, ANSWERS)
    assert pair[0].met(pair[1].store, WHILE_S + 1)


def test_receipts_wait_until_it_is_sure_to_be_alone_NET_27() -> None:
    usual = Rivals(A, 1)
    assert not usual.is_sure(1e9)  # there was no link yet
    usual.linked(10.0)
    assert not usual.is_sure(10.0 + STEADY_S - 0.1)
    assert usual.is_sure(10.0 + STEADY_S)
    usual.lost(10.0 + NEW_S, was_up=True)
    usual.linked(10.0 + NEW_S)
    assert usual.is_sure(10.0 + NEW_S)  # a link that breaks later on tells nothing of that
    shaken = began(A, 1)
    shaken.lost(3.0, was_up=True)
    assert not shaken.is_sure(3.0 + SHAKEN_S - 0.1)
    assert shaken.is_sure(3.0 + SHAKEN_S)
    lost = began(A, 1)
    lost.found(1.0)
    lost.lost(2.0, was_up=True)
    assert not lost.is_sure(1.0 + ALONE_S - 0.1)
    assert lost.is_sure(1.0 + ALONE_S)
    fast = Rivals(A, 1, rate=100.0)
    fast.linked(0.0)
    fast.found(0.0)
    assert fast.is_sure(ALONE_S / 100)


def test_links_that_keep_breaking_are_asked_about_and_attempts_that_fail_are_not() -> None:
    for was_up in (True, False):
        one, times = began(A, 1), count()
        for now_s in range(TIMES):
            assert one.health(now_s) == "ok"
            one.lost(float(now_s + 10 * next(times)), was_up=was_up)
        assert (LIKE_A_TWIN in one.health(40.0)) is was_up
