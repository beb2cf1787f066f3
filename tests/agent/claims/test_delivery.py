"""Delivery loses nothing and never sends without measure."""

from copy import deepcopy
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from agent.claims.batches import Key
from agent.claims.delivery import DAY_S, STEPS, Delivery
from edge_ldp.protocol.messages import Receipt, StreamReceipt
from edge_ldp.protocol.released import FIRST_KEY
from tests.tables import each

WINDOW = 3
RESEND_S = 100.0
NEVER_S = 1e12


def shortest(_n: int) -> int:
    return 0


def keys(*numbers: int, stream: int = 1) -> list[Key]:
    return [Key(stream, number) for number in numbers]


def delivery_of(*numbers: int, window: int = WINDOW) -> Delivery:
    delivery = Delivery(window, RESEND_S, shortest)
    delivery.add(keys(*numbers))
    return delivery


def receipt(highest: int, *gaps: tuple[int, int], stream: int = 1) -> Receipt:
    return Receipt((StreamReceipt(stream, highest, gaps),))


def taken(delivery: Delivery) -> list[Key]:
    """Take every message that may go now."""
    return list(iter(delivery.take, None))


def sent(delivery: Delivery, now_s: float) -> list[Key]:
    """Send all that may go now, and what may go after it; return what went."""
    found = []
    while (first := delivery.take()) is not None:
        delivery.acknowledged(first, now_s)
        found.append(first)
    return found


def test_batches_go_out_oldest_first_and_no_more_than_the_window() -> None:
    delivery = delivery_of(1, 2, 3, 4, 5)
    assert taken(delivery) == keys(1, 2, 3)
    assert taken(delivery) == []
    delivery.acknowledged(Key(1, 2), 0.0)
    assert delivery.due
    assert taken(delivery) == keys(4)


def test_batches_of_a_lost_link_go_out_again_first_and_oldest_first() -> None:
    delivery = delivery_of(1, 2, 3, 4, 5)
    for key in taken(delivery):
        delivery.failed(key)
    assert taken(delivery) == keys(1, 2, 3)


def test_several_streams_keep_their_order_over_a_lost_link() -> None:
    delivery = Delivery(4, RESEND_S, shortest)
    delivery.add([key for number in range(1, 5) for key in (Key(1, number), Key(2, number + 7))])
    for key in reversed(taken(delivery)):
        delivery.failed(key)
    went = sent(delivery, 0.0)
    assert went[:4] == [Key(1, 1), Key(2, 8), Key(1, 2), Key(2, 9)]
    assert [key.number for key in went if key.stream == 1] == [1, 2, 3, 4]
    assert [key.number for key in went if key.stream == 2] == [8, 9, 10, 11]


def test_without_a_receipt_one_message_goes_a_turn_and_what_is_new_goes_first_NET_25() -> None:
    delivery = delivery_of(1, 2)
    assert sent(delivery, 10.0) == keys(1, 2)
    delivery.add(keys(3))
    assert sent(delivery, 50.0) == keys(3)  # nothing is late yet
    delivery.overdue(109.9)
    assert sent(delivery, 109.9) == []
    delivery.overdue(110.0)
    delivery.add(keys(4, 5))
    assert sent(delivery, 110.0) == keys(4)  # one message, and nothing twice while there is new
    assert delivery.is_silent
    delivery.overdue(309.9)
    assert sent(delivery, 309.9) == []
    for turn_s in (310.0, 710.0, 1510.0):
        delivery.overdue(turn_s)
        assert sent(delivery, turn_s) == keys(5)  # the newest: its receipt tells of all before it
    assert delivery.received(receipt(5, (1, 1), (4, 4)), 1511.0) == keys(2, 3, 5)
    assert sent(delivery, 1511.0) == keys(1, 4)


