"""The device's state, step by step on a clock that stands still and a real journal."""

import logging
import os
import re
import sqlite3
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from shutil import copytree, rmtree
from typing import Any

import pytest

from agent.claims.batches import Key
from agent.claims.silence import silence
from agent.claims.slots import SlotValues
from agent.errors import StorageError
from agent.state.journal import Journal
from agent.state.local_mode import local_device
from agent.state.manifest import manifest
from edge_ldp.device.frame import decode
from edge_ldp.entropy import StuckEntropyError
from edge_ldp.mechanisms import Hybrid, StochasticRounding
from edge_ldp.protocol.ledger import Window
from edge_ldp.protocol.messages import Receipt, Status, StreamReceipt
from edge_ldp.protocol.plan import digest, last_epoch, plan_tag
from edge_ldp.protocol.signing import Keyring
from edge_ldp.protocol.utc import utc
from edge_ldp.ratio import floor_ratio
from tests.agent.samples import (
    DEVICE,
    FLEET,
    SLOT,
    SLOT_S,
    T0,
    StillClock,
    bomb,
    make_config,
    make_plan,
)
from tests.reached import words_in

Source = Callable[[int], bytes]
DAY_S = 86_400
TEN_YEARS_S = 3652 * DAY_S


class Bench:
    """A device that can be stopped, started again, and asked what is on its disk."""

    entropy: Source | None = None
    keyring: Keyring | None = None

    def __init__(
        self,
        state: Path,
        *,
        clock: StillClock | None = None,
        entropy: Source | None = None,
        keyring: Keyring | None = None,
        **changes: Any,
    ) -> None:
        self.state = state
        self.keyring = keyring
        self.entropy = entropy
        self.clock = clock or StillClock()
        self.config = make_config(state, **changes)
        self.start()

    def start(self, *, trusted: bool = True) -> None:
        self.journal = Journal(self.state)
        self.device = local_device(
            self.config, self.journal, self.clock, self.entropy, self.keyring
        )
        if trusted:
            self.device.trust_clock()

    def restart(self, *, trusted: bool = True, **changes: Any) -> None:
        self.journal.close()
        if changes:
            self.config = make_config(self.state, **changes)
        self.start(trusted=trusted)

    def pass_slots(self, slots: int = 1) -> None:
        self.clock.pass_s(slots * SLOT_S)

    def close(
        self, value: int | None = 500, *, online: bool = True, slot: int | None = None
    ) -> None:
        """Close the slot before the clock's (or `slot`)."""
        closed = self.device.slot - 1 if slot is None else slot
        values = (value,) * len(self.config.streams)
        self.device.close_slot(SlotValues(closed, values), online=online)

    def live(self, slots: int, *, online: bool = True, value: int = 500) -> None:
        """Let so many slots pass and close each."""
        for _ in range(slots):
            self.pass_slots()
            self.close(value, online=online)

    @property
    def made(self) -> list[tuple[int, int]]:
        """Every report on the disk, (slot, epoch), packed ones first."""
        packed = [decode(payload) for key in self.keys if (payload := self.payload(key))]
        return [(slot, frame.epoch) for frame in packed for slot in frame.slots] + [
            (report.slot, report.epoch) for report in self.journal.waiting()
        ]

    @property
    def keys(self) -> list[Key]:
        return self.journal.keys()

    def payload(self, key: Key) -> bytes | None:
        return self.device.payload(key)

    def taken(self) -> list[Key]:
        """Take every batch that may be sent now."""
        return [first for first, _, _ in self.device.take_messages(0)]

    def send(self) -> list[Key]:
        """Send all that may go, and return it: the broker takes it."""
        sent = []
        while went := self.taken():
            for key in went:
                self.device.delivery.acknowledged(key, self.clock.monotonic())
            sent += went
        return sent

    def hear(self, highest: int, *gaps: tuple[int, int], live: bool = True) -> int:
        """Take an aggregator's receipt of the present series, and return how many it settled."""
        (account,) = self.status.streams
        heard = receipt(highest, *gaps, series=account.series)
        return self.device.accept_receipt(heard, is_live=live)

    @property
    def status(self) -> Status:
        return self.device.status("online")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path / "s.db")
    made.pass_slots(2)  # a new device's window is spent at first
    yield made
    made.journal.close()


@pytest.fixture
def running(bench: Bench) -> Bench:
    assert bench.device.accept_plan("power", make_plan().to_json()) is None
    return bench


def receipt(highest: int, *gaps: tuple[int, int], series: int = 0, last: int = -1) -> Receipt:
    return Receipt((StreamReceipt(1, highest, gaps, series, last),), "0" * 16, T0, DEVICE)


# plans


def test_without_a_plan_nothing_is_claimed_and_nothing_spent(bench: Bench) -> None:
    bench.live(3)
    assert bench.made == []
    assert bench.status.ledger["reports"] == 0


def test_a_plan_puts_the_stream_to_work_and_shows_in_the_status(running: Bench) -> None:
    running.live(1)
    assert running.made == [(SLOT + 2, 1)]
    (stream,) = running.status.streams
    assert (stream.stream, stream.epoch, stream.created) == (1, 1, 1)
    assert stream.plan == digest(make_plan().to_json())
    assert (stream.first, stream.next, stream.oldest, stream.since) == (1, 2, 1, SLOT + 2)
    assert stream.series > 0


