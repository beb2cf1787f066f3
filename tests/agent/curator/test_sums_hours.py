"""Sums by the hour beside quarter hours: an hour counts as all that it has of the home's slots."""

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from agent.claims.rollback import Told
from agent.claims.slots import SlotValues
from agent.config.summed_streams import sum_terms
from agent.curator.sums import opened_sums
from edge_ldp.protocol.released import FIRST_SUMS_KEY
from tests.agent.samples import SLOT_S, StillClock
from tests.agent.summed import GAS, MIDNIGHT, SumsBench

pytestmark = pytest.mark.usefixtures("runtime")

WIDE = 10
KEY = FIRST_SUMS_KEY + 1
ALL = GAS.replace("days = 1", "days = 1\nleast_share = 0")


class HoursBench(SumsBench):
    """A bench whose power is reported and whose gas is summed by the hour."""

    def __init__(self, state: Path, stream: str = ALL, **changes: Any) -> None:
        super().__init__(state, stream, **{"window": (8, WIDE)} | changes)

    @property
    def hour(self) -> int:
        return int(self.clock.now()) // 3600 - 1

    def close_hour(self, hour: int | None = None, value: int = 100) -> bool:
        """Close an hour of gas; return whether it was added."""
        before = self.gas
        at = self.hour if hour is None else hour
        self.device.close_slot(SlotValues(at, (value,), 1), online=True)
        return self.gas not in (0, before)

    def quarters(self, many: int) -> None:
        """Let quarter hours pass, each closed in its time."""
        for _ in range(many):
            self.pass_slots(1)
            self.close(500)

    @property
    def gas(self) -> int:
        """How many hours the running period has."""
        return sum(sum(one.n) for one in self.running if one.terms.key == KEY)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[HoursBench]:
    made = HoursBench(tmp_path / "s.db", begins=False, clock=StillClock(MIDNIGHT))
    yield made
    made.journal.close()


def test_a_days_hours_leave_once_with_their_noise(tmp_path: Path) -> None:
    bench = HoursBench(tmp_path / "s.db", begins=False, clock=StillClock(MIDNIGHT - 12 * SLOT_S))
    bench.quarters(12)
    for _ in range(25):
        bench.quarters(4)
        assert bench.close_hour(value=7000)
    (frame,) = bench.frames
    terms = sum_terms(bench.config)[1]
    assert (frame.slot_seconds, frame.days, frame.n) == (3600, 1, (24,))
    assert (frame.span, frame.scale, frame.unit, frame.name) == (6000, terms.scale, "dm3", "gas")
    (row,) = bench.sums.released()
    assert (row.first_s, row.until_s, row.slots) == (MIDNIGHT, MIDNIGHT + 86_400, 24)
    assert bench.gas == 1
    bench.journal.close()


@pytest.mark.parametrize("begun", range(4))
def test_no_hour_is_summed_of_which_a_quarter_is_silent_AGT_38(tmp_path: Path, begun: int) -> None:
    """Wherever in an hour the silence ends."""
    clock = StillClock(MIDNIGHT - SLOT_S * (30 + begun))
    bench = HoursBench(tmp_path / "s.db", begins=False, clock=clock)
    ledger = bench.ledger
    for _ in range(24):
        bench.quarters(1)
        if bench.device.slot % 4 == 0:
            assert bench.close_hour() == (bench.hour * 4 >= ledger.silent_until)
    bench.journal.close()


def test_hours_that_come_late_are_added_in_their_order_and_none_twice_AGT_38(
    bench: HoursBench,
) -> None:
    bench.quarters(16)
    assert bench.close_hour()
    bench.quarters(7)  # an hour, told three quarters late
    late = bench.hour
    assert bench.close_hour(late)
    assert not bench.close_hour(late)
    assert not bench.close_hour(late - 1)
    bench.quarters(1)
    assert bench.close_hour()
    bench.quarters(1)
    assert not bench.close_hour(bench.hour + 1), "a clock that ran ahead gains nothing"
    assert bench.gas == 3


def test_a_period_waits_for_an_hour_that_comes_late_and_not_for_ever_AGT_38(
    tmp_path: Path,
) -> None:
    bench = HoursBench(tmp_path / "s.db", begins=False, clock=StillClock(MIDNIGHT - 24 * SLOT_S))
    bench.quarters(20)
    assert bench.close_hour()
    bench.quarters(4 + 7)
    assert bench.frames == []
    bench.quarters(1)
    assert [one.n for one in bench.frames] == [(1,)]
    bench.journal.close()