@pytest.mark.parametrize("step", [0, STEPS // 2, STEPS - 1])
def test_turns_come_later_and_later_up_to_a_day_apart_NET_25(step: int) -> None:
    hour_s = 3600.0
    delivery = Delivery(10, 2 * hour_s, lambda _n: step)
    delivery.add(keys(1))
    now_s, turns = 0.0, [0.0]
    assert sent(delivery, now_s) == keys(1)
    while now_s < 40 * DAY_S:
        now_s += 60.0
        delivery.overdue(now_s)
        if sent(delivery, now_s):
            turns.append(now_s)
    waits = [b - a for a, b in pairwise(turns)]
    chance = 1 + step / STEPS
    expected = [min(2.0**n * 2, 12) * hour_s * chance for n in range(len(waits))]
    assert waits == pytest.approx(expected, abs=60)
    assert len(waits) <= 82  # not one each two hours: 480
    assert max(waits) <= DAY_S + 60


def test_a_receipt_interval_of_a_day_or_more_is_not_shortened() -> None:
    delivery = Delivery(10, 2 * DAY_S, shortest)
    delivery.add(keys(1))
    sent(delivery, 0.0)
    delivery.overdue(2 * DAY_S - 1)
    assert not delivery.due
    delivery.overdue(2 * DAY_S)
    assert delivery.due


def closed(*numbers: int) -> Delivery:
    """Return a delivery whose first turn came without a receipt: the next one is at 300."""
    delivery = delivery_of(*numbers)
    sent(delivery, 0.0)
    delivery.overdue(RESEND_S)
    assert len(sent(delivery, RESEND_S)) == 1
    assert delivery.is_silent
    return delivery


def test_a_receipt_opens_the_gate_and_only_what_it_tells_is_missing_goes_again_NET_25() -> None:
    delivery = closed(1, 2, 3)
    delivery.add(keys(4, 5))
    assert sent(delivery, 200.0) == []
    assert sorted(delivery.received(receipt(3, (1, 2)), 1000.0)) == keys(3)
    assert sent(delivery, 1000.0) == keys(1, 2, 4, 5)
    assert delivery.received(receipt(3, (1, 2)), 1001.0) == []
    assert sent(delivery, 1001.0) == []  # sent a moment ago


def test_what_a_late_aggregator_may_still_have_is_not_sent_again_NET_26() -> None:
    """Receipts trickle, each of the oldest batch: the others stand in the broker's queue."""
    delivery = delivery_of()
    went = []
    for number in range(1, 201):
        now_s = number * RESEND_S / 2
        delivery.add(keys(number))
        delivery.overdue(now_s)
        went += sent(delivery, now_s)
        if number % 3 == 0:
            delivery.received(receipt(number // 3), now_s)
    assert sorted(went) == keys(*range(1, 201))


def test_a_batch_that_stays_missing_goes_later_and_later_NET_26() -> None:
    delivery = delivery_of(1, 2)
    sent(delivery, 0.0)
    went = []
    for now_s in range(0, 5000, 10):
        delivery.received(receipt(2, (1, 1)), float(now_s))
        went += [now_s for _ in sent(delivery, float(now_s))]
    assert went == [100, 300, 700, 1500, 3100]


def test_what_goes_again_and_again_and_is_not_counted_is_told_AGT_28() -> None:
    """Receipts come, so somebody is there: one that counts nothing of what is sent."""
    delivery = delivery_of(1, 2)
    told, now_s = [], 0.0
    for _ in range(4):
        sent(delivery, now_s)
        told.append(delivery.is_uncounted)
        delivery.received(receipt(0), now_s + 1)
        now_s += 5 * DAY_S
        delivery.overdue(now_s)
    assert told == [False, False, True, True]
    delivery.add(keys(3))
    sent(delivery, now_s)
    delivery.received(receipt(3, (1, 2)), now_s)  # a later one counts: these alone do not
    assert not delivery.is_uncounted


def test_after_a_restart_one_message_goes_until_a_receipt_comes_NET_25() -> None:
    delivery = Delivery(WINDOW, RESEND_S, shortest)
    delivery.resume(keys(1, 2, 3, 4))
    assert sent(delivery, 0.0) == keys(4)
    delivery.add(keys(5))
    assert sent(delivery, 1.0) == []
    delivery.received(receipt(1), 2.0, is_live=False)  # one that the broker kept: a turn, no more
    assert sent(delivery, 2.0) == keys(5)
    assert delivery.received(receipt(1), 3.0) == []  # somebody is there
    assert sent(delivery, 3.0) == keys(2, 3)


def test_a_receipt_that_covers_nothing_does_not_end_the_waiting_NET_25() -> None:
    """The aggregator is there, and what was sent is gone: it goes again, in turns."""
    delivery = delivery_of(1)
    sent(delivery, 0.0)
    delivery.overdue(RESEND_S)
    delivery.received(receipt(0), RESEND_S)
    assert sent(delivery, RESEND_S) == []
    delivery.overdue(2 * RESEND_S)
    assert sent(delivery, 2 * RESEND_S) == keys(1)


def test_each_stream_has_its_turn() -> None:
    delivery = Delivery(WINDOW, RESEND_S, shortest)
    delivery.resume([Key(1, 1), Key(2, 1), Key(1, 2)])
    went = []
    for turn in range(4):
        delivery.overdue(turn * DAY_S)
        went += sent(delivery, turn * DAY_S)
    assert sorted(went) == [Key(1, 2), Key(1, 2), Key(2, 1), Key(2, 1)]


def test_nothing_kept_from_before_is_as_a_new_device() -> None:
    delivery = Delivery(WINDOW, RESEND_S, shortest)
    delivery.resume([])
    delivery.add(keys(1, 2))
    assert sent(delivery, 0.0) == keys(1, 2)


def test_a_turn_whose_link_is_lost_is_taken_again() -> None:
    delivery = closed(1, 2)
    delivery.overdue(300.0)
    first = delivery.take()
    assert first == Key(1, 2)
    delivery.forget(keys(2))
    delivery.failed(first)
    assert delivery.take() == Key(1, 1)


def test_a_present_aggregator_ends_a_silence_at_a_random_moment_and_not_often_NET_25() -> None:
    delivery = closed(1)
    delivery.draw = lambda n: n // 2
    delivery.met(120.0, 60.0)
    delivery.overdue(149.9)
    assert not delivery.due
    delivery.overdue(150.0)
    assert sent(delivery, 150.0) == keys(1)  # the next turn, of 400 s and half as much: at 750
    delivery.met(160.0, 60.0)
    delivery.overdue(219.9)
    assert not delivery.due  # believed a moment ago
    delivery.met(220.0, 60.0)
    delivery.overdue(250.0)
    assert delivery.due


@given(st.lists(st.floats(0, 5000), max_size=300))
def test_forged_presence_gains_one_message_in_two_receipt_intervals_NET_25(
    told_s: list[float],
) -> None:
    def sendings(told: list[float]) -> int:
        delivery = closed(1)
        times = sorted({*told, *map(float, range(100, 5001, 20))})
        return sum(bool(_lived(delivery, at, told)) for at in times)

    assert sendings(sorted(told_s)) <= sendings([]) + 5000 / RESEND_S + 1


def _lived(delivery: Delivery, now_s: float, told: list[float]) -> list[Key]:
    if now_s in told:
        delivery.met(now_s, 0.0)
    delivery.overdue(now_s)
    return sent(delivery, now_s)


def test_presence_changes_nothing_while_receipts_come() -> None:
    delivery = delivery_of(1)
    sent(delivery, 0.0)
    delivery.met(1.0, 0.0)
    delivery.overdue(2.0)
    assert not delivery.due


def joined(delivery: Delivery, most: int) -> list[Key]:
    """Take one message of at most so many batches."""
    first = delivery.take()
    if first is None:
        return []
    found = [first]
    while len(found) < most and (key := delivery.following(first)) is not None:
        delivery.join(first, key)
        found.append(key)
    return found


def test_several_batches_go_in_one_message_where_the_aggregator_takes_them_NET_25() -> None:
    delivery = delivery_of(1, 2, 3, 4)
    assert joined(delivery, 9) == keys(1)
    delivery.several = True
    assert joined(delivery, 2) == keys(2, 3)
    assert joined(delivery, 9) == keys(4)
    delivery.failed(Key(1, 2))
    assert joined(delivery, 9) == keys(2, 3)
    assert sorted(delivery.received(receipt(3), 0.0)) == keys(1, 2, 3)
    delivery.acknowledged(Key(1, 2), 0.0)
    assert taken(delivery) == []


def test_a_turn_holds_all_that_is_new_and_nothing_twice_NET_25() -> None:
    delivery = closed(1, 2)
    delivery.several = True
    delivery.add(keys(3, 4))
    delivery.overdue(300.0)
    assert joined(delivery, 9) == keys(3, 4)
    assert joined(delivery, 9) == []


def test_released_values_go_alone() -> None:
    delivery = delivery_of(1)
    delivery.several = True
    delivery.add([Key(FIRST_KEY, 1), Key(FIRST_KEY, 2), Key(1, 2)])
    assert joined(delivery, 9) == keys(1)
    assert joined(delivery, 9) == [Key(FIRST_KEY, 1)]
    assert joined(delivery, 9) == [Key(FIRST_KEY, 2)]


@pytest.mark.parametrize(
    ("covered", "given_receipt"),
    each(
        ([], receipt(0), receipt(99, (1, 99)), receipt(99, stream=2), Receipt(())),
        ([1, 2], receipt(2), receipt(99)),
        ([1], receipt(4, (2, 3))),
    ),
)
def test_a_receipt_settles_what_it_covers_and_went_NET_24(
    given_receipt: Receipt, covered: list[int]
) -> None:
    delivery = delivery_of(1, 2, 3, 4, window=2)
    taken(delivery)
    # 1 waits for its receipt, 2 is in flight; 3 and 4 are due: who knows of them lies
    delivery.acknowledged(Key(1, 1), 0.0)
    assert sorted(delivery.received(given_receipt, 0.0)) == keys(*covered)
    assert delivery.received(given_receipt, 0.0) == []
    delivery.failed(Key(1, 2))
    assert sorted(delivery.kept) == sorted(set(keys(1, 2, 3, 4)) - set(keys(*covered)))


def test_late_acknowledgements_and_failures_of_settled_batches_change_nothing() -> None:
    delivery = delivery_of(1, 2)
    taken(delivery)
    delivery.received(receipt(2), 0.0)
    delivery.acknowledged(Key(1, 1), 0.0)
    delivery.failed(Key(1, 2))
    delivery.failed(Key(1, 9))
    delivery.acknowledged(Key(1, 9), 0.0)
    delivery.overdue(NEVER_S)
    assert not delivery.due
    assert not delivery.is_silent


class DeliveryMachine(RuleBasedStateMachine):
    """Any order of everything against the plainest model: a set of batches that are kept."""

    def __init__(self) -> None:
        super().__init__()
        self.delivery = Delivery(WINDOW, RESEND_S, shortest, several=True)
        self.kept: set[Key] = set()
        self.flying: dict[Key, list[Key]] = {}
        self.now_s = 0.0
        self.made = {1: 0, 2: 0}
        self.went: set[Key] = set()  # handed to a link, and of these
        self.sent: set[Key] = set()  # acknowledged

    @rule(stream=st.sampled_from([1, 2]), count=st.integers(1, 4))
    def pack(self, stream: int, count: int) -> None:
        numbers = range(self.made[stream] + 1, self.made[stream] + 1 + count)
        self.made[stream] += count
        fresh = keys(*numbers, stream=stream)
        self.delivery.add(fresh)
        self.kept.update(fresh)

    @rule(most=st.integers(1, 3))
    def send(self, most: int) -> None:
        is_due = self.delivery.due
        message = joined(self.delivery, most)
        assert bool(message) == is_due
        assert set(message) <= self.kept
        flying = {key for along in self.flying.values() for key in along}
        assert not set(message) & flying
        assert len(set(message)) == len(message)
        self.went.update(message)
        if message:
            self.flying[message[0]] = message
        assert len(self.flying) <= WINDOW

    @precondition(lambda self: self.flying)
    @rule(which=st.integers(0, 99), good=st.booleans())
    def end(self, which: int, *, good: bool) -> None:
        first = sorted(self.flying)[which % len(self.flying)]
        message = self.flying.pop(first)
        if good:
            self.sent.update(message)
            self.delivery.acknowledged(first, self.now_s)
        else:
            self.delivery.failed(first)

    @rule(key=st.builds(Key, st.sampled_from([1, 2]), st.integers(1, 20)), good=st.booleans())
    def stray(self, key: Key, *, good: bool) -> None:
        if key in self.flying:
            return
        if good:
            self.delivery.acknowledged(key, self.now_s)
        else:
            self.delivery.failed(key)

    @rule(
        stream=st.sampled_from([1, 2]),
        highest=st.integers(0, 25),
        gap=st.tuples(st.integers(1, 25), st.integers(0, 5)),
        live=st.booleans(),
    )
    def receive(self, stream: int, highest: int, gap: tuple[int, int], *, live: bool) -> None:
        told = receipt(highest, (gap[0], gap[0] + gap[1]), stream=stream)
        covered = {key for key in self.delivery.covered(told) if told.covers(*key)}
        assert covered <= self.kept
        assert {key for key in self.sent & self.kept if told.covers(*key)} <= covered
        assert covered <= self.went
        got = self.delivery.received(told, self.now_s, is_live=live)
        assert sorted(got) == sorted(covered)
        assert not (live and self.delivery.is_silent)
        self.kept -= covered

    @rule(number=st.integers(1, 25))
    def expire(self, number: int) -> None:
        gone = {key for key in self.kept if key.number <= number // 5}
        self.delivery.forget(gone)
        self.kept -= gone

    @rule(seconds=st.sampled_from([0.0, 1.0, 50.0, 100.0]), met=st.booleans())
    def wait(self, seconds: float, *, met: bool) -> None:
        self.now_s += seconds
        if met:
            self.delivery.met(self.now_s, 10.0)
        self.delivery.overdue(self.now_s)

    @invariant()
    def nothing_is_lost_and_everything_goes_in_the_end(self) -> None:
        """Whatever happened, there is a next turn; a receipt that covers nothing then brings all.

        What is told to be missing goes at once, and what is new goes in turns if no receipt comes.
        """
        copy = deepcopy(self.delivery)
        assert sorted(copy.kept) == sorted(self.kept)
        for first in self.flying:
            copy.failed(first)
        turns = 0
        for turn in range(1, 4):
            copy.overdue(self.now_s + turn * DAY_S)
            turns += len(sent(copy, self.now_s + turn * DAY_S)) > 0
        assert turns or not self.kept
        later_s = self.now_s + 5 * DAY_S
        went = sent(copy, later_s)
        copy.received(Receipt(tuple(StreamReceipt(s, 99, ((1, 99),)) for s in (1, 2))), later_s)
        assert {*went, *sent(copy, later_s)} == self.kept


TestDelivery = DeliveryMachine.TestCase
TestDelivery.settings = settings(
    max_examples=settings().max_examples * 3 // 5, stateful_step_count=40
)