def test_the_same_plan_again_is_no_news_and_no_refusal(
    running: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        assert running.device.accept_plan("power", make_plan().to_json()) == "same"
    running.restart()
    assert running.device.accept_plan("power", make_plan().to_json()) == "same"
    assert running.status.refusals == ()
    assert caplog.records == []


GOOD = make_plan().to_json()
RATIO = floor_ratio(1)
LIMIT = b",%d,%d]" % (RATIO.num, RATIO.den)
ONE_UNIT_MORE = b",%d,%d]" % (RATIO.num + 1, RATIO.den)
HOSTILE: list[tuple[bytes, str]] = [
    # NET-14: garbage on the retained topic
    (b"", "json"),
    (b"{", "json"),
    (b"\xff\xfe\x00", "json"),
    (bytes(range(256)) * 10, "json"),
    (b"null", "shape"),
    (b"[]", "shape"),
    (b"{}", "missing"),
    (b'{"v":1}', "missing"),
    (b'{"v":1,"v":1}', "duplicate"),
    (b"[" * 10_000, "depth"),
    (b" " * (1 << 18) + b"{}", "size"),
    (b"x" * 10_000_000, "size"),
    (GOOD.replace(b'"v":1', b'"v":0'), "value"),
    (GOOD.replace(b'"v":1', b'"v":2'), "value"),
    (GOOD.replace(b'"epoch":1', b'"epoch":1.0'), "number"),
    (GOOD.replace(b'"epoch":1', b'"epoch":true'), "value"),
    (GOOD.replace(b'"share":[1,2]', b'"share":[1,0]'), "channel"),
    (GOOD.replace(b'"share":[1,2]', b'"share":[3,2]'), "channel"),
    # PLN-03: the ratio, by one unit in the last place and by far; PLN-04, 08, 10, 11
    (make_plan(2, epsilon=2).to_json(), "ratio"),
    (make_plan(2, epsilon=20).to_json(), "ratio"),
    *(
        (
            make_plan(2).to_json()[:at] + ONE_UNIT_MORE + make_plan(2).to_json()[at + len(LIMIT) :],
            "ratio",
        )
        for at in (GOOD.index(LIMIT), GOOD.rindex(LIMIT))
    ),
    (make_plan(2, theta=4001).to_json(), "theta"),
    (make_plan(2, ceiling=4001).to_json(), "range"),
    (make_plan(2, fleet="other").to_json(), "audience"),
    (make_plan(2, slot_seconds=60).to_json(), "slot"),
    (make_plan(2, expires_s=T0 - 1).to_json(), "expired"),
    # PLN-06: epochs only rise
    (make_plan(1, theta=999).to_json(), "epoch"),
    (make_plan(last_epoch(T0) + 25).to_json(), "epoch"),
    (make_plan(1_000_000_000).to_json(), "epoch"),
]


@pytest.mark.parametrize(("payload", "reason"), HOSTILE)
def test_a_hostile_plan_is_refused_and_the_last_good_one_stays_NET_14_PLN_03_PLN_06(
    running: Bench, payload: bytes, reason: str
) -> None:
    assert payload != GOOD
    refusal = running.device.accept_plan("power", payload)
    assert refusal is not None
    assert refusal.split()[0] == reason
    assert running.status.refusals == (refusal,)
    running.live(1)
    assert running.made == [(SLOT + 2, 1)]
    running.restart()
    assert running.device.accept_plan("power", GOOD) == "same"


def test_the_hostile_plans_differ_from_a_good_one_only_in_what_they_say(bench: Bench) -> None:
    """The control: with its fields as they should be, the same plan runs."""
    assert bench.device.accept_plan("power", make_plan(last_epoch(T0) - 1).to_json()) is None
    assert (
        bench.device.accept_plan("power", make_plan(last_epoch(T0), theta=4000).to_json()) is None
    )


def test_a_refusal_is_said_once_and_remembered_and_the_memory_is_bounded(
    running: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        for _ in range(50):
            running.device.accept_plan("power", b"{")
            running.device.accept_plan("power", make_plan(2, theta=4001).to_json())
    assert len(caplog.records) == 2
    assert running.status.refusals == ("json message", "theta")
    assert running.status.refused[1].startswith("theta: ")
    assert "4001" in running.status.refused[1]
    for payload, _ in HOSTILE:
        running.device.accept_plan("power", payload)
    assert len(running.status.refusals) == 8


def test_two_stored_plans_of_one_stream_id_are_not_both_taken_up(tmp_path: Path) -> None:
    """While the policy refuses a stored plan its id may be given away; then it is allowed again."""
    both: Any = {"quantities": ("power", "energy_import"), "window": (2, 1)}
    bench = Bench(tmp_path / "s.db", **both)
    assert bench.device.accept_plan("power", make_plan().to_json()) is None
    bench.restart(**both, policy='mechanisms = ["stochastic-rounding", "square-wave"]')
    rounding = StochasticRounding(epsilon=1, low=0, high=1000)
    twin = replace(make_plan(stream="energy_import"), stream_mechanism=rounding)
    assert bench.device.accept_plan("energy_import", twin.to_json()) is None
    bench.restart(**both)
    assert bench.status.refusals == ("stream_id",)
    bench.pass_slots()
    bench.live(3)
    assert {epoch for _, epoch in bench.made} == {1}
    assert [stream.stream for stream in bench.status.streams] == [1]
    bench.journal.close()


def test_epochs_of_another_fleet_count_for_nothing_PLN_06_PLN_08(tmp_path: Path) -> None:
    """A device that moved: plans of its old fleet are refused, and epochs begin anew.

    In the old fleet the second stream had the id that the first has in the new one: that it is
    taken must not hide whose the plan is.
    """
    both: Any = {"quantities": ("power", "energy_import"), "window": (2, 1)}

    def plan(epoch: int, stream: str, stream_id: int, fleet: str) -> bytes:
        return make_plan(epoch, stream=stream, stream_id=stream_id, fleet=fleet).to_json()

    bench = Bench(tmp_path / "s.db", **both)
    assert bench.device.accept_plan("power", plan(8, "power", 2, FLEET)) is None
    assert bench.device.accept_plan("energy_import", plan(7, "energy_import", 1, FLEET)) is None
    bench.config = replace(bench.config, device=replace(bench.config.device, fleet="lane"))
    bench.restart()
    assert bench.status.refusals == ("audience",)
    assert bench.device.accept_plan("power", plan(3, "power", 1, "lane")) is None
    bench.restart()
    assert bench.device.accept_plan("energy_import", plan(2, "energy_import", 2, "lane")) is None
    assert bench.device.accept_plan("power", plan(2, "power", 1, "lane")) == "epoch"
    bench.journal.close()


def test_plans_of_streams_not_configured_and_plans_on_anothers_topic_are_refused(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path / "s.db", quantities=("power", "energy_import"), window=(2, 1))
    power = make_plan().to_json()
    assert bench.device.accept_plan("power_export", power) == "audience"
    assert bench.device.accept_plan("energy_import", power) == "audience"
    assert bench.device.accept_plan("power", power) is None
    twin = make_plan(stream="energy_import").to_json()
    assert bench.device.accept_plan("energy_import", twin) == "stream_id"
    other = make_plan(stream="energy_import", stream_id=2).to_json()
    assert bench.device.accept_plan("energy_import", other) is None
    bench.pass_slots()
    bench.live(1)
    assert [stream.stream for stream in bench.status.streams] == [1, 2]
    bench.journal.close()


def test_the_plan_in_force_and_its_epoch_survive_a_restart_PLN_06(running: Bench) -> None:
    assert running.device.accept_plan("power", make_plan(7).to_json()) is None
    running.restart()
    for epoch in (1, 6, 7):
        old = make_plan(epoch, theta=900).to_json()
        assert running.device.accept_plan("power", old) == "epoch"
    running.live(1)
    assert running.made == [(SLOT + 2, 7)]
    assert running.device.accept_plan("power", make_plan(8).to_json()) is None


def test_an_epoch_counts_although_the_owner_no_longer_allows_its_plan_PLN_06(
    running: Bench,
) -> None:
    assert running.device.accept_plan("power", make_plan(7).to_json()) is None
    running.restart(policy="epsilon = 0.5")
    assert running.status.refusals == ("ratio",)
    old = make_plan(6, epsilon="0.5").to_json()
    assert running.device.accept_plan("power", old) == "epoch"
    running.live(1)
    assert running.made == []
    assert running.device.accept_plan("power", make_plan(8, epsilon="0.5").to_json()) is None
    running.live(1)
    assert running.made == [(SLOT + 3, 8)]


def test_a_plan_in_force_that_its_owner_allows_no_more_is_no_good_health(
    running: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    """The broker still retains it: its epoch is not why nothing is reported."""
    with caplog.at_level(logging.WARNING):
        running.restart(policy="epsilon = 0.5")
        assert running.device.accept_plan("power", GOOD) == "ratio"
    assert running.device.health == "degraded: no plan that this home allows (power)"
    (told,) = caplog.messages
    assert "none is in force, so nothing is reported" in told
    assert running.device.accept_plan("power", make_plan(2, epsilon="0.5").to_json()) is None
    assert running.device.health == "ok"
    assert running.device.accept_plan("power", b"{") == "json message"
    assert running.device.health == "ok", "the good one stays in force"
    assert caplog.messages[-1].endswith("the last good plan stays in force")


def test_no_first_plan_uses_up_the_epochs_PLN_15(bench: Bench) -> None:
    """The epoch is the first time any that hours since 1970 have: the next hour has room again."""
    for epoch in ((1 << 32) - 1, 4_000_000_000, last_epoch(T0) + 25):
        assert bench.device.accept_plan("power", make_plan(epoch).to_json()) == "epoch"
    assert bench.device.accept_plan("power", make_plan(last_epoch(T0)).to_json()) is None
    for _ in range(3):
        bench.clock.pass_s(3600)
        following = make_plan(last_epoch(bench.clock.now()))
        assert bench.device.accept_plan("power", following.to_json()) is None


@pytest.mark.parametrize(
    ("rows", "codes"), [(160, 100), (300, 220), (180, 30)], ids=["45 kB", "240 kB", "16 kB"]
)
def test_a_bomb_is_refused_before_any_arithmetic_and_in_a_mebibyte_PLN_16(
    bench: Bench, rows: int, codes: int
) -> None:
    """Counted in calls, of Python and C, as no machine's speed is in them; the time is logged."""
    payload = bomb(2, rows, codes)
    begun = time.thread_time()
    bench.device.accept_plan("power", payload)
    spent_ms = 1000 * (time.thread_time() - begun)
    logging.getLogger("figures").info("%d bytes refused in %.1f ms", len(payload), spent_ms)
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    refusal = bench.device.accept_plan("power", payload)
    sys.setprofile(None)
    assert "size" in str(refusal)
    assert 0 < calls < 40_000
    tracemalloc.start()
    bench.device.accept_plan("power", payload[:-1])
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert held < 1 << 20


def test_a_new_plan_holds_for_later_slots_and_reports_keep_their_epoch_AGT_13(
    running: Bench,
) -> None:
    running.live(2, online=False)
    assert running.device.accept_plan("power", make_plan(2, theta=2000).to_json()) is None
    running.live(2, online=False)
    running.restart()
    running.live(1)
    frames = [decode(running.payload(key) or b"") for key in running.keys]
    first = SLOT + 2
    assert [(frame.epoch, frame.slots) for frame in frames] == [
        (1, (first, first + 1)),
        (2, (first + 2, first + 3, first + 4)),
    ]
    assert [frame.batch for frame in frames] == [1, 2]
    tags = [plan_tag(make_plan(epoch, theta=1000 * epoch).to_json()) for epoch in (1, 2)]
    assert [frame.tag for frame in frames] == tags


# claims


def test_a_slot_is_randomised_once_whatever_is_closed_again_PRV_01(running: Bench) -> None:
    running.live(1)
    (key,) = running.keys
    payload = running.payload(key)
    for _ in range(20):
        running.close(4000)
    running.restart()
    for _ in range(20):
        running.close(4000)
    assert running.keys == [key]
    assert running.payload(key) == payload
    assert running.status.ledger["reports"] == 1


def test_a_slot_in_the_future_or_not_over_yet_is_not_claimed_SER_17(running: Bench) -> None:
    running.pass_slots()
    for slot in (running.device.slot, running.device.slot + 1, running.device.slot + 10**6):
        running.close(slot=slot)
    assert running.made == []
    running.close(slot=running.device.slot - 1)
    assert running.made == [(SLOT + 2, 1)]


def test_a_clock_ten_years_ahead_cannot_spend_faster_than_time_AGT_10(running: Bench) -> None:
    running.live(3)
    running.clock.step(TEN_YEARS_S)
    for _ in range(2000):
        running.clock.step(SLOT_S)
        running.close()
    assert running.status.ledger["reports"] == 3
    running.live(5)
    assert running.status.ledger["reports"] == 3 + 5


def test_slots_that_did_not_report_leave_no_credit_for_a_fast_clock_AGT_10(tmp_path: Path) -> None:
    """With 8 reports in 97 slots, 1,167 quiet slots must not allow 890 quick ones."""
    bench = Bench(tmp_path / "s.db", window=(8, 97))
    bench.device.accept_plan("power", make_plan().to_json())
    bench.live(97 + 10 * 107)
    before = int(bench.status.ledger["reports"])
    assert before == 10 * 8
    for _ in range(2000):
        bench.clock.step(SLOT_S)
        bench.close()
    assert bench.status.ledger["reports"] <= before + 2
    bench.journal.close()


@pytest.mark.parametrize("back_s", [3600, DAY_S, T0])
def test_a_clock_that_goes_back_reports_no_slot_twice_AGT_10(running: Bench, back_s: int) -> None:
    running.live(8)
    before = running.made
    running.clock.step(-back_s)
    running.live(min(back_s // SLOT_S, 100) // 2)
    running.restart()
    running.live(min(back_s // SLOT_S, 100) // 2)
    slots = [slot for slot, _ in running.made]
    assert len(slots) == len(set(slots))
    assert {slot for slot, _ in before} <= set(slots)
    if back_s < 8 * SLOT_S:  # all of them had reported
        assert sorted(running.made) == before


def test_a_clock_that_jumps_ahead_expires_nothing_AGT_10(running: Bench) -> None:
    running.live(2)
    running.live(2, online=False)
    running.clock.step(TEN_YEARS_S)
    running.device.housekeeping()
    assert len(running.made) == 4
    assert [stream.expired for stream in running.status.streams] == [0]


def test_a_device_without_state_waits_a_window_and_skips_the_current_slot_PRV_12(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path / "s.db", window=(10, 10))
    bench.device.accept_plan("power", make_plan().to_json())
    bench.live(30)
    assert [slot for slot, _ in bench.made] == list(range(SLOT + 10, SLOT + 30))
    bench.journal.close()


@pytest.mark.parametrize("wrong_s", [0, T0 + TEN_YEARS_S])
def test_the_window_is_spent_from_when_the_clock_is_sane_not_from_a_wrong_time_PRV_12_AGT_10(
    tmp_path: Path, wrong_s: int
) -> None:
    """A board without a clock of its own starts in 1970 with an empty disk: no gift, no curse."""
    bench = Bench.__new__(Bench)
    bench.state, bench.clock = tmp_path / "s.db", StillClock(wrong_s)
    bench.config = make_config(bench.state, window=(10, 10))
    bench.start(trusted=False)
    assert (
        bench.device.accept_plan("power", make_plan(expires_s=T0 + 2 * TEN_YEARS_S).to_json())
        == "held"
    )
    bench.live(3)
    assert bench.made == []
    bench.clock.step(T0 - bench.clock.now())
    bench.device.trust_clock()
    bench.live(30)
    assert [slot for slot, _ in bench.made] == list(range(SLOT + 10, SLOT + 30))
    bench.journal.close()


def test_until_the_clock_is_sane_nothing_is_claimed_or_expired_AGT_10(running: Bench) -> None:
    running.live(3)
    before = running.made
    running.restart(trusted=False)
    running.clock.step(TEN_YEARS_S)
    running.live(3)
    running.device.housekeeping()
    assert running.made == before
    assert running.status.ledger["reports"] == 3


def test_any_window_holds_at_most_k_reports_over_restarts(tmp_path: Path) -> None:
    """S4, AGT-17: reports of all streams, killed and started again at every other slot."""
    bench = Bench(tmp_path / "s.db", quantities=("power", "energy_import"), window=(5, 11))
    bench.device.accept_plan("power", make_plan().to_json())
    bench.device.accept_plan(
        "energy_import", make_plan(stream="energy_import", stream_id=2).to_json()
    )
    for slot in range(120):
        bench.live(1, online=slot % 3 > 0)
        if slot % 2:
            bench.restart()
    made = sorted(slot for slot, _ in bench.made)
    for start in range(SLOT, SLOT + 121):
        assert sum(start <= slot < start + 11 for slot in made) <= 5
    assert sum(SLOT + 12 <= slot < SLOT + 12 + 99 for slot in made) == 45
    assert bench.status.ledger["reports"] == len(made)
    bench.journal.close()


def test_a_changed_window_takes_effect_after_as_many_silent_slots(running: Bench) -> None:
    running.live(3)
    running.restart(window=(4, 8))
    running.live(40)
    slots = [slot for slot, _ in running.made]
    assert slots[:3] == [SLOT + 2, SLOT + 3, SLOT + 4]
    assert slots[3] >= SLOT + 4 + 8
    assert running.journal.ledger() is not None
    assert running.status.ledger["window_slots"] == 8


def test_a_commit_that_fails_changes_nothing_in_memory(running: Bench) -> None:
    """AGT-02, AGT-09: what is not durable has not happened; nothing of it may be sent."""
    running.live(2)
    running.pass_slots()
    with running.journal.reading() as db:
        db.set_authorizer(lambda *_: sqlite3.SQLITE_DENY)  # every statement fails
    with pytest.raises(StorageError):
        running.close()
    with running.journal.reading() as db:
        db.set_authorizer(None)
    assert running.status.ledger["reports"] == 2
    assert len(running.taken()) == 2
    assert running.taken() == []


# elapsed time: what a household's reports may not be hurried by


def stepped(bench: Bench, real_s: int, *, each_s: int = 30) -> None:
    """Set the clock from slot to slot for so much real time, with restarts and reboots between.

    The worst that whoever serves the time can do: every slot of the window passes in a minute.
    """
    for at in range(real_s // each_s):
        bench.clock.pass_s(each_s)
        bench.clock.step(SLOT_S - each_s)
        bench.close()
        if at % 7 == 0:
            bench.restart()
        if at % 501 == 500:
            bench.clock.reboot(3 * SLOT_S)
            bench.restart()


def test_a_clock_stepped_from_slot_to_slot_gains_no_report_AGT_22(tmp_path: Path) -> None:
    """The default window: 8 reports in 97 quarter hours; it gave 95 in 24 real hours."""
    bench = Bench(tmp_path / "s.db", window=(8, 97))
    bench.device.accept_plan("power", make_plan().to_json())
    bench.live(97)
    before = int(bench.status.ledger["reports"])
    stepped(bench, DAY_S)
    gained = int(bench.status.ledger["reports"]) - before
    assert 0 < gained <= 8
    slots = [slot for slot, _ in bench.made]
    assert len(slots) == len(set(slots))
    bench.journal.close()


def test_a_new_devices_silence_is_not_stepped_over_AGT_22(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "s.db", window=(8, 97))
    bench.device.accept_plan("power", make_plan().to_json())
    stepped(bench, DAY_S - 3600)
    assert bench.made == []
    bench.journal.close()


def test_a_reboot_costs_the_time_that_it_took_and_no_window_AGT_22(tmp_path: Path) -> None:
    """Off for a minute every ten hours: about as many reports less as time is not known.

    56.5 of 66 on average, with a deviation of 1.9 (80 runs): below 0.65 is 7 deviations. A window
    for each reboot would leave none.
    """
    bench = Bench(tmp_path / "s.db", window=(8, 97))
    bench.device.accept_plan("power", make_plan().to_json())
    bench.live(97)
    for _ in range(20):
        for _ in range(40):
            bench.live(1)
            bench.device.housekeeping()
        bench.clock.reboot(60)
        bench.restart()
    honest = 20 * 40 * 8 / 97
    assert honest * 0.65 < len(bench.made) <= honest + 8
    bench.journal.close()


def test_a_clock_once_ahead_by_years_mutes_for_one_window_and_says_so_AGT_23(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench(tmp_path / "s.db", window=(10, 10))
    bench.device.accept_plan("power", make_plan(expires_s=T0 + 2 * TEN_YEARS_S).to_json())
    bench.live(20)
    before = len(bench.made)
    bench.clock.step(TEN_YEARS_S)
    bench.live(1)  # one reporting slot
    assert len(bench.made) == before + 1
    bench.clock.step(-TEN_YEARS_S)
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        bench.live(1)
    (told,) = [record.message for record in caplog.records]
    assert re.match(r"silent until \S+ \S+ UTC: the clock had been ahead, so the window", told)
    assert bench.device.health == "degraded: the clock had been ahead"
    bench.restart()
    assert bench.device.health == "degraded: the clock had been ahead"
    bench.live(12)
    assert len(bench.made) == before + 1 + 2
    assert bench.device.health == "ok"
    slots = [slot for slot, _ in bench.made]
    assert len(slots) == len(set(slots))
    bench.journal.close()


def test_another_slot_length_mutes_for_one_window_and_says_so_AGT_24(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "s.db", window=(8, 97), slot_seconds=60)
    bench.device.accept_plan("power", make_plan(slot_seconds=60).to_json())
    for _ in range(200):
        bench.clock.pass_s(60)
        bench.close()
    before = len(bench.made)
    assert before > 0
    bench.restart(window=(8, 97))
    assert bench.device.health == "degraded: the slot length changed"
    bench.device.accept_plan("power", make_plan(2).to_json())
    bench.live(97)
    assert len(bench.made) == before
    bench.live(107)
    assert len(bench.made) == before + 8
    assert bench.device.health == "ok"
    bench.journal.close()


def test_at_the_end_of_its_lifetime_a_device_is_silent_said_before_and_after_AGT_27(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    life: Any = {"tables": "[policy.lifetime]\nreports = 3000"}
    bench = Bench(tmp_path / "s.db", **life)
    bench.pass_slots(2)
    bench.device.accept_plan("power", make_plan().to_json())
    caplog.clear()
    bench.live(24)  # 2976 are left: 31 days
    assert caplog.records == []
    bench.live(10)
    assert ["ends in 30 days or less" in record.message for record in caplog.records] == [True]
    life = {"tables": "[policy.lifetime]\nreports = 40"}
    bench.restart(**life)
    bench.live(10)
    assert bench.status.ledger["reports"] == 40
    assert bench.device.health == "degraded: lifetime reached"
    assert "nothing is reported any more" in caplog.records[-1].message
    bench.restart(**life)
    bench.live(10)
    assert bench.status.ledger["reports"] == 40
    bench.journal.close()


# copies of the state


def saved(bench: Bench, place: Path) -> Path:
    """Copy the stopped device's whole directory, lock and all."""
    bench.journal.close()
    copytree(bench.state.parent, place)
    bench.start()
    return place


def restored(bench: Bench, place: Path) -> None:
    bench.journal.close()
    rmtree(bench.state.parent)
    copytree(place, bench.state.parent)
    bench.start()


def test_of_reports_that_nobody_heard_of_nothing_tells_AGT_25(tmp_path: Path) -> None:
    """A limit, as docs/privacy.md says: the copy reports slots of the other life again."""
    bench = Bench(tmp_path / "state" / "s.db")
    bench.device.accept_plan("power", make_plan().to_json())
    bench.live(3)
    place = saved(bench, tmp_path / "copy")
    clock = bench.clock.now()
    bench.live(5)
    unheard = set(bench.made)
    restored(bench, place)
    bench.clock.step(clock - bench.clock.now())
    bench.live(5)
    assert set(bench.made) == unheard
    assert bench.device.health == "ok"
    bench.journal.close()


def test_a_restart_takes_a_looser_file_that_a_reload_refuses(running: Bench) -> None:
    sharper = make_plan(2, epsilon="2").to_json()
    assert running.device.accept_plan("power", sharper) == "ratio"
    running.restart(policy="epsilon = 2")
    assert running.device.accept_plan("power", sharper) is None


def test_a_receipt_for_what_was_made_is_no_rollback_AGT_25(running: Bench) -> None:
    running.live(5)
    running.restart()
    (account,) = running.status.streams
    assert running.hear(account.next - 1) == 5
    assert running.device.health == "ok"


def test_a_lost_state_is_no_rollback_but_its_own_window_AGT_25_PRV_12(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "s.db")
    bench.device.accept_plan("power", make_plan().to_json())
    bench.pass_slots(2)
    bench.live(5)
    (account,) = bench.status.streams
    bench.journal.close()
    for path in tmp_path.iterdir():
        path.unlink()
    bench.start()
    assert bench.device.accept_receipt(receipt(account.next - 1)) == 0
    assert bench.device.health == "ok"
    assert bench.status.streams == ()
    bench.journal.close()


# randomness


class Tap:
    """The operating system's randomness, until it is told to fail in some way."""

    def __init__(self) -> None:
        self.fault: Source | None = None
        self.asked = 0

    def __call__(self, size: int) -> bytes:
        self.asked += 1
        return os.urandom(size) if self.fault is None else self.fault(size)


def no_entropy(_size: int) -> bytes:
    raise OSError("no entropy")


def constant(size: int) -> bytes:
    return b"\x2a" * size


@pytest.fixture
def tap() -> Tap:
    return Tap()


@pytest.fixture
def tapped(tmp_path: Path, tap: Tap) -> Iterator[Bench]:
    """Give a device that is at work, on a source of randomness that can be made to fail."""
    made = Bench(tmp_path / "s.db", entropy=tap)
    made.pass_slots(2)
    assert made.device.accept_plan("power", make_plan().to_json()) is None
    made.live(2)
    yield made
    made.journal.close()


def no_room(_size: int) -> bytes:
    raise MemoryError


def no_such_call(_size: int) -> bytes:
    raise AttributeError("getrandom")


@pytest.mark.parametrize(
    "fault",
    [no_entropy, no_room, no_such_call, lambda size: bytes(size - 1), lambda _size: b""],
)
def test_without_randomness_slots_are_given_up_and_the_device_goes_on_AGT_11(
    tapped: Bench, tap: Tap, fault: Source, caplog: pytest.LogCaptureFixture
) -> None:
    before = tapped.made
    with caplog.at_level(logging.INFO):
        tap.fault = fault
        tapped.live(3)
        assert tapped.made == before
        assert tapped.status.ledger["reports"] == len(before)
        tap.fault = None
        tapped.live(2)
    assert tapped.made == [*before, (SLOT + 7, 1), (SLOT + 8, 1)]
    warned, relieved = [record.getMessage() for record in caplog.records]
    assert "given up" in warned
    assert relieved == "there is randomness again"


def test_a_slot_given_up_for_want_of_randomness_costs_nothing_and_stays_below_the_window_AGT_11(
    tmp_path: Path, tap: Tap
) -> None:
    """S4: what could not be drawn is not made up for later."""
    bench = Bench(tmp_path / "s.db", window=(3, 7), entropy=tap)
    bench.device.accept_plan("power", make_plan().to_json())
    for slot in range(140):
        tap.fault = no_entropy if slot % 5 in (1, 2) else None
        bench.live(1)
        if slot % 17 == 0:
            bench.restart()
    made = sorted(slot for slot, _ in bench.made)
    assert 0 < len(made) == bench.status.ledger["reports"]
    for start in range(SLOT, made[-1]):
        assert sum(start <= slot < start + 7 for slot in made) <= 3
    bench.journal.close()


def test_a_ledger_that_cannot_be_drawn_is_opened_as_soon_as_there_is_randomness_AGT_11(
    tmp_path: Path, tap: Tap, caplog: pytest.LogCaptureFixture
) -> None:
    tap.fault = no_entropy
    with caplog.at_level(logging.INFO):
        bench = Bench(tmp_path / "s.db", window=(10, 10), entropy=tap)
        bench.device.accept_plan("power", make_plan().to_json())
        bench.live(30)
        assert bench.journal.ledger() is None
        assert [r.levelname for r in caplog.records].count("WARNING") == 1
        tap.fault = None
        bench.live(30)
    first = SLOT + 31 + 10  # the window counts as spent from then, not from the start
    assert [slot for slot, _ in bench.made] == list(range(first, SLOT + 60))
    bench.journal.close()


def test_a_changed_window_that_cannot_be_drawn_keeps_the_device_silent_AGT_11(
    tapped: Bench, tap: Tap
) -> None:
    before = tapped.made
    stored = tapped.journal.ledger()
    tap.fault = no_entropy
    tapped.restart(window=(1, 2))
    tapped.live(5)
    assert tapped.made == before
    assert tapped.journal.ledger() == stored
    tap.fault = None
    tapped.live(1)
    assert tapped.status.ledger["window_slots"] == 2


def test_a_window_tightened_without_randomness_is_silent_no_longer_than_its_slots_AGT_11(
    tapped: Bench, tap: Tap
) -> None:
    """However long it ran before: what it closed then says nothing of how time goes on."""
    tapped.live(200)
    tap.fault = no_entropy
    tapped.device.reconfigure(make_config(tapped.state, window=(2, 4)), None)
    tap.fault = None
    before = len(tapped.made)
    tapped.live(4 + 8)
    assert len(tapped.made) - before >= 2


def test_a_source_that_repeats_itself_ends_the_device_and_nothing_is_randomised_AGT_11(
    tapped: Bench, tap: Tap
) -> None:
    before, ledger = tapped.made, tapped.journal.ledger()
    tap.fault = constant
    tapped.pass_slots()
    for _ in range(3):
        with pytest.raises(StuckEntropyError, match="repeats itself"):
            tapped.close()
    tap.fault = None  # a source that was stuck once is not trusted again
    with pytest.raises(StuckEntropyError):
        tapped.close()
    assert (tapped.made, tapped.journal.ledger()) == (before, ledger)
    tapped.restart()  # its state was saved: another run on a sound source goes on
    tapped.live(1)
    assert len(tapped.made) == len(before) + 1


def test_a_new_device_on_a_source_that_repeats_itself_does_not_begin_AGT_11(
    tmp_path: Path, tap: Tap
) -> None:
    tap.fault = constant
    config = make_config(tmp_path / "s.db")
    with closing(Journal(tmp_path / "s.db")) as journal:
        device = local_device(config, journal, StillClock(), tap)
        with pytest.raises(StuckEntropyError):
            device.trust_clock()


def test_while_the_source_blocks_nothing_is_claimed_or_stored_AGT_11(
    tapped: Bench, tap: Tap
) -> None:
    """Another process looks at the disk while the device waits for bytes."""
    before = len(tapped.made)
    go_on = threading.Event()
    seen: list[int] = []

    def blocked(size: int) -> bytes:
        assert go_on.wait(60)
        return os.urandom(size)

    def look() -> None:
        with closing(sqlite3.connect(f"file:{tapped.state}?mode=ro", uri=True)) as other:
            query = "SELECT sum(created) FROM streams"
            seen.extend(other.execute(query).fetchone()[0] for _ in range(5))
        go_on.set()

    tap.fault = blocked
    watcher = threading.Thread(target=look)
    watcher.start()
    tapped.live(1)
    watcher.join()
    assert seen == [before] * 5
    assert len(tapped.made) == before + 1


def test_no_word_outlives_a_claim_or_the_opening_of_a_ledger_PRV_06(
    tmp_path: Path, tap: Tap
) -> None:
    """A restored snapshot, or a copy of the memory, holds no noise of any report."""
    bench = Bench(tmp_path / "s.db", entropy=tap)
    draw = bench.device.core.draw
    assert len(words_in(draw)) >= 8
    assert not any(words_in(draw))
    bench.device.accept_plan("power", make_plan().to_json())
    bench.pass_slots(2)
    for _ in range(5):
        asked = tap.asked
        bench.live(1)
        assert tap.asked == asked + 1  # the report was drawn from a block of its own
        assert not any(words_in(draw))
    bench.journal.close()


def test_the_block_is_not_empty_while_a_report_is_drawn(tmp_path: Path) -> None:
    """The control: the same look, before the words are forgotten."""
    bench = Bench(tmp_path / "s.db")
    bench.device.core.draw(1 << 64)
    assert any(words_in(bench.device.core.draw))
    bench.journal.close()


# packing and sending


def test_offline_reports_wait_and_are_packed_together_when_there_is_a_link(running: Bench) -> None:
    running.live(5, online=False)
    assert running.keys == []
    assert len(running.journal.waiting()) == 5
    running.device.pack_waiting()
    (key,) = running.keys
    assert key == Key(1, 1)
    assert decode(running.payload(key) or b"").slots == tuple(range(SLOT + 2, SLOT + 7))
    assert running.taken() == [key]
    running.device.pack_waiting()
    assert running.keys == [key]


def test_what_waits_is_packed_with_the_next_report_once_online(running: Bench) -> None:
    running.live(3, online=False)
    running.restart()
    running.live(1)
    (key,) = running.keys
    assert len(decode(running.payload(key) or b"").slots) == 4


def test_batches_are_made_no_faster_than_their_interval(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "s.db", sending=f"batch_interval_s = {4 * SLOT_S}")
    bench.device.accept_plan("power", make_plan().to_json())
    bench.pass_slots()
    bench.live(9)
    sizes = [len(decode(bench.payload(key) or b"").slots) for key in bench.keys]
    assert sizes == [1, 4, 4]
    bench.live(1)
    bench.device.pack_waiting()
    assert len(bench.keys) == 3
    bench.device.pack_waiting(at_once=True)
    assert len(bench.keys) == 4
    bench.journal.close()


def test_a_batch_is_the_same_bytes_however_often_it_is_sent_PRV_02(running: Bench) -> None:
    running.live(4)
    first = {key: running.payload(key) for key in running.keys}
    running.device.accept_plan("power", make_plan(2).to_json())
    running.live(3)
    running.restart()
    assert {key: running.payload(key) for key in first} == first
    assert running.taken() == running.keys[-1:]  # until a receipt comes


@pytest.mark.parametrize("value", [0, 1, 999, 1000, 1001, 4000, 10**9, -7])
def test_lengths_of_frames_and_the_status_do_not_depend_on_the_value_PRV_17_PRV_10(
    running: Bench, value: int
) -> None:
    running.live(3, value=value)
    running.live(2, online=False, value=value)
    running.device.pack_waiting()
    assert [len(running.payload(key) or b"") for key in running.keys] == [31, 31, 31, 35]
    assert running.status == Status(
        state="online",
        software=running.status.software,
        streams=running.status.streams,
        ledger={"reports": 5, "day_reports": 5, "window_reports": 1, "window_slots": 1},
        manifest=manifest(running.config),
    )
    (stream,) = running.status.streams
    assert (stream.first, stream.next, stream.created) == (1, 5, 5)


# receipts and age


def test_a_receipt_deletes_what_it_covers_for_good(running: Bench) -> None:
    running.live(5)
    running.send()
    assert running.hear(4, (2, 2)) == 3
    assert [key.number for key in running.keys] == [2, 5]
    assert running.hear(4, (2, 2)) == 0
    assert running.device.payload(Key(1, 1)) is None
    running.restart()
    assert running.keys == [Key(1, 2), Key(1, 5)]
    (stream,) = running.status.streams
    assert (stream.oldest, stream.next, stream.created) == (2, 6, 5)


def test_a_receipt_of_another_stream_or_of_nothing_deletes_nothing(running: Bench) -> None:
    running.live(2)
    assert running.device.accept_receipt(Receipt(())) == 0
    assert running.device.accept_receipt(Receipt((StreamReceipt(2, 2**32 - 1),))) == 0
    assert len(running.keys) == 2


def test_batches_beyond_the_age_limit_are_given_up_and_counted_AGT_16(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench(tmp_path / "s.db", sending="max_age_days = 1")
    bench.device.accept_plan("power", make_plan().to_json())
    bench.pass_slots()
    bench.live(10)
    bench.pass_slots(96 - 5)
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        bench.device.housekeeping()
        bench.device.housekeeping()
    (stream,) = bench.status.streams
    assert (stream.created, stream.expired, len(bench.keys)) == (10, 5, 5)
    assert [record.message for record in caplog.records] == [
        "gave up 5 unconfirmed batches and 0 unsent reports older than the age limit"
    ]
    assert bench.taken() == bench.keys
    bench.journal.close()


def test_reports_that_never_found_a_link_are_given_up_too_and_counted_AGT_16(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path / "s.db", sending="max_age_days = 1")
    bench.device.accept_plan("power", make_plan().to_json())
    bench.pass_slots()
    for _ in range(30):
        bench.live(10, online=False)
        bench.device.housekeeping()
    assert len(bench.journal.waiting()) <= 96
    bench.device.pack_waiting()
    (stream,) = bench.status.streams
    (key,) = bench.keys
    kept = len(decode(bench.payload(key) or b"").slots)
    assert stream.created == 300 == stream.expired + kept
    assert kept == 96
    bench.journal.close()


def test_each_report_made_is_kept_settled_or_expired_and_the_count_says_so(tmp_path: Path) -> None:
    """S3 on the device: created = settled + expired + kept."""
    bench = Bench(tmp_path / "s.db", sending="max_age_days = 1")
    bench.device.accept_plan("power", make_plan().to_json())
    bench.pass_slots()
    settled = 0
    for hour in range(60):
        bench.live(4, online=hour % 5 > 0)
        bench.device.housekeeping()
        if hour % 7 == 0:
            (account,) = bench.status.streams
            bench.send()
            before = len(bench.made)
            bench.hear(min(2 * hour, account.next - 1))
            settled += before - len(bench.made)
        if hour % 11 == 0:
            bench.restart()
    (stream,) = bench.status.streams
    assert stream.expired > 0
    assert settled > 0
    assert stream.created == 240 == settled + stream.expired + len(bench.made)
    bench.journal.close()


def test_a_batch_without_a_receipt_is_due_again_after_two_intervals(running: Bench) -> None:
    """Or after up to four, by chance."""
    running.live(1)
    (key,) = running.taken()
    running.device.delivery.acknowledged(key, running.clock.monotonic())
    running.clock.pass_s(7199)
    running.device.housekeeping()
    assert not running.device.delivery.due
    running.clock.pass_s(7201)
    running.device.housekeeping()
    assert running.taken() == [key]


def test_the_policy_charges_what_the_owner_allows_not_what_the_plan_needs(running: Bench) -> None:
    """A plan below the policy's ε costs the policy's ε: the ledger never undersells."""
    assert running.device.accept_plan("power", make_plan(2, epsilon="0.5").to_json()) is None
    running.live(2)
    ledger = running.journal.ledger()
    assert ledger is not None
    assert ledger.spent == ((RATIO.num, RATIO.den, 2),)
    assert ledger.window == Window(1, 1, 1)
    assert make_plan(fleet=FLEET).stream_mechanism == Hybrid(epsilon=1, low=0, high=1000, size=16)


def test_while_nothing_can_be_stored_nothing_is_drawn_and_plans_and_receipts_wait_AGT_05_AGT_06(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    drawn = []

    def entropy(size: int) -> bytes:
        drawn.append(size)
        return os.urandom(size)

    journal, clock = Journal(tmp_path / "s.db"), StillClock()
    device = local_device(make_config(tmp_path / "s.db"), journal, clock, entropy)
    device.trust_clock()
    device.accept_plan("power", make_plan().to_json())

    def close_slot() -> None:
        clock.pass_s(SLOT_S)
        device.close_slot(SlotValues(device.slot - 1, (500,)), online=True)

    def is_full(*_: object) -> None:
        raise StorageError("s.db", "database or disk is full", passes=True)

    close_slot()
    close_slot()
    (key, *_) = journal.keys()
    for went, _, _ in device.take_messages(0):
        device.delivery.acknowledged(went, clock.monotonic())
    before, made = len(drawn), journal.status()[0].created
    with monkeypatch.context() as patched, caplog.at_level(logging.INFO):
        for name in ("commit", "save_plan", "settle", "probe", "expire"):
            patched.setattr(journal, name, is_full)
        close_slot()
        first = len(drawn)
        for _ in range(5):
            close_slot()
            device.housekeeping()
        assert len(drawn) == first, "a word was drawn for what cannot be stored"
        assert device.accept_plan("power", make_plan(2).to_json()) == "held"
        covered = receipt(key.number, series=journal.status()[0].series)
        assert device.accept_receipt(covered) == 0
        assert device.health == "degraded: storage"
    assert first > before
    close_slot()
    assert device.health == "ok"
    assert journal.status()[0].created == made + 1
    assert device.status("online").streams[0].epoch == 2
    assert device.accept_receipt(covered) == 1
    said = [record.message for record in caplog.records if "stored" in record.message]
    assert len(said) == 1
    journal.close()


@pytest.mark.parametrize("late_s", [0, 100, SLOT_S - 1])
def test_run_and_status_name_one_end_of_a_silence_also_after_a_restart(
    late_s: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = StillClock()
    clock.step(late_s)
    bench = Bench(tmp_path / "s.db", window=(10, 10), clock=clock)
    for _ in range(2):
        held, elapsed = bench.journal.ledger(), bench.journal.elapsed()
        assert held is not None
        assert elapsed is not None
        moment = bench.device.core.moment
        silent = silence(held, elapsed.at(moment), moment)
        assert silent is not None
        (told,) = [record.message for record in caplog.records]
        assert told == (
            f"silent until {utc(silent.until_s):%Y-%m-%d %H:%M:%S} UTC: no usable ledger, so the"
            " window counts as spent, which is no fault"
        )
        caplog.clear()
        bench.live(3)
        assert not caplog.records
        bench.restart()
    bench.live(10)
    caplog.clear()
    bench.restart()
    assert not caplog.records, "the silence is over"
    bench.journal.close()
