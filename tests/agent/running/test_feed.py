"""From telegrams to slots on a clock that stands still: dating, closing, holding, and silence."""

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from agent.claims.slots import SlotValues
from agent.errors import PortError
from agent.link.uplink import Uplink
from agent.meters.obis.dsmr import P1Meter
from agent.meters.reading import Asker, Discarded, Send, Telegram
from agent.ports.meters import make_meter
from agent.running.feed import LATE_S
from agent.running.feeds import NO_CLOCK, Feeds
from agent.state.journal import Journal
from edge_ldp.protocol.ledger import included
from edge_ldp.service.clock import kernel_synchronised
from firmware_stubs.meters import PtyPort
from firmware_stubs.meters.han import FOREIGN
from firmware_stubs.meters.readout import readout_text
from firmware_stubs.meters.telegram import full_p1_telegram, p1_telegram, timestamp
from tests.agent.meters.samples import sealed
from tests.agent.paced import beside
from tests.agent.samples import SLOT, SLOT_S, T0, StillClock, local_device, make_config, make_plan
from tests.integration.agent_bench import until
from tests.meters.faults import without_season
from tests.reached import reached

METER = "E0043007052870318"
ENERGY = ("power", "energy_import")


class Bench:
    """A feed without port and broker: telegrams are handed to it, ticks are made by hand."""

    def __init__(self, state: Path, *, now_s: float = T0, **changes: Any) -> None:
        self.clock = StillClock(now_s)
        self.config = make_config(state, **changes)
        self.journal = Journal(state)
        self.device = local_device(self.config, self.journal, self.clock)
        self.uplink = Uplink(self.config, self.device, self.clock, None)
        self.feeds = Feeds(self.config, self.device, self.uplink, self.clock)
        self.feed = self.feeds.meters[0]
        if "port" not in changes:  # else its own task opens it
            self.feed.note_open()
        self.meter = P1Meter(crc="required", meter_id=self.config.all_meters[0].meter_id)
        self.closed: list[SlotValues] = []
        self._close_slot = self.device.close_slot
        self.device.close_slot = self._note  # type: ignore[method-assign] # looks at what passes

    def _note(self, closed: SlotValues, *, online: bool) -> None:
        self.closed.append(closed)
        self._close_slot(closed, online=online)

    def telegram(
        self,
        power_w: int = 500,
        import_wh: int = 1000,
        *,
        time_s: int | None = None,
        of: str = METER,
    ) -> None:
        told = int(self.clock.now()) if time_s is None else time_s
        sent = p1_telegram(meter_id=of, time_s=told, import_wh=import_wh, power_w=power_w)
        self.feed.receive(self.meter, sent)

    def tick(self) -> None:
        self.feeds.tick()

    @property
    def slots(self) -> dict[int, tuple[int | None, ...]]:
        return {closed.slot - SLOT: closed.values for closed in self.closed}


@pytest.fixture(autouse=True)
def _told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Any]:
    made: list[Bench] = []

    def build(**changes: Any) -> Bench:
        made.append(Bench(tmp_path / f"{len(made)}.db", **changes))
        return made[-1]

    yield build
    for bench in made:
        bench.journal.close()


def live(bench: Bench, seconds: int, *, telegram_s: int, tick_s: int = 5, lag_s: int = 0) -> None:
    """Let time pass with a telegram each `telegram_s` (the first `lag_s` late) and ticks."""
    for second in range(seconds):
        if second % telegram_s == lag_s:
            bench.telegram(import_wh=1000 + second)
        if second % tick_s == 0:
            bench.tick()
        bench.clock.pass_s(1)


