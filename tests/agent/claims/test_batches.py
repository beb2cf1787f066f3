"""Batches keep every report, unchanged, until a receipt covers it: packing and delivery."""

from copy import deepcopy
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from agent.claims.batches import Batch, Delivery, Key, fitting, pack
from agent.claims.pipeline import Report
from edge_ldp.device.frame import (
    HEAD_BYTES,
    MAX_OFFSET,
    MAX_REPORTS,
    PAIR_BYTES,
    V1_HEAD_BYTES,
    decode,
)
from edge_ldp.protocol.messages import Receipt, StreamReceipt

WINDOW = 3
RESEND_S = 100.0


def reports_of(slots: list[int], stream: int = 1, epoch: int = 1) -> list[Report]:
    return [Report(stream, slot, epoch, slot % 97) for slot in slots]


def unpacked(batches: list[Batch]) -> list[Report]:
    found = []
    for batch in batches:
        frame = decode(batch.payload)
        assert (frame.stream, frame.batch) == batch.key
        assert batch.last_slot == frame.slots[-1]
        assert batch.reports == len(frame.slots)
        found += [
            Report(frame.stream, slot, frame.epoch, code)
            for slot, code in zip(frame.slots, frame.codes, strict=True)
        ]
    return found


@st.composite
def waiting_reports(draw: st.DrawFn) -> list[Report]:
    """Draw waiting reports: per stream slots rise and epochs never fall, as a device's do."""
    made = []
    for stream in draw(st.sets(st.integers(0, 255), max_size=3)):
        slot = draw(st.integers(0, 1 << 31))
        epoch = draw(st.integers(1, 5))
        for _ in range(draw(st.integers(1, 30))):
            slot += draw(st.sampled_from([1, 1, 1, 2, 500, MAX_OFFSET - 1, MAX_OFFSET, 1 << 17]))
            epoch += draw(st.sampled_from([0, 0, 0, 1]))
            made.append(Report(stream, slot, epoch, draw(st.integers(0, 65_535))))
    return made


@given(waiting_reports(), st.integers(1, 1 << 31))
def test_frames_decode_to_the_same_reports_AGT_13(reports: list[Report], first: int) -> None:
    batches = pack(reports, dict.fromkeys(range(256), first))
    assert sorted(unpacked(batches)) == sorted(reports)
    for batch in batches:
        frame = decode(batch.payload)
        assert frame.slots[-1] - frame.slots[0] <= MAX_OFFSET
        assert len(batch.payload) == V1_HEAD_BYTES + PAIR_BYTES * batch.reports
    for stream in {report.stream for report in reports}:
        of_stream = [batch for batch in batches if batch.key.stream == stream]
        assert [batch.key.number for batch in of_stream] == [
            first + k for k in range(len(of_stream))
        ]
        assert all(a.last_slot < b.last_slot for a, b in pairwise(of_stream))


@pytest.mark.parametrize(
    ("count", "sizes"),
    [
        (1, [1]),
        (1023, [1023]),
        (1024, [1024]),
        (1025, [1024, 1]),
        (3000, [1024, 1024, 952]),
    ],
)
def test_a_batch_holds_up_to_1024_reports(count: int, sizes: list[int]) -> None:
    assert MAX_REPORTS == 1024
    batches = pack(reports_of(list(range(50, 50 + count))), {1: 7})
    assert [batch.reports for batch in batches] == sizes
    assert [batch.key.number for batch in batches] == list(range(7, 7 + len(sizes)))


@pytest.mark.parametrize(("offset", "batches"), [(65_534, 1), (65_535, 1), (65_536, 2)])
def test_a_batch_spans_at_most_65535_slots(offset: int, batches: int) -> None:
    assert len(pack(reports_of([10, 10 + offset]), {1: 1})) == batches


@pytest.mark.parametrize(
    ("room_bytes", "reports"),
    [(0, 1), (30, 1), (31, 1), (34, 1), (35, 2), (4122, 1023), (4123, 1024), (10**6, 1024)],
)
def test_a_frame_of_so_many_bytes_holds_so_many_reports_and_never_none(
    room_bytes: int, reports: int
) -> None:
    assert (HEAD_BYTES, PAIR_BYTES) == (27, 4)
    assert fitting(room_bytes) == reports
    (batch,) = pack(reports_of(list(range(reports))), {1: 7})
    assert len(batch.payload) <= max(room_bytes, HEAD_BYTES + PAIR_BYTES)


def test_a_new_plan_epoch_begins_a_new_batch_AGT_13() -> None:
    reports = [*reports_of([1, 2], epoch=4), *reports_of([3], epoch=5), *reports_of([4], epoch=9)]
    frames = [decode(batch.payload) for batch in pack(reports, {1: 20})]
    assert [(frame.batch, frame.epoch, frame.slots) for frame in frames] == [
        (20, 4, (1, 2)),
        (21, 5, (3,)),
        (22, 9, (4,)),
    ]


