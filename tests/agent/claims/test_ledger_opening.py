"""How a device begins to count its window."""

from dataclasses import replace

import pytest

from agent.claims.elapsed import Elapsed, Moment
from agent.claims.ledger_opening import opened
from edge_ldp.protocol.ledger import Ledger, Window

WINDOW = Window(2, 10, 1)
SLOT_S = 900
SLOT = 1000
NOW = Moment(SLOT * SLOT_S, 5_000_000)
STORED = Ledger(WINDOW, (3, 7), floor=998, silent_until=40, spent=((3, 2, 9),))
TIME = Elapsed(SLOT_S, 4_000_000, 90_000_000, 5, "new", ((96, 1),), ((990, 998),))


def low(_n: int) -> int:
    return 0


def open_it(  # noqa: PLR0913 (what tests vary)
    stored: Ledger | None = STORED,
    elapsed: Elapsed | None = TIME,
    *,
    window: Window = WINDOW,
    slot_seconds: int = SLOT_S,
    moment: Moment = NOW,
    taken_until: int = -1,
) -> tuple[Ledger, Elapsed]:
    return opened(
        stored,
        elapsed,
        window=window,
        slot_seconds=slot_seconds,
        moment=moment,
        taken_until=taken_until,
        draw=low,
    )


def test_without_a_ledger_the_window_counts_as_spent_PRV_12() -> None:
    ledger, elapsed = open_it(None, None)
    assert (ledger.floor, ledger.silent_until, ledger.reports) == (SLOT, SLOT + 10, 0)
    assert (elapsed.reason, elapsed.slot, elapsed.silent) == ("new", 0, 10)


def test_the_stored_one_goes_on_and_time_with_it() -> None:
    ledger, elapsed = open_it()
    assert ledger == STORED
    assert elapsed == replace(TIME, boot_ms=5_000_000, ms=91_000_000)


def test_after_a_reboot_no_time_has_passed_AGT_22() -> None:
    _, elapsed = open_it(moment=replace(NOW, boot_ms=10_000))
    assert elapsed == replace(TIME, boot_ms=10_000)


def test_a_changed_window_begins_after_its_silence_and_what_was_spent_stays() -> None:
    ledger, elapsed = open_it(window=Window(2, 20, 1))
    assert (ledger.floor, ledger.silent_until, ledger.spent) == (SLOT, SLOT + 20, STORED.spent)
    assert (elapsed.reason, elapsed.silent - elapsed.slot, elapsed.runs) == (
        "window",
        20,
        TIME.runs,
    )


def test_another_period_of_the_same_window_goes_on_and_time_with_it_AGG_31() -> None:
    """AGG_31: no silence beyond what the reports before ask for; claims are known still."""
    longer = Window(2, 10, 1, 12)
    ledger, elapsed = open_it(window=longer)
    assert (ledger.window, ledger.floor, ledger.spent) == (longer, STORED.floor, STORED.spent)
    assert STORED.floor < ledger.silent_until < SLOT + 10
    assert elapsed == replace(TIME, boot_ms=5_000_000, ms=91_000_000, reason="window")


def test_another_slot_length_has_its_silence_and_its_reason_also_with_another_period() -> None:
    ledger, elapsed = open_it(window=Window(2, 10, 1, 12), slot_seconds=1800)
    assert ledger.window.period == 12
    assert (ledger.silent_until, elapsed.reason) == (SLOT // 2 + 10, "slot")


@pytest.mark.parametrize("ahead", [11, 350_000])
def test_a_clock_that_had_been_ahead_mutes_for_one_window_AGT_23(ahead: int) -> None:
    ledger, elapsed = open_it(replace(STORED, floor=SLOT + ahead, silent_until=SLOT + ahead))
    assert (ledger.floor, ledger.silent_until, ledger.cells) == (SLOT, SLOT + 10, (3, 7))
    assert (elapsed.reason, elapsed.silent - elapsed.slot, elapsed.runs) == (
        "clock",
        10,
        TIME.runs,
    )


def test_a_clock_a_window_behind_or_less_is_waited_for_AGT_10() -> None:
    ahead = replace(STORED, floor=SLOT + 10)
    assert open_it(ahead)[0] == ahead


@pytest.mark.parametrize(("before_s", "after_s", "pause"), [(60, 900, 10), (900, 60, 150)])
def test_another_slot_length_begins_a_new_window_as_long_as_the_old_AGT_24(
    before_s: int, after_s: int, pause: int
) -> None:
    stored = replace(STORED, floor=SLOT * SLOT_S // before_s)
    time = replace(TIME, slot_seconds=before_s)
    ledger, elapsed = open_it(stored, time, slot_seconds=after_s)
    slot = int(NOW.wall_s // after_s)
    assert (ledger.floor, ledger.silent_until) == (slot, slot + pause)
    assert (elapsed.slot_seconds, elapsed.reason) == (after_s, "slot")
    assert (elapsed.silent - elapsed.slot, elapsed.runs) == (pause, ())


def test_slots_that_a_curator_released_report_no_more_unless_its_clock_was_ahead() -> None:
    for stored, elapsed in ((None, None), (STORED, TIME)):
        assert open_it(stored, elapsed, taken_until=SLOT + 5)[0].floor == SLOT + 5
        assert open_it(stored, elapsed, taken_until=SLOT + 11)[0].floor <= SLOT


def test_a_ledger_of_an_older_version_gets_its_claims_from_its_cells_AGT_21_AGT_22() -> None:
    """Cells 3 and 7 of ten: slots 993 and 997 have reported, 990 to 999 being the last window."""
    ledger, elapsed = open_it(elapsed=None)
    assert ledger == STORED
    assert elapsed.claims == ((4, 1), (8, 1))  # now it is 10
    assert elapsed.slot == 10
    assert elapsed.runs == ((993, 997),)
    assert not elapsed.allows(WINDOW, SLOT, 1)
    later = replace(NOW, boot_ms=NOW.boot_ms + 4 * SLOT_S * 1000)
    assert elapsed.at(later).allows(WINDOW, SLOT + 3, 1)
    assert not elapsed.at(later).allows(WINDOW, SLOT + 3, 2)


def test_an_older_ledger_in_its_silence_stays_silent_AGT_21() -> None:
    _, elapsed = open_it(replace(STORED, silent_until=SLOT + 7), None)
    assert elapsed.silent - elapsed.slot == 7
    assert elapsed.claims == ()
