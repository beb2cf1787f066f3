"""Random lives of a ledger: clocks set, windows and slot lengths changed, restarts, reboots.

Time is what has really passed. Within the reports made under one window there are at most its k in
any w slots; between those of two windows lie at least as many slots as the longer one has.
"""

from collections import Counter, defaultdict
from random import Random

import pytest

from agent.claims.elapsed import Elapsed, Moment, decode_elapsed
from agent.claims.ledger_opening import LOST_DAYS, is_behind, opened
from edge_ldp.protocol.ledger import Ledger, Window, charge, included, parse_ledger
from edge_ldp.ratio import Ratio

SLOT_S = 900
WINDOWS = [Window(8, 97, 1), Window(1, 1, 1), Window(3, 5, 1), Window(2, 20, 1)]
START_S = 1_800_000_000


class Life:
    """One device: real time in slots, a clock that may be off, and what it reported when."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)  # noqa: S311 (a test's)
        self.now = 0
        self.off = 0  # slots by which the clock is ahead
        self.window = WINDOWS[0]
        self.ledger: Ledger | None = None
        self.elapsed: Elapsed | None = None
        self.made: list[tuple[int, Window]] = []
        self.published: list[int] = []
        self.is_lost = False
        self.open()

    @property
    def moment(self) -> Moment:
        """Shortly after a slot's end, which is when slots are claimed."""
        return Moment(START_S + SLOT_S * (self.now + self.off) + 5.0, 1000 * SLOT_S * self.now)

    @property
    def slot(self) -> int:
        return int(self.moment.wall_s // SLOT_S)

    def open(self) -> None:
        stored = parse_ledger(self.ledger.to_json()) if self.ledger else None
        time = decode_elapsed(self.elapsed.encode()) if self.elapsed else None
        self.ledger, self.elapsed = opened(
            stored,
            time,
            window=self.window,
            slot_seconds=SLOT_S,
            moment=self.moment,
            taken_until=-1,
            draw=self.random.randrange,
            is_lost=self.is_lost,
        )

    def lose(self) -> None:
        """Lose the state, and begin anew."""
        self.ledger = self.elapsed = None
        self.is_lost = True
        self.open()

    def live(self, slots: int) -> None:
        for _ in range(slots):
            self.step()

    def step(self) -> None:
        """Let a slot pass, and claim it as the pipeline does."""
        self.now += 1
        assert self.ledger is not None
        if is_behind(self.ledger, self.slot):
            self.open()
        ledger, elapsed, slot = self.ledger, self.elapsed, self.slot - 1
        assert elapsed is not None
        now = elapsed.at(self.moment)
        if included(ledger, slot) and now.allows(ledger.window, slot, 1):
            self.ledger = charge(ledger, slot, slot // 96, [Ratio(2, 1)])
            self.elapsed = now.claimed(ledger.window, slot, 1)
            self.made.append((self.now, ledger.window))
            self.published.append(slot)


def check(life: Life) -> None:
    times: dict[Window, list[int]] = defaultdict(list)
    for at, window in life.made:
        mine = times[window]
        mine.append(at)
        assert len(mine) <= window.reports or at - mine[-1 - window.reports] >= window.slots
    for (one, window), (two, other) in zip(life.made, life.made[1:], strict=False):
        if window != other:
            assert two - one >= max(window.slots, other.slots)
    assert len(life.published) == len(set(life.published))


@pytest.mark.parametrize("back", [0, 6, 30, 96, 98, 5000])
def test_a_changed_windows_silence_lasts_whatever_the_clock_does_AGT_30(back: int) -> None:
    life = Life(1)
    while len(life.made) < 20:
        life.step()
    last = life.now
    life.window = WINDOWS[1]
    life.open()
    for at in range(200):
        life.step()
        if at == 10:
            life.off -= back
    again = min(at for at, _ in life.made if at > last)
    assert again - last >= 97
    check(life)


@pytest.mark.parametrize("seed", range(60))
def test_no_window_holds_more_than_its_reports_in_a_random_life_AGT_22_AGT_30(seed: int) -> None:
    life = Life(seed)
    for _ in range(60):
        life.live(life.random.choice([1, 3, 20, 100]))
        what = life.random.randrange(5)
        if what == 0:
            life.off += life.random.choice([-3000, -98, -30, -6, -1, 1, 6, 30, 98, 3000])
        elif what == 1:
            life.window = life.random.choice(WINDOWS)
            life.open()
        elif what == 2:
            life.open()  # a restart
    check(life)


@pytest.mark.parametrize("back", [1, 98, 140, 300, 3000])
@pytest.mark.parametrize("window", WINDOWS)
def test_no_slot_of_a_lost_state_is_reported_again_when_the_clock_is_set_back_AGT_30(
    window: Window, back: int
) -> None:
    life = Life(2)
    life.window = window
    life.open()
    life.live(400)
    life.lose()
    life.live(150)
    before = len(life.published)
    life.off -= back
    life.live(back + 300)
    assert len(life.published) == len(set(life.published))
    assert len(life.published) > before  # it goes on once the clock has passed


@pytest.mark.parametrize("seed", range(60))
def test_a_life_that_loses_its_state_with_a_clock_past_its_reports_makes_no_second_code_AGT_30(
    seed: int,
) -> None:
    """Of a state that was lost while the clock stood before its reports nothing here can know."""
    life, lost = Life(seed), [0]
    for _ in range(60):
        life.live(life.random.choice([1, 3, 20, 100]))
        what = life.random.randrange(5)
        if what == 0:
            life.off += life.random.choice([-300, -98, -30, -6, -1, 1, 6, 30, 98, 300])
        elif what == 1:
            life.window = life.random.choice(WINDOWS)
            life.open()
        elif what == 2 and life.slot > max(life.published, default=0):
            lost.append(life.slot)
            life.lose()
    again = [slot for slot, times in Counter(life.published).items() if times > 1]
    assert [slot for slot in again if slot >= max(lost) - LOST_DAYS * 96] == []


def test_a_new_device_whose_clock_was_ahead_waits_no_longer_for_that_AGT_29() -> None:
    life = Life(3)
    life.off = 3000
    life.open()
    life.off = 0
    life.live(300)
    assert life.published


@pytest.mark.parametrize(("window", "again"), [(WINDOWS[1], 8), (WINDOWS[2], 4), (WINDOWS[0], 0)])
def test_a_copy_put_back_with_its_clock_repeats_slots_until_it_is_found_AGT_25(
    window: Window, again: int
) -> None:
    """What is known here is the copy: only who heard the newer state can tell (`rollback`)."""
    life = Life(4)
    life.window = window
    life.open()
    life.live(400)
    copied = life.ledger, life.elapsed
    life.live(20)
    life.ledger, life.elapsed = copied
    life.off -= 20
    life.open()
    life.live(8)
    assert len(life.published) - len(set(life.published)) == again