def test_streams_are_numbered_apart() -> None:
    reports = [*reports_of([1, 2], 9), *reports_of([1], 4), *reports_of([3], 9)]
    batches = pack(reports, {9: 100, 4: 5, 7: 3})
    assert [(batch.key, batch.reports) for batch in batches] == [(Key(4, 5), 1), (Key(9, 100), 3)]


def test_nothing_waiting_packs_nothing() -> None:
    assert pack([], {1: 1}) == []


def test_a_stream_without_a_number_cannot_be_packed() -> None:
    with pytest.raises(KeyError):
        pack(reports_of([1]), {})


@given(st.lists(st.integers(0, 65_535), min_size=1, max_size=50))
def test_the_length_of_a_frame_tells_how_many_reports_it_holds_and_nothing_else_PRV_17(
    codes: list[int],
) -> None:
    reports = [Report(1, 1000 + at, 1, code) for at, code in enumerate(codes)]
    (batch,) = pack(reports, {1: 1})
    assert len(batch.payload) == V1_HEAD_BYTES + PAIR_BYTES * len(codes)


def test_packing_again_gives_the_same_bytes_PRV_02() -> None:
    reports = reports_of([3, 5, 8])
    assert pack(reports, {1: 4}) == pack(list(reports), {1: 4})


def keys(*numbers: int, stream: int = 1) -> list[Key]:
    return [Key(stream, number) for number in numbers]


def delivery_of(*numbers: int, window: int = WINDOW) -> Delivery:
    delivery = Delivery(window, RESEND_S)
    delivery.add(keys(*numbers))
    return delivery


def receipt(highest: int, *gaps: tuple[int, int], stream: int = 1) -> Receipt:
    return Receipt((StreamReceipt(stream, highest, gaps),))


def test_batches_go_out_oldest_first_and_no_more_than_the_window() -> None:
    delivery = delivery_of(1, 2, 3, 4, 5)
    assert delivery.start() == keys(1, 2, 3)
    assert delivery.start() == []
    delivery.acknowledged(Key(1, 2), 0.0)
    assert delivery.start() == keys(4)
    assert delivery.due


def test_batches_of_a_lost_link_go_out_again_first_and_oldest_first() -> None:
    delivery = delivery_of(1, 2, 3, 4, 5)
    for key in delivery.start():
        delivery.failed(key)
    assert delivery.start() == keys(1, 2, 3)


def test_several_streams_keep_their_order_over_a_lost_link() -> None:
    delivery = Delivery(4, RESEND_S)
    delivery.add([key for number in range(1, 5) for key in (Key(1, number), Key(2, number + 7))])
    for key in reversed(delivery.start()):
        delivery.failed(key)
    sent = []
    while started := delivery.start():
        sent += started
        for key in started:
            delivery.acknowledged(key, 0.0)
    assert sent[:4] == [Key(1, 1), Key(2, 8), Key(1, 2), Key(2, 9)]
    assert [key.number for key in sent if key.stream == 1] == [1, 2, 3, 4]
    assert [key.number for key in sent if key.stream == 2] == [8, 9, 10, 11]


def test_an_acknowledged_batch_is_kept_and_sent_again_without_a_receipt_in_time() -> None:
    delivery = delivery_of(1, 2)
    delivery.start()
    delivery.acknowledged(Key(1, 1), 10.0)
    delivery.acknowledged(Key(1, 2), 11.0)
    assert not delivery.due
    delivery.overdue(109.9)
    assert not delivery.due
    delivery.overdue(110.0)
    assert delivery.start() == keys(1)
    delivery.overdue(111.0)
    assert delivery.start() == keys(2)


def test_overdue_batches_go_before_new_ones_oldest_first() -> None:
    delivery = delivery_of(1, 2, 3)
    delivery.start()
    for number in (3, 1, 2):
        delivery.acknowledged(Key(1, number), 0.0)
    delivery.add(keys(4))
    delivery.overdue(RESEND_S)
    assert delivery.start() == keys(1, 2, 3)


@pytest.mark.parametrize(
    ("given_receipt", "covered"),
    [
        (receipt(0), []),
        (receipt(2), [1, 2]),
        (receipt(4, (2, 3)), [1, 4]),
        (receipt(99), [1, 2, 3, 4]),
        (receipt(99, (1, 99)), []),
        (receipt(99, stream=2), []),
        (Receipt(()), []),
    ],
)
def test_a_receipt_settles_exactly_what_it_covers_wherever_it_is(
    given_receipt: Receipt, covered: list[int]
) -> None:
    delivery = delivery_of(1, 2, 3, 4, window=2)
    delivery.start()
    delivery.acknowledged(Key(1, 1), 0.0)  # 1 waits for its receipt, 2 is in flight, 3 and 4 due
    assert sorted(delivery.received(given_receipt)) == keys(*covered)
    assert delivery.received(given_receipt) == []
    delivery.failed(Key(1, 2))
    delivery.overdue(1e9)
    left = set()
    while started := delivery.start():
        left.update(started)
        for key in started:
            delivery.acknowledged(key, 0.0)
    assert left == set(keys(1, 2, 3, 4)) - set(keys(*covered))


