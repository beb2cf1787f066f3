"""How a device begins to count its window."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import combinations, pairwise, product

import pytest

from agent.claims.elapsed import Elapsed, Moment, begun
from agent.claims.ledger_opening import opened
from edge_ldp.protocol.ledger import Ledger, Window, charge, included, open_ledger
from edge_ldp.ratio import floor_ratio

WINDOW = Window(2, 10, 1)
SLOT_S = 900
SLOT = 1000
NOW = Moment(SLOT * SLOT_S, 5_000_000)
STORED = Ledger(WINDOW, (3, 7), floor=998, silent_until=40, spent=((3, 2, 9),))
TIME = Elapsed(SLOT_S, 4_000_000, 90_000_000, 5, "new", ((96, 1),), ((990, 998),))
Draw = Callable[[int], int]


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
    is_lost: bool = False,
) -> tuple[Ledger, Elapsed]:
    return opened(
        stored,
        elapsed,
        window=window,
        slot_seconds=slot_seconds,
        moment=moment,
        taken_until=taken_until,
        draw=low,
        is_lost=is_lost,
    )


def test_without_a_ledger_the_window_counts_as_spent_PRV_12() -> None:
    ledger, elapsed = open_it(None, None)
    assert (ledger.floor, ledger.silent_until, ledger.reports) == (SLOT, SLOT + 10, 0)
    assert (elapsed.reason, elapsed.slot, elapsed.silent) == ("new", 0, 10)


@pytest.mark.parametrize(("slot", "first"), [(SLOT, 0), (10_000, 10_000 - 35 * 96)])
def test_after_a_lost_state_no_slot_of_35_days_reports_AGT_30(slot: int, first: int) -> None:
    _, elapsed = open_it(None, None, moment=NOW._replace(wall_s=slot * SLOT_S), is_lost=True)
    assert elapsed.runs == ((first, slot),)


def test_the_stored_one_goes_on_and_time_with_it() -> None:
    ledger, elapsed = open_it()
    assert ledger == STORED
    assert elapsed == replace(TIME, boot_ms=5_000_000, ms=91_000_000)


def test_after_a_reboot_no_time_has_passed_AGT_22() -> None:
    _, elapsed = open_it(moment=NOW._replace(boot_ms=10_000))
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
    assert (elapsed.reason, elapsed.silent - elapsed.slot, elapsed.runs) == ("clock", 10, TIME.runs)


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
    ledger, elapsed = open_it(elapsed=None, moment=NOW._replace(wall_s=NOW.wall_s + 7.25))
    assert ledger == STORED
    assert elapsed.ms == 10 * SLOT_S * 1000 + 7250
    assert elapsed.claims == ((4, 1), (8, 1))  # now it is 10
    assert elapsed.slot == 10
    assert elapsed.runs == ((993, 997),)
    assert not elapsed.allows(WINDOW, SLOT, 1)
    later = NOW._replace(boot_ms=NOW.boot_ms + 4 * SLOT_S * 1000)
    assert elapsed.at(later).allows(WINDOW, SLOT + 3, 1)
    assert not elapsed.at(later).allows(WINDOW, SLOT + 3, 2)


def test_an_older_ledger_in_its_silence_stays_silent_AGT_21() -> None:
    _, elapsed = open_it(replace(STORED, silent_until=SLOT + 7), None)
    assert elapsed.silent - elapsed.slot == 7
    assert elapsed.claims == ()


class Home:
    """A device, slot by slot of time that passes; `ahead`: how many its wall clock is."""

    def __init__(self, window: Window, cells: tuple[int, ...]) -> None:
        self.ledger = replace(open_ledger(window, 0, low), cells=cells)
        self.elapsed = begun("new", SLOT_S, Moment(0, 0), window.slots)
        self.ahead = 0
        self.passed: Counter[int] = Counter()  # reports by slot of time that passed
        self.dated: Counter[int] = Counter()  # the same by slot of the wall clock

    def over(self, at: int) -> tuple[int, Moment]:
        """Return the slot that ends with a slot of time, and the moment a second after it."""
        slot = at + self.ahead
        return slot, Moment((slot + 1) * SLOT_S + 1, ((at + 1) * SLOT_S + 1) * 1000)

    def live(self, slots: Iterable[int]) -> None:
        """Claim what both windows allow."""
        for at in slots:
            slot, moment = self.over(at)
            window, now = self.ledger.window, self.elapsed.when_over(slot, moment, 5)
            reports = len(included(self.ledger, slot))
            if reports and now.allows(window, slot, reports):
                self.ledger = charge(self.ledger, slot, 0, [floor_ratio(1)] * reports)
                self.elapsed = now.claimed(window, slot, reports)
                self.passed[at] += reports
                self.dated[slot] += reports

    def change(self, window: Window, cells: tuple[int, ...], at: int, *, is_old: bool) -> None:
        """Start with another window after a slot; `is_old`: from a file without passed time."""
        self.ledger, self.elapsed = opened(
            self.ledger,
            None if is_old else self.elapsed,
            window=window,
            slot_seconds=SLOT_S,
            moment=self.over(at)[1],
            taken_until=-1,
            draw=scripted(window, cells),
        )
        assert self.ledger.cells == cells


def scripted(window: Window, cells: tuple[int, ...]) -> Draw:
    """Return draws that make these cells the schedule: Floyd's algorithm takes what is drawn.

    One stream after the other; of these windows each has as many.
    """
    left = iter(sorted(cells, key=lambda cell: cell % window.streams))
    return lambda _n: next(left) // window.streams


def schedules(window: Window) -> list[tuple[int, ...]]:
    """Return those that may be drawn: each stream has as many cells."""
    each = dict.fromkeys(range(window.streams), window.reports // window.streams)
    every = combinations(range(window.cells), window.reports)
    return [cells for cells in every if Counter(cell % window.streams for cell in cells) == each]


def most_in(reports: Counter[int], slots: int) -> int:
    return max(sum(reports[at + k] for k in range(slots)) for at in reports)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (Window(2, 4, 1), Window(2, 4, 1, 6)),
        (Window(2, 4, 1, 6), Window(2, 4, 1)),
        (Window(2, 2, 2), Window(2, 2, 2, 3)),
    ],
    ids=str,
)
def test_no_window_has_too_many_reports_across_a_change_of_period_AGG_31(
    old: Window, new: Window
) -> None:
    """AGG_31: of slots that passed, and of slots by the clock, which the change also steps.

    Enumerated: all old schedules, all new ones, all moments of the change. Then reports come again
    within a window and a period of each other, or a clock set back has passed what was claimed.
    """
    pairs = product(*map(schedules, (old, new)))
    for cells, others in pairs:
        for at, ahead in product(range(10, 10 + old.period), (-3, 0, 2)):
            home = Home(old, cells)
            home.live(range(at))
            home.ahead = ahead
            home.change(new, others, at - 1, is_old=ahead == 0 and at % 2 == 0)
            home.live(range(at, at + 24))
            assert most_in(home.passed, new.slots) <= new.reports
            assert most_in(home.dated, new.slots) <= new.reports
            slots = sorted(home.passed)
            silent = max(after - before for before, after in pairwise(slots))
            assert silent <= new.slots + max(old.period, new.period) + max(0, -ahead)


@pytest.mark.parametrize(("lived", "silence"), [(3 * 97, 10), (97 + 60, 97)])
def test_97_slots_give_way_to_107_at_once_if_the_ledger_proves_it_may_AGG_31(
    lived: int, silence: int
) -> None:
    """AGG_31: what was before a ledger's first window is not known: then a whole one passes."""
    home = Home(Window(8, 97, 1), tuple(range(0, 96, 12)))
    home.live(range(lived))
    reported = max(home.passed)
    home.change(Window(8, 97, 1, 107), tuple(range(8, 104, 13)), lived - 1, is_old=False)
    assert home.ledger.silent_until - reported == silence
    home.live(range(lived, 1000))
    assert most_in(home.passed, 97) == 8
    late = sorted(at % 107 for at in home.passed if at >= 893)
    assert late == list(range(8, 104, 13))