def test_a_reboot_and_a_restart_take_no_hour_again_AGT_38(bench: HoursBench) -> None:
    bench.quarters(16)
    assert bench.close_hour()
    bench.restart()
    assert not bench.close_hour()
    bench.quarters(4)
    assert bench.close_hour()
    bench.reboot()
    assert bench.gas == 0
    bench.quarters(3)
    assert not bench.close_hour(), "what was added before is not known"
    bench.quarters(1)
    assert bench.close_hour()


def test_a_proven_copy_books_every_hour_that_the_other_may_release_AGT_38(
    bench: HoursBench,
) -> None:
    bench.quarters(17)
    assert bench.close_hour()
    bench.device._mode.roll_back([Told(1, 9, 9)], is_proof=True)  # noqa: SLF001 (its one caller checks a signature)
    (row,) = [one for one in bench.sums.released() if one.stream == KEY]
    assert (row.first_s, row.until_s, row.slots) == (MIDNIGHT, MIDNIGHT + 5 * 3600, 5)


@pytest.mark.parametrize("other", ["1800", "900"])
def test_another_length_begins_with_a_silent_window_and_sums_no_time_again_AGT_38(
    bench: HoursBench, other: str
) -> None:
    bench.quarters(24)
    bench.close_hour()
    bench.restart(ALL.replace("3600", other))
    assert bench.gas == 0
    ledger = bench.ledger
    assert ledger.silent_until == bench.device.slot + WIDE


def test_what_an_older_version_sealed_goes_on(bench: HoursBench) -> None:
    bench.quarters(16)
    bench.close_hour()
    began, due, sums = bench.sums.running()
    assert due[KEY] > 0
    text = bench.sums._running  # noqa: SLF001 (the file)
    assert text is not None
    sealed = json.loads(text.read() or b"")
    assert opened_sums(json.dumps([began, 7, sealed[2]]).encode()) == (began, {KEY: 8}, sums)


class Walk(HoursBench):
    """A bench that notes each hour that left, and when in true time it was added."""

    def __init__(self, state: Path) -> None:
        self.true = self.gone = 0
        self.runs: list[tuple[int, int]] = []
        self.left: list[tuple[int, int]] = []
        super().__init__(state)

    def quarters(self, many: int) -> None:
        self.true += many
        super().quarters(many)
        self.look()

    def look(self) -> None:
        """Note what left, and drop what was given up."""
        gone = sum(one.stream == KEY for one in self.sums.released())
        if gone > self.gone:
            self.left, self.runs, self.gone = self.left + self.runs, [], gone
        if not self.gas:
            self.runs = []

    def hear(self, hour: int) -> None:
        """Close an hour, and note it where it was added."""
        was_added = self.close_hour(hour)
        self.look()
        if was_added:
            self.runs = [*self.runs[: self.gas - 1], (hour, self.true)]


@pytest.mark.parametrize("seed", range(4))
def test_no_walk_spends_more_on_hours_than_the_window_AGT_38(tmp_path: Path, seed: int) -> None:
    """Clocks that step, restarts, reboots, and hours that come when they like.

    By the slots of the wall clock, and in true time.
    """
    rng = Random(seed)  # noqa: S311 (what befalls, not what leaves)
    bench = Walk(tmp_path / "s.db")
    for _ in range(100):
        event = rng.randrange(30)
        if event == 0:
            bench.clock.step(rng.choice((-90, -20, -5, -1, 1, 3, 5, 20, 90)) * SLOT_S)
        elif event == 1:
            bench.restart()
        elif event == 2:
            bench.reboot(rng.randrange(3) * SLOT_S)
        bench.quarters(rng.choice((1, 1, 2, 3, 4, 6)))
        bench.hear(bench.hour - rng.choice((0, 0, 0, 1)))
    bench.journal.close()
    labels, most = [hour for hour, _ in bench.left], (WIDE - 2) // 4 + 2
    assert len(set(labels)) == len(labels) > 0
    for hour, at in bench.left:
        for quarter in range(hour * 4, hour * 4 + 4):
            touched = {one // 4 for one in range(quarter, quarter + WIDE)}
            assert sum(one in touched for one in labels) <= most
        assert sum(0 <= other - at < WIDE for _, other in bench.left) <= most