def test_late_acknowledgements_and_failures_of_settled_batches_change_nothing() -> None:
    delivery = delivery_of(1, 2)
    delivery.start()
    delivery.received(receipt(2))
    delivery.acknowledged(Key(1, 1), 0.0)
    delivery.failed(Key(1, 2))
    delivery.failed(Key(1, 9))
    delivery.overdue(1e9)
    assert not delivery.due


class DeliveryMachine(RuleBasedStateMachine):
    """Any order of everything against the plainest model: a set of batches in three places."""

    def __init__(self) -> None:
        super().__init__()
        self.delivery = Delivery(WINDOW, RESEND_S)
        self.due: set[Key] = set()
        self.flying: set[Key] = set()
        self.sent: dict[Key, float] = {}
        self.now_s = 0.0
        self.made = {1: 0, 2: 0}

    @rule(stream=st.sampled_from([1, 2]), count=st.integers(1, 4))
    def pack(self, stream: int, count: int) -> None:
        numbers = range(self.made[stream] + 1, self.made[stream] + 1 + count)
        self.made[stream] += count
        fresh = keys(*numbers, stream=stream)
        self.delivery.add(fresh)
        self.due.update(fresh)

    @rule()
    def start(self) -> None:
        started = self.delivery.start()
        assert len(set(started)) == len(started) == min(len(self.due), WINDOW - len(self.flying))
        assert set(started) <= self.due
        self.due -= set(started)
        self.flying |= set(started)

    @precondition(lambda self: self.flying)
    @rule(which=st.integers(0, 99))
    def acknowledge(self, which: int) -> None:
        key = sorted(self.flying)[which % len(self.flying)]
        self.delivery.acknowledged(key, self.now_s)
        self.flying.discard(key)
        self.sent[key] = self.now_s

    @precondition(lambda self: self.flying)
    @rule(which=st.integers(0, 99))
    def fail(self, which: int) -> None:
        key = sorted(self.flying)[which % len(self.flying)]
        self.delivery.failed(key)
        self.flying.discard(key)
        self.due.add(key)

    @rule(key=st.builds(Key, st.sampled_from([1, 2]), st.integers(1, 20)), good=st.booleans())
    def stray(self, key: Key, *, good: bool) -> None:
        if key not in self.flying:
            if good:
                self.delivery.acknowledged(key, self.now_s)
            else:
                self.delivery.failed(key)

    @rule(
        stream=st.sampled_from([1, 2]),
        highest=st.integers(0, 25),
        gap=st.tuples(st.integers(1, 25), st.integers(0, 5)),
    )
    def receive(self, stream: int, highest: int, gap: tuple[int, int]) -> None:
        told = receipt(highest, (gap[0], gap[0] + gap[1]), stream=stream)
        kept = self.due | self.flying | set(self.sent)
        covered = {key for key in kept if told.covers(*key)}
        assert sorted(self.delivery.received(told)) == sorted(covered)
        self._forget(covered)

    @rule(number=st.integers(1, 25))
    def expire(self, number: int) -> None:
        gone = {key for key in self.due | self.flying | set(self.sent) if key.number <= number // 5}
        self.delivery.forget(gone)
        self._forget(gone)

    @rule(seconds=st.sampled_from([0.0, 1.0, 50.0, 100.0]))
    def wait(self, seconds: float) -> None:
        self.now_s += seconds
        self.delivery.overdue(self.now_s)
        late = {key for key, at_s in self.sent.items() if self.now_s - at_s >= RESEND_S}
        for key in late:
            del self.sent[key]
        self.due |= late

    @invariant()
    def nothing_is_lost_and_nothing_is_in_two_places(self) -> None:
        """Empty a copy with a window for all: first what is due, then what was acknowledged."""
        copy = deepcopy(self.delivery)
        copy.window = 10**6
        assert sorted(copy.start()) == sorted(self.due)
        copy.overdue(self.now_s + RESEND_S)
        assert sorted(copy.start()) == sorted(self.sent)
        for stream, made in self.made.items():
            for key in keys(*range(1, made + 1), stream=stream):
                copy.failed(key)
        assert sorted(copy.start()) == sorted(self.due | self.flying | set(self.sent))
        assert self.delivery.due == bool(self.due)
        assert len(self.flying) <= WINDOW

    def teardown(self) -> None:
        """Drain it: everything not settled is sent in the end."""
        for key in sorted(self.flying):
            self.delivery.failed(key)
        self.delivery.overdue(self.now_s + RESEND_S)
        drained = set()
        while started := self.delivery.start():
            drained |= set(started)
            for key in started:
                self.delivery.acknowledged(key, self.now_s)
        assert drained == self.due | self.flying | set(self.sent)

    def _forget(self, gone: set[Key]) -> None:
        self.due -= gone
        self.flying -= gone
        for key in gone:
            self.sent.pop(key, None)


TestDelivery = DeliveryMachine.TestCase
TestDelivery.settings = settings(
    max_examples=settings().max_examples * 3 // 5, stateful_step_count=40
)