@pytest.mark.parametrize("lag_s", [0, 4, 9])
@pytest.mark.parametrize("telegram_s", [1, 10])
def test_looking_at_the_clock_takes_no_register_away_from_its_border(
    make: Any, telegram_s: int, lag_s: int
) -> None:
    """The clock is looked at every 5 s; a meter that sends every 10 s must not lose its energy."""
    bench = make(quantities=ENERGY, window=(2, 1))
    live(bench, SLOT_S * 2, telegram_s=telegram_s, lag_s=lag_s % telegram_s)
    begun_s = lag_s % telegram_s + (2 if telegram_s == 1 else 0)  # what comes first comes together
    assert bench.slots == {0: (500, 900 - begun_s)}
    bench.clock.pass_s(SLOT_S // 2)
    bench.tick()
    assert bench.slots == {0: (500, 900 - begun_s), 1: (500, None)}


def test_the_meters_own_time_leaves_it_the_tolerance_too(make: Any) -> None:
    bench = make(meter='date_by = "meter"\nclock_tolerance_s = 30')
    for _ in range(SLOT_S // 10):
        bench.telegram()
        bench.clock.pass_s(10)
    bench.clock.pass_s(29)
    bench.tick()
    assert bench.slots == {}
    bench.clock.pass_s(1)
    bench.tick()
    assert bench.slots == {0: (500,)}


@pytest.mark.parametrize(
    ("off_s", "used"),
    [(0, True), (60, True), (-60, True), (61, False), (-61, False), (3600, False)],
)
def test_by_the_meters_time_telegrams_count_only_while_both_clocks_agree_SER_17(
    make: Any, caplog: pytest.LogCaptureFixture, off_s: int, *, used: bool
) -> None:
    bench = make(meter='date_by = "meter"', now_s=T0 + 60)
    for _ in range(8):
        bench.telegram(time_s=int(bench.clock.now()) + off_s)
        bench.clock.pass_s(100)
    bench.clock.pass_s(2 * SLOT_S)
    bench.tick()
    assert bench.slots == ({0: (500,)} if used else {})
    said = [record.message for record in caplog.records if "disagree" in record.message]
    assert len(said) == (0 if used else 1)
    bench.telegram(time_s=int(bench.clock.now()) + off_s)
    assert (bench.feed.health == "degraded: the meter's time is not used") == (not used)
    bench.telegram()
    assert bench.feed.health == "ok"


@pytest.mark.parametrize("ahead_s", [-20, -1, 0, 1, 20, 59])
def test_a_meters_clock_beside_ours_costs_no_report_SER_17(make: Any, ahead_s: int) -> None:
    """Ahead, it closes a slot before ours is over: kept until it is, then reported."""
    bench = make(meter='date_by = "meter"', window=(8, 8))
    bench.clock.pass_s(9 * SLOT_S)  # a new window is silent first
    bench.device.accept_plan("power", make_plan().to_json())
    for second in range(6 * SLOT_S):
        if second % 10 == 0:
            bench.telegram(time_s=int(bench.clock.now()) + ahead_s)
        if second % 5 == 0:
            bench.tick()
        bench.clock.pass_s(1)
    bench.clock.pass_s(2 * SLOT_S)
    bench.tick()
    assert len(bench.journal.waiting()) == 6


def test_SER_32_energy_slots_given_up_for_slow_telegrams_are_said_in_health_and_log(
    make: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever the register does: a meter that was set back is another thing, and said so."""
    seen = []
    for step_wh in (100, -100):
        caplog.clear()
        bench = make(quantities=ENERGY, window=(2, 1))
        bench.feed.note_open()
        said = []
        for k in range(24):
            bench.telegram(import_wh=5000 + step_wh * k)
            bench.clock.pass_s(600)
            bench.tick()
            said.append(bench.feed.health)
        rare = "degraded: telegrams come too rarely for energy_import (stream energy_import)"
        assert set(said[2:]) == {"ok", rare}
        lines = [r.message for r in caplog.records if "too rarely" in r.message]
        assert 1 <= len(lines) <= 4, "once an hour"
        seen.append((said, len(lines), {slot: power for slot, (power, _) in bench.slots.items()}))
        for k in range(200):
            bench.telegram(import_wh=10_000 + k)
            bench.clock.pass_s(10)
        assert bench.feed.health == "ok"
    assert seen[0] == seen[1]
    assert seen[0][2] == dict.fromkeys(range(16), 500)


@pytest.mark.parametrize("telegram_s", [75, 300])
def test_SER_32_a_slow_meters_line_is_in_doubt_after_three_intervals_as_heard(
    make: Any, caplog: pytest.LogCaptureFixture, telegram_s: int
) -> None:
    """With `interval_s` as it ships: nothing is said between its telegrams, and silence is."""
    bench = make(quantities=ENERGY, window=(2, 1))
    live(bench, 2 * telegram_s, telegram_s=telegram_s)
    caplog.clear()
    live(bench, 4 * SLOT_S, telegram_s=telegram_s)
    assert not caplog.records
    assert bench.feed.health == "ok"
    values = [bench.slots[slot] for slot in range(1, 3)]
    assert values == [(500, SLOT_S)] * 2
    bench.clock.pass_s(3 * telegram_s)
    assert bench.feed.health == "degraded: no valid frame"


def test_SER_07_outages_of_hours_make_no_interval(make: Any) -> None:
    """Three in a row: the line is in doubt after three slots at the latest, and soon after 30 s."""
    bench = make()
    for _ in range(3):
        live(bench, 60, telegram_s=10)
        bench.clock.pass_s(10_000)
    assert bench.feed.health == "degraded: no valid frame"
    live(bench, 60, telegram_s=10)
    bench.clock.pass_s(3 * SLOT_S)
    assert bench.feed.health == "degraded: no valid frame"
    live(bench, 400, telegram_s=10)
    bench.clock.pass_s(31)
    assert bench.feed.health == "degraded: no valid frame"


def test_a_power_made_of_the_register_is_reported_like_any_other(make: Any) -> None:
    """A Linky in historique mode: VA and whole Wh, in a fleet that counts W."""
    bench = make(stream="from_register = true")
    assert bench.device.accept_plan("power", make_plan().to_json()) is None
    ours = f"0-0:96.1.1({METER.encode().hex()})"
    for k in range(4 * 90):
        energies = sealed(ours, f"1-0:1.8.0({k // 100:08}.{k % 100:02}0*kWh)")
        bench.feed.receive(bench.meter, energies)
        bench.clock.pass_s(10)
        bench.tick()
    assert bench.slots == dict.fromkeys(range(3), (3600,))
    assert bench.feed.health == "ok"
    assert len(bench.journal.waiting()) == 2, "the slot that a new window is silent for is spent"


def test_while_the_clock_is_not_sane_the_device_holds_AGT_10(make: Any) -> None:
    bench = make(clock='trust = "kernel"')
    bench.device.accept_plan("power", make_plan().to_json())
    assert bench.feeds.health == NO_CLOCK
    bench.telegram()
    bench.clock.pass_s(SLOT_S)
    bench.telegram()
    assert bench.slots == {}
    assert bench.journal.ledger() is None


def test_the_ledger_opens_when_the_kernel_says_that_the_clock_is_sane_PRV_12(make: Any) -> None:
    bench = make(clock='trust = "kernel"')
    assert bench.journal.ledger() is None
    bench.feeds.watch_clock()
    is_sane = bench.feeds.health != NO_CLOCK
    assert is_sane == kernel_synchronised() == (bench.journal.ledger() is not None)
    bench.device.trust_clock()
    assert bench.journal.ledger() is not None


def test_silence_is_said_once_and_names_what_to_check_SER_07(
    make: Any, caplog: pytest.LogCaptureFixture
) -> None:
    bench = make()
    for _ in range(50):
        bench.clock.pass_s(SLOT_S)
        bench.tick()
    bench.telegram()
    (silent,) = [one for one in caplog.records if "no valid telegram" in one.message]
    assert silent.levelname == "WARNING"
    assert "baud" in silent.message
    assert "edge-ldp agent read" in silent.message
    levels = {record.message: record.levelname for record in caplog.records}
    assert levels["telegrams arrive again"] == "INFO"


def test_SER_07_without_a_valid_frame_for_three_intervals_the_line_is_in_doubt(make: Any) -> None:
    bench = make(meter="interval_s = 20")
    assert bench.feed.health == "ok"
    for _ in range(60):
        bench.feed.receive(bench.meter, b"\x00\xff\x80" * 40)  # another speed
        bench.clock.pass_s(1)
    assert bench.feed.health == "ok"
    bench.clock.pass_s(1)
    assert bench.feed.health == "degraded: no valid frame"
    bench.telegram()
    assert bench.feed.health == "ok"


@pytest.mark.parametrize("baud", [300, 600])
def test_SER_22_a_readout_of_40_s_is_no_silence_from_the_first_one_on_I04(
    make: Any, caplog: pytest.LogCaptureFixture, baud: int
) -> None:
    bench = make(meter="protocol = 'iec62056-21'\nmode = 'request'")
    meter = make_meter(bench.config.all_meters[0])
    assert isinstance(meter, Asker)
    text = readout_text(7353, 40 * baud // 10 // 24)
    size = baud // 10
    telegrams = 0
    caplog.clear()
    answer = b""
    for second in range(600):
        events = list(meter.tick(second * 1000))
        for event in events:
            if isinstance(event, Send):
                answer = b"/TST0METER\r\n" if event.data[:1] == b"/" else text
        sent, answer = answer[:size], answer[size:]
        bench.clock.pass_s(1)
        got = meter.feed(sent, second * 1000 + 900) if sent else []
        telegrams += sum(isinstance(event, Telegram) for event in got)
        told = [e for e in (*events, *got) if isinstance(e, Telegram | Discarded)]
        bench.feed.hear_answer(meter, sent or None, told)
        bench.feed.watch()
        assert bench.feed.state == "ok", second
    assert telegrams >= 8
    bench.clock.pass_s(3 * 60)
    assert bench.feed.health == "degraded: no valid frame"
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_SER_07_bytes_that_are_no_answer_keep_no_asked_meter_alive(make: Any) -> None:
    bench = make(meter="protocol = 'modbus'")
    meter = make_meter(bench.config.all_meters[0])
    assert isinstance(meter, Asker)
    for second in range(40):
        events = [e for e in meter.tick(second * 1000) if isinstance(e, Discarded)]
        got = [e for e in meter.feed(b"\x01\x04junk", second * 1000 + 5) if not isinstance(e, Send)]
        bench.feed.hear_answer(meter, b"\x01\x04junk", [*events, *got])
        bench.clock.pass_s(1)
    assert bench.feed.state == "degraded: no valid frame"


def test_SER_26_a_quantity_that_the_meter_never_tells_is_named_within_three_telegrams(
    make: Any, caplog: pytest.LogCaptureFixture
) -> None:
    bench = make(quantities=("power", "energy_import"), window=(2, 1))
    ours = f"0-0:96.1.1({METER.encode().hex()})"
    energies = sealed(ours, "1-0:1.8.0(00000001.000*kWh)")
    for at in range(20):
        bench.feed.receive(bench.meter, energies)
        expected = "ok" if at < 2 else "degraded: the meter tells no power (stream power)"
        assert bench.feed.health == expected
    (record,) = [one for one in caplog.records if "is ever reported" in one.message]
    assert "it tells energy_import" in record.message
    assert "check --live" in record.message
    bench.telegram()
    assert bench.feed.health == "ok", "it does tell it, now and then"


def test_SER_36_net_and_reactive_power_are_streams_that_may_be_below_0(make: Any) -> None:
    bench = make(quantities=("power_net", "reactive_power"), window=(2, 1))
    for minute in range(31):
        given_w = 900 if minute < 15 else 0
        told = {"time_s": int(bench.clock.now()), "import_wh": 1, "export_power_w": given_w}
        sent = full_p1_telegram(meter_id=METER, power_w=0 if given_w else 500, **told)
        bench.feed.receive(bench.meter, sent)
        bench.clock.pass_s(60)
    assert bench.feed.health == "ok"
    assert bench.slots == {0: (-900, 0), 1: (500, -50)}


def test_SER_36_net_power_is_not_told_where_one_direction_is_not(make: Any) -> None:
    bench = make(quantities=("power_net",))
    for _ in range(3):
        drawn = sealed(f"0-0:96.1.1({METER.encode().hex()})", "1-0:1.7.0(00.378*kW)")
        bench.feed.receive(bench.meter, drawn)
    assert bench.feed.health == "degraded: the meter tells no power_net (stream power_net)"


def test_SER_16_adapters_that_were_swapped_are_named_and_not_called_gone(
    make: Any, caplog: pytest.LogCaptureFixture
) -> None:
    bench = make(meter=f'meter_id = "{METER}"')
    bench.telegram()
    for _ in range(40):
        bench.clock.pass_s(1)
        bench.telegram(9000, 1, of="another")
        bench.feed.watch()
    assert bench.feed.health == "degraded: another meter speaks on the port"
    assert sum("were adapters swapped" in record.message for record in caplog.records) == 1
    assert not any("no valid telegram" in record.message for record in caplog.records)
    assert not any("another meter" in r.message and "9000" in r.message for r in caplog.records)
    bench.telegram()
    assert bench.feed.health == "ok"


def test_SER_12_nothing_of_what_came_reaches_the_log(
    make: Any, caplog: pytest.LogCaptureFixture
) -> None:
    bench = make(meter="crc = 'absent-allowed'")
    hostile = b"/\x1b[2J\x1b]0;owned\x07MARKER7353\r\n0-0:96.1.1(\x1b[31mMARKER7353)\r\n!\r\n"
    with caplog.at_level(logging.DEBUG):
        for k in range(60):
            bench.feed.receive(bench.meter, hostile + bytes(range(256)) + b"\xff\xfe" * k)
            bench.feed.receive(bench.meter, None)
            bench.clock.pass_s(5)
            bench.tick()
    assert bench.feed.counts.total() > 60
    assert bench.slots == {}
    assert caplog.records
    for record in caplog.records:
        assert record.message.isprintable()
        assert "MARKER" not in record.message
        assert "7353" not in record.message


def test_SER_43_a_dongle_that_tells_one_telegram_again_is_not_used_and_stale(make: Any) -> None:
    """By the meter's own time, whatever the readings say: a new one may tell the same."""
    bench = make(port="mqtt://dongle.lan/telegram")
    bench.feed.note_open()
    for at in range(3):
        bench.telegram(time_s=T0 + at)  # all alike but for their times
    assert bench.feed.counts["believed"] == 3
    for _ in range(SLOT_S * 4 // 10):
        bench.clock.pass_s(10)
        bench.telegram(time_s=T0 + 2)
    assert (bench.feed.counts["believed"], bench.feed.counts["repeated"]) == (3, SLOT_S * 4 // 10)
    assert bench.feed.health == "degraded: stale"
    bench.telegram(time_s=T0 + 3)
    assert bench.feed.health == "ok"


@pytest.mark.parametrize("late_s", [0, 10, LATE_S - 20])
def test_SER_50_two_sources_of_one_meter_and_late_telegrams_count_once(
    make: Any, late_s: int
) -> None:
    """As from one that keeps order: by the meter's own time, until its clock itself is set back."""
    one, both = (make(quantities=ENERGY, window=(2, 1), port="mqtt://dongle.lan/t") for _ in "12")
    for bench in (one, both):
        bench.feed.note_open()
        for second in range(0, SLOT_S * 3 + 1, 10):
            told = {"time_s": T0 + second, "power_w": second % 7000, "import_wh": 1000 + second}
            bench.telegram(**told)
            bench.telegram(of="E0000000000000002")  # of another house
            if bench is both:
                past_s = max(second - late_s, 0)
                past = {"power_w": past_s % 7000, "import_wh": 1000 + past_s}
                bench.telegram(time_s=T0 + past_s, **past)
            bench.clock.pass_s(10)
    assert both.slots == one.slots
    assert len(one.slots) == 3
    assert both.feed.counts["believed"] == one.feed.counts["believed"]
    both.telegram(time_s=T0 + SLOT_S * 3 - LATE_S, import_wh=99_999)
    assert both.feed.counts["believed"] == one.feed.counts["believed"] + 1


@pytest.mark.parametrize("every_s", [10, pytest.param(1, marks=pytest.mark.slow)])
def test_SER_10_a_meter_that_repeats_one_telegram_is_stale_and_reported_all_the_same(
    make: Any, caplog: pytest.LogCaptureFixture, every_s: int
) -> None:
    bench = make()
    stuck = p1_telegram(meter_id=METER, time_s=T0, import_wh=1000, power_w=500)
    for k in range(0, 10_000, every_s):
        bench.feed.receive(bench.meter, stuck)
        bench.clock.pass_s(every_s)
        if k % 100 == 0:
            bench.tick()
    assert bench.feed.health == "degraded: stale"
    assert list(bench.slots) == list(range(10_000 // SLOT_S))
    said = [record.message for record in caplog.records if "stale" in record.message]
    assert len(said) <= 10_000 // 3600 + 1
    assert said[0].endswith("the meter repeats the same time; is it stuck?")
    bench.telegram()
    assert bench.feed.health == "ok"


def test_SER_10_a_meter_that_falls_silent_is_not_called_stuck(
    make: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Its last two telegrams may be of the same second: it repeats nothing after that."""
    bench = make()
    for _ in range(2):
        bench.telegram(import_wh=1, time_s=T0)
        bench.clock.pass_s(1)
    for _ in range(40):
        bench.clock.pass_s(1)
        bench.feed.watch()
    assert bench.feed.health == "degraded: no valid frame"
    assert not any("stuck" in record.message for record in caplog.records)


@pytest.mark.parametrize("base_wh", [0, 8_000_500])
def test_SER_16_a_swapped_meter_costs_one_interval_of_energy_and_is_said_once(
    make: Any, caplog: pytest.LogCaptureFixture, base_wh: int
) -> None:
    """Also where the new one shows more than the old: what looks like a rise is none."""
    bench = make(quantities=ENERGY, window=(2, 1))
    for minute in range(15 * 6 + 1):
        old = minute < 40
        shown_wh = 8_000_000 + minute if old else base_wh + minute
        bench.telegram(import_wh=shown_wh, of="old" if old else "new")
        bench.clock.pass_s(60)
    assert bench.slots == {k: (500, None if k == 2 else 15) for k in range(6)}
    assert sum("meter swapped: " in record.message for record in caplog.records) == 1
    assert bench.feed.counts["swapped"] == 1
    assert bench.feeds.swap_age_s == 51 * 60


def test_SER_16_a_swap_is_an_event_of_its_own_while_its_interval_lasts(make: Any) -> None:
    bench = make(quantities=ENERGY, window=(2, 1))
    bench.telegram()
    assert bench.feeds.swap_age_s is None
    bench.clock.pass_s(SLOT_S + 60)
    bench.telegram(1, 5, of="new")
    swapped = "degraded: the meter was swapped, no energy of this interval"
    assert (bench.feed.health, bench.feed.state) == (swapped, swapped)
    bench.clock.pass_s(SLOT_S)
    bench.telegram(1, 5, of="new")
    assert bench.feed.health == "ok"
    assert bench.feeds.swap_age_s == SLOT_S


@pytest.mark.parametrize("name", ["hdlc", "mbus-ciphered", "p1-encrypted"])
def test_SER_34_a_format_that_is_not_read_is_named_in_health_and_log_and_once(
    make: Any, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    bench = make()
    for k in range(20):
        sent = FOREIGN[name](meter_id="x", time_s=k, import_wh=7353, power_w=7353)
        bench.feed.receive(bench.meter, sent)
        bench.feed.receive(bench.meter, None)
        bench.clock.pass_s(10)
        bench.feed.watch()
    told = "ciphered" if name == "p1-encrypted" else name
    assert bench.feed.state == f"degraded: the meter sends a format that is not read: {told}"
    said = [record.message for record in caplog.records if "not read here" in record.message]
    assert len(said) == 1
    assert not any("cable" in one.message or "7353" in one.message for one in caplog.records)
    bench.telegram()
    assert bench.feed.health == "ok"


def test_SER_30_a_line_that_is_not_understood_is_named_and_no_cable_is_blamed(
    make: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Also by a meter that was read for long: a new firmware prints something else."""
    bench = make()
    bench.telegram()
    odd = sealed(f"0-0:96.1.1({METER.encode().hex()})", "1-0:1.7.0(7353,1*kW)")
    for _ in range(20):
        bench.clock.pass_s(10)
        bench.feed.receive(bench.meter, odd)
        bench.feed.watch()
    assert bench.feed.state == "degraded: telegrams are not understood"
    assert bench.feed.health == bench.feed.state + ": line 1-0:1.7.0"
    (said,) = [r.message for r in caplog.records if "not understood" in r.message]
    assert "their line 1-0:1.7.0 is not understood; the cable is not to blame" in said
    assert "7353" not in said + bench.feed.health
    bench.telegram()
    assert bench.feed.health == "ok"


def test_SER_14_a_register_wider_than_configured_is_said_once_and_drops_no_report_PRV_20(
    make: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """What is reported when is the same as of a register within its digits; so is health."""
    seen = []
    for start_wh in (10**5, 10**6 - 20, 10**7):
        caplog.clear()
        bench = make(quantities=ENERGY, window=(2, 1), meter="register_digits = 3")
        bench.feed.note_open()
        for minute in range(15 * 2 + 1):
            bench.telegram(import_wh=start_wh + minute)
            bench.clock.pass_s(60)
        said = sum("register_digits" in record.message for record in caplog.records)
        assert said == (start_wh + 30 >= 10**6)
        seen.append((bench.slots, bench.feed.health))
    assert seen[0] == seen[1] == seen[2]
    assert seen[0][0] == {0: (500, 15), 1: (500, 15)}


@pytest.mark.parametrize(
    ("begin_s", "shown"),
    [
        (1824940800, ["271031020000S", "271031024500S", "271031020000W", "271031024500W"]),
        (1806192000, ["270328010000W", "270328014500W", "270328030000S", "270328034500S"]),
    ],
)
def test_SER_18_each_quarter_of_the_repeated_and_the_missing_hour_is_one_interval(
    make: Any, begin_s: int, shown: list[str]
) -> None:
    """A P1 meter in Amsterdam, 2027-10-31 and 2027-03-28 from 0:00 UTC: S or W tells the hour."""
    assert [timestamp(begin_s + SLOT_S * k) for k in (0, 3, 4, 7)] == shown
    bench = make(meter='date_by = "meter"', now_s=begin_s)
    for k in range(8):
        bench.telegram(power_w=100 * k)
        bench.clock.pass_s(SLOT_S)
    bench.telegram()
    first = begin_s // SLOT_S - SLOT
    assert bench.slots == {first + k: (100 * k,) for k in range(8)}


def test_SER_18_without_the_flag_nothing_is_dated_by_the_meter_and_it_is_counted(
    make: Any, caplog: pytest.LogCaptureFixture
) -> None:
    bench = make(meter='date_by = "meter"')
    shown = without_season(p1_telegram)
    for _ in range(8):
        told = int(bench.clock.now())
        one = shown(meter_id=METER, time_s=told, import_wh=5, power_w=5)
        bench.feed.receive(bench.meter, one)
        bench.clock.pass_s(SLOT_S)
        bench.tick()
    assert bench.slots == {}
    assert bench.feed.counts["undated"] == 8
    assert sum("tells no time without doubt" in r.message for r in caplog.records) <= 2  # an hour
    assert not any("disagree" in record.message for record in caplog.records)


def test_SER_21_a_second_meter_on_the_line_is_counted_said_and_not_used(
    make: Any, caplog: pytest.LogCaptureFixture
) -> None:
    bench = make()
    for _ in range(SLOT_S + 1):
        bench.telegram()
        bench.telegram(9000, 1, of="another")
        bench.clock.pass_s(1)
    assert bench.slots == {0: (500,)}
    assert bench.feed.counts["foreign"] == SLOT_S + 1
    assert sum("another meter" in record.message for record in caplog.records) == 1


def test_the_tap_is_offered_each_telegram_of_our_meter_and_no_other(make: Any) -> None:
    bench = make()
    offered: list[Any] = []
    bench.feed.tap = offered.append
    bench.telegram(power_w=321)
    bench.telegram(9, 1, of="another")
    bench.feed.receive(bench.meter, b"/damaged\r\n!0000\r\n")
    (telegram,) = offered
    assert {reading.value for reading in telegram.readings} == {321, 0, 1000}


def test_what_is_present_does_not_depend_on_what_is_measured_PRV_10_SER_14(make: Any) -> None:
    """The same telegrams with other numbers, also above the ceiling: the same leaves."""
    seen = []
    for powers in ((0, 0, 0), (9999, 4000, 1), (99_999,) * 3):
        bench = make()
        bench.device.accept_plan("power", make_plan().to_json())
        bench.feed.note_open()
        for at in range(40):
            bench.telegram(powers[at % 3], import_wh=5000 + at * powers[0])
            bench.clock.pass_s((300, 900, 10, 2000)[at % 4])
            bench.tick()
        waiting = [(r.slot, r.epoch) for r in bench.journal.waiting()]
        status = bench.device.status("online")
        (stream,) = status.streams
        status = replace(status, streams=(stream._replace(series=1),))  # drawn at random
        seen.append(([one.slot for one in bench.closed], waiting, bench.feed.health, status))
    assert seen[0] == seen[1] == seen[2]
    assert len(seen[0][1]) > 10


# the port


async def speak(bench: Bench, pty: PtyPort) -> None:
    """Send a telegram through the port, until it was read."""
    seen = bench.feed.counts["believed"]
    told = int(bench.clock.now())
    await pty.write(p1_telegram(meter_id=METER, time_s=told, import_wh=1000, power_w=777))
    await until(partial(believed_more, bench, 0, seen))


@pytest.mark.integration
async def test_a_port_that_is_not_there_is_waited_for_SER_08_SER_09(
    make: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pty = PtyPort(tmp_path / "meter")
    bench = make(port=pty.link)
    async with beside(bench.feed.run()), asyncio.timeout(300):
        await asyncio.sleep(0.2)
        for _ in range(2):
            pty.plug()
            await pty.wait_for_reader()
            await speak(bench, pty)
            pty.unplug()
            for _ in range(8):  # slots go by: the port is what is said, and nothing besides
                await asyncio.sleep(0.15)
                bench.clock.pass_s(SLOT_S)
                bench.tick()
    said = [record.message for record in caplog.records]
    assert sum("waiting for it" in line for line in said) <= 5  # "gone", then "no such device"
    assert not any("no valid telegram" in line for line in said)
    assert all(a != b for a, b in pairwise(said))


@pytest.mark.integration
@pytest.mark.parametrize("kind", ["file", "directory"])
async def test_a_port_that_waiting_cannot_mend_ends_the_feed_SER_23(
    make: Any, tmp_path: Path, kind: str
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "directory").mkdir()
    bench = make(port=tmp_path / kind)
    with pytest.raises(PortError, match=kind):
        async with asyncio.timeout(300):
            await bench.feed.run()


@pytest.mark.integration
async def test_SER_23_what_takes_the_ports_place_later_is_waited_out(
    make: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """At the start a file in the port's place ends the agent; later it holds and tries again."""
    pty = PtyPort(tmp_path / "meter")
    pty.plug()
    bench = make(port=pty.link)
    async with beside(bench.feed.run()) as (running,), asyncio.timeout(300):
        await pty.wait_for_reader()
        pty.unplug()
        pty.link.write_text("no port")
        await until(lambda: "is a regular file" in caplog.text)
        assert bench.feed.health == "degraded: port gone"
        assert not running.done()
        pty.link.unlink()
        pty.plug()
        await pty.wait_for_reader()
        await speak(bench, pty)
    pty.unplug()


async def test_time_is_kept_without_a_meter(make: Any) -> None:
    bench = make(slot_seconds=1, clock='trust = "assume"')
    bench.telegram()
    bench.clock.pass_s(3)
    async with beside(bench.feeds.keep_time()):
        await asyncio.sleep(0)  # its first look comes before its first pause
    assert [closed.values for closed in bench.closed] == [(500,)]


# several meters


def two_meters(make: Any, tmp_path: Path, k: int, w: int) -> Bench:
    """Return a home with a meter of power at one port, and one of energy at another."""
    several = f"""[[meters]]
name = "house"
port = "{tmp_path / "house"}"
[[meters]]
name = "heat"
port = "{tmp_path / "heat"}"
interval_s = 900
"""
    bench: Bench = make(
        quantities=("power", "energy_import"),
        window=(k, w),
        several=several,
        of={"power": "house", "energy_import": "heat"},
    )
    for name, stream_id in (("power", 1), ("energy_import", 2)):
        plan = make_plan(stream=name, stream_id=stream_id).to_json()
        assert bench.device.accept_plan(name, plan) is None
    return bench


def believed_more(bench: Bench, at: int, seen: int) -> bool:
    return bench.feeds.meters[at].counts["believed"] > seen


def reported(bench: Bench) -> list[int]:
    """Return the slot of every report: exactly those that the one ledger's window holds."""
    made = sorted((one.slot, one.stream) for one in bench.journal.waiting())
    ledger = bench.journal.ledger()
    assert ledger is not None
    assert ledger.reports == len(made)
    every = replace(ledger, floor=-1)
    expected = sorted(
        (closed.slot, at + 1)
        for closed in bench.closed
        for at in included(every, closed.slot)
        if closed.values[at] is not None
    )
    assert made == expected
    return [slot for slot, _ in made]


def hand(bench: Bench, at: int, import_wh: int = 1000) -> None:
    """Hand one of the meters a telegram of its own."""
    told = int(bench.clock.now())
    data = p1_telegram(meter_id=f"{METER}{at}"[-17:], time_s=told, import_wh=import_wh, power_w=500)
    bench.feeds.meters[at].receive(P1Meter(crc="required"), data)


@pytest.mark.parametrize(("k", "w"), [(2, 5), (3, 7), (6, 7)])
def test_two_meters_have_one_ledger_and_never_more_than_k_in_any_w_AGT_26(
    make: Any, tmp_path: Path, k: int, w: int
) -> None:
    """Whatever comes of either meter, late or not at all: k counts both."""
    bench = two_meters(make, tmp_path, k, w)
    for minute in range(15 * 20 * w):
        hand(bench, 0)
        if minute % 5 == 0 and minute % 450 < 300:  # now and then it is silent
            hand(bench, 1, 1000 + minute)
        bench.tick()
        bench.clock.pass_s(60)
    slots = reported(bench)
    for first in range(min(slots), max(slots)):
        assert sum(first <= slot < first + w for slot in slots) <= k


def test_a_silent_meter_costs_no_other_its_slots_and_is_named_AGT_26(
    make: Any, tmp_path: Path
) -> None:
    bench = two_meters(make, tmp_path, 2, 1)
    for meter in bench.feeds.meters:
        meter.note_open()
    for _ in range(15 * 4):
        hand(bench, 0)
        bench.tick()
        bench.clock.pass_s(60)
    hand(bench, 0)
    assert {slot: values[0] for slot, values in bench.slots.items()} == dict.fromkeys(range(3), 500)
    assert {values[1] for values in bench.slots.values()} == {None}
    assert bench.feeds.health == "degraded: no valid frame (heat)"


@pytest.mark.integration
async def test_two_meters_at_two_ports_have_one_ledger_and_never_more_than_k_in_any_w_AGT_26(
    make: Any, tmp_path: Path
) -> None:
    """Each port is read by a task of its own; one that goes away stops no other."""
    bench = two_meters(make, tmp_path, 2, 5)
    ports = [PtyPort(tmp_path / name) for name in ("house", "heat")]
    for port in ports:
        port.plug()
    async with beside(*(meter.run() for meter in bench.feeds.meters)), asyncio.timeout(300):
        for port in ports:
            await port.wait_for_reader()
        for slot in range(40):
            for at, port in enumerate(ports[: 1 if slot >= 30 else 2]):
                seen = bench.feeds.meters[at].counts["believed"]
                told, total = int(bench.clock.now()), 1000 + slot
                data = p1_telegram(meter_id=METER, time_s=told, import_wh=total, power_w=500)
                await port.write(data)
                await until(partial(believed_more, bench, at, seen))
            for _ in range(2):  # a slot that closes a whole slot late would count as the next
                bench.tick()
                bench.clock.pass_s(SLOT_S // 2)
            if slot == 29:
                ports[1].unplug()
        await until(lambda: "(heat)" in bench.feeds.health)
    ports[0].unplug()
    slots = reported(bench)
    assert {values[1] for slot, values in bench.slots.items() if slot < 29} == {1}
    for first in range(min(slots), max(slots)):
        assert sum(first <= slot < first + 5 for slot in slots) <= 2


def names_held(work: Any) -> list[str]:
    """Return the names of a waiting coroutine, and of those it waits for, that hold what came."""
    found = []
    while (frame := getattr(work, "cr_frame", None)) is not None:
        kinds = (bytes, bytearray, list, Telegram)
        found += [name for name, one in frame.f_locals.items() if isinstance(one, kinds)]
        work = work.cr_await
    return found


@pytest.mark.integration
async def test_no_telegram_is_held_while_the_next_is_waited_for(make: Any, tmp_path: Path) -> None:
    """Of what was read there are sums and registers; memory that was freed is Python's to reuse."""
    pty = PtyPort(tmp_path / "meter")
    bench: Bench = make(port=pty.link)
    pty.plug()
    async with beside(bench.feed.run()) as (running,), asyncio.timeout(300):
        await pty.wait_for_reader()
        for _ in range(3):
            await speak(bench, pty)
            await until(lambda: names_held(running.get_coro()) == [])
    pty.unplug()


def test_no_reading_of_a_closed_slot_is_held_any_more(make: Any) -> None:
    """Only a register's reading at the border of the open slot is needed on."""
    marker = 31_337
    bench = make(ceiling=43_470)
    bench.device.accept_plan("power", make_plan(ceiling=43_470).to_json())

    def is_held() -> bool:
        return any(type(one) is int and one == marker for one in reached(bench.feeds, bench.device))

    bench.telegram(marker)
    assert is_held(), "the search finds nothing at all"
    bench.clock.pass_s(SLOT_S)
    bench.telegram(500)
    bench.clock.pass_s(SLOT_S)
    bench.telegram(500)
    assert [values for values in bench.slots.values() if marker in values]
    bench.closed.clear()
    assert not is_held()
