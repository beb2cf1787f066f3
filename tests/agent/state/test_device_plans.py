"""Plans as the device takes them: what it refuses, what outlives a restart."""

import logging
import sys
import time
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from edge_ldp.device.frame import decode
from edge_ldp.mechanisms import StochasticRounding
from edge_ldp.protocol.plan import digest, last_epoch, plan_tag
from edge_ldp.ratio import floor_ratio
from tests.agent.samples import FLEET, SLOT, T0, bomb, make_plan
from tests.agent.state.device_bench import Bench, planned


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
NEXT = make_plan(2).to_json()
HOSTILE: list[tuple[bytes, str]] = [  # one of a kind: edge_ldp/protocol has them all
    (b"\xff\xfe\x00", "json"),  # NET-14: garbage on the retained topic
    (b"[]", "shape"),
    (b'{"v":1}', "missing"),
    (b'{"v":1,"v":1}', "duplicate"),
    (b"[" * 10_000, "depth"),
    (b"x" * 10_000_000, "size"),
    (GOOD.replace(b'"v":1', b'"v":2'), "value"),
    (GOOD.replace(b'"epoch":1', b'"epoch":1.0'), "number"),
    (GOOD.replace(b'"share":[1,2]', b'"share":[3,2]'), "channel"),
    (make_plan(2, epsilon=2).to_json(), "ratio"),  # PLN-03, and by one unit in the last place
    *(
        (NEXT[:at] + ONE_UNIT_MORE + NEXT[at + len(LIMIT) :], "ratio")
        for at in (NEXT.index(LIMIT), NEXT.rindex(LIMIT))
    ),
    (make_plan(2, theta=4001).to_json(), "theta"),
    (make_plan(2, ceiling=4001).to_json(), "range"),
    (make_plan(2, fleet="other").to_json(), "audience"),
    (make_plan(2, slot_seconds=60).to_json(), "slot"),
    (make_plan(2, expires_s=T0 - 1).to_json(), "expired"),
    (make_plan(1, theta=999).to_json(), "epoch"),  # PLN-06: they only rise
    (make_plan(last_epoch(T0) + 25).to_json(), "epoch"),
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
    bench = planned(tmp_path / "s.db", **both)
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
