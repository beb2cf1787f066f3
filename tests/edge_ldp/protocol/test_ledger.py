"""Windows hold whatever happens: restarts, lost state, changed policy, stepped clocks (S4)."""

import json
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import nullcontext, suppress
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from math import inf, prod
from random import Random
from statistics import mean
from typing import Any, NamedTuple

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from edge_ldp import ParameterError
from edge_ldp.protocol.ledger import (
    Ledger,
    Window,
    _first_beside,
    adopt,
    charge,
    conceded,
    included,
    is_same_bound,
    open_ledger,
    parse_ledger,
)
from edge_ldp.protocol.strict_json import MessageError
from edge_ldp.ratio import Ratio, floor_ratio
from tests.edge_ldp.laws import outcomes
from tests.tables import each

ONE, TWO = floor_ratio(1), floor_ratio(2)
Report = tuple[int, int]  # slot, stream position

SMALL = [
    Window(reports=1, slots=1, streams=1),
    Window(reports=2, slots=2, streams=1),
    Window(reports=1, slots=4, streams=1),
    Window(reports=2, slots=5, streams=1),
    Window(reports=3, slots=3, streams=2),
    Window(reports=2, slots=2, streams=3),
    Window(reports=6, slots=3, streams=2),
    Window(reports=2, slots=3, streams=1, period=5),
    Window(reports=2, slots=2, streams=2, period=3),
]


@st.composite
def windows(draw: st.DrawFn) -> Window:
    slots, streams = draw(st.integers(1, 12)), draw(st.integers(1, 3))
    period = slots + draw(st.integers(0, 5))
    return Window(draw(st.integers(1, slots * streams)), slots, streams, period)


@st.composite
def draws(draw: st.DrawFn) -> Callable[[int], int]:
    numbers = draw(st.lists(st.integers(0, 1 << 32), min_size=1, max_size=8))
    state = [0]

    def next_one(n: int) -> int:
        state[0] += 1
        return numbers[state[0] % len(numbers)] * (state[0] + 1) % n

    return next_one


def run(ledger: Ledger, slots: range) -> tuple[Ledger, list[Report]]:
    """Report in every slot that the ledger allows."""
    made: list[Report] = []
    for slot in slots:
        positions = included(ledger, slot)
        if positions:
            ledger = charge(ledger, slot, slot // 96, [ONE] * len(positions))
            made += [(slot, position) for position in positions]
    return ledger, made


def counts_of_windows(made: list[Report], slots: range, width: int) -> list[int]:
    """Return how many reports lie in each run of `width` slots inside `slots`."""
    return [
        sum(start <= slot < start + width for slot, _ in made)
        for start in range(slots.start, slots.stop - width + 1)
    ]


# The scheme: exactly k in every window, every cell equally often


def is_even(window: Window, cells: tuple[int, ...]) -> bool:
    """Say whether no stream has two cells more than another."""
    each = Counter(dict.fromkeys(range(window.streams), 0))
    each.update(cell % window.streams for cell in cells)
    return max(each.values()) - min(each.values()) <= 1


@pytest.mark.parametrize("window", SMALL, ids=str)
def test_every_even_subset_of_cells_is_drawn_equally_often(window: Window) -> None:
    """Of one stream all subsets are even. With as many reports as streams none is without."""
    total = window.period * window.streams
    law: dict[tuple[int, ...], Fraction] = {}
    for asked, ledger in outcomes(lambda draw: open_ledger(window, 10, draw)):
        assert window.streams > 1 or asked == tuple(range(total - window.reports + 1, total + 1))
        law[ledger.cells] = law.get(ledger.cells, Fraction(0)) + Fraction(1, prod(asked))
    subsets = [
        cells for cells in combinations(range(total), window.reports) if is_even(window, cells)
    ]
    assert law == dict.fromkeys(subsets, Fraction(1, len(subsets)))


@pytest.mark.parametrize("window", SMALL, ids=str)
def test_every_cell_reports_with_probability_k_of_pm(window: Window) -> None:
    first = 10 + window.slots
    slots = range(first, first + window.period)
    law: dict[Report, Fraction] = {}
    for asked, ledger in outcomes(lambda draw: open_ledger(window, 10, draw)):
        for cell in ((slot, position) for slot in slots for position in included(ledger, slot)):
            law[cell] = law.get(cell, Fraction(0)) + Fraction(1, prod(asked))
    share = Fraction(window.reports, window.period * window.streams)
    assert window.chance == share
    some = Fraction(min(window.reports, window.streams), window.streams)  # have a report at all
    assert window.heard * some == share
    assert law == {(slot, position): share for slot in slots for position in range(window.streams)}


@given(windows(), draws(), st.integers(0, 10**9))
def test_every_period_has_exactly_k_reports_once_it_has_begun_and_no_window_more(
    window: Window, draw: Callable[[int], int], now: int
) -> None:
    ledger = open_ledger(window, now, draw)
    begun = range(now + window.slots, now + window.slots + 3 * window.period)
    ledger, made = run(ledger, range(now, begun.stop))
    assert min(slot for slot, _ in made) >= begun.start
    assert set(counts_of_windows(made, begun, window.period)) == {window.reports}
    most = max(counts_of_windows(made, range(now, begun.stop), window.slots))
    assert most <= window.reports
    assert most == window.reports or window.period > window.slots
    assert ledger.reports == len(made)


def test_all_streams_of_a_home_share_one_window_PRV_13() -> None:
    """PRV_13: five meters do not multiply the budget."""
    for streams in (1, 2, 5):
        window = Window(reports=8, slots=97, streams=streams)
        _, made = run(open_ledger(window, 0, lambda n: n // 3), range(97 * 5))
        assert len(made) == 8 * 4


def test_whether_a_slot_reports_depends_on_the_slot_and_the_state_only() -> None:
    """PRV_10: the same slots, whatever was charged and however large its ratio."""
    window = Window(3, 10, 2)
    ledger = open_ledger(window, 5, lambda n: n // 2)
    again, _ = run(ledger, range(5, 40))
    richer = charge(ledger, 39, 0, [TWO] * 2)
    for slot in range(40, 80):
        assert included(again, slot) == included(ledger, slot) == included(richer, slot)


# Standing rule S4: any interleaving of days, restarts, losses, changes and stepped clocks

SAME_SIZE = [
    *(Window(2, 5, 2), Window(3, 7, 1), Window(1, 3, 2), Window(9, 9, 1), Window(4, 6, 3)),
    *(Window(2, 5, 2, 8), Window(3, 7, 1, 9), Window(3, 7, 1, 12), Window(1, 3, 2, 4)),
]
EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["run", "restart", "lose", "adopt", "step back", "crash"]),
        st.integers(0, 15),
        st.sampled_from(SAME_SIZE),
    ),
    max_size=14,
)


@settings(max_examples=3 * settings().max_examples)
@given(st.sampled_from(SAME_SIZE), EVENTS, draws())
def test_no_window_ever_holds_more_than_k_whatever_happens(
    window: Window, events: list[tuple[str, int, Window]], draw: Callable[[int], int]
) -> None:
    """S4, S2, PRV_12; the window that counts is the one configured when the report is made."""
    now = 1000
    ledger = open_ledger(window, now, draw)
    made: list[Report] = []
    for event, amount, other in [*events, ("run", 40, window)]:
        if event == "run":
            slots = range(now, now + amount + 1)
        elif event == "step back":  # the clock goes back; the floor does not
            slots = range(now - amount, now + 1)
        elif event == "restart":
            ledger, slots = parse_ledger(ledger.to_json()), range(now, now + 1)
        elif event == "lose":
            ledger, slots = open_ledger(ledger.window, now, draw), range(now, now + 1)
        elif event == "adopt":
            ledger, slots = adopt(ledger, other, now, draw), range(now, now + 1)
        else:  # the claim was not committed, so nothing was sent
            run(ledger, range(now, now + 1))
            slots = range(now + 1, now + 2)
        before = len(made)
        ledger, fresh = run(ledger, slots)
        made += fresh
        for at in range(before, len(made)):
            width = ledger.window.slots
            recent = [slot for slot, _ in made[: at + 1] if made[at][0] - width < slot]
            assert len(recent) <= ledger.window.reports
        now = max(now, slots.stop - 1)
    assert len(set(made)) == len(made)
    assert [slot for slot, _ in made] == sorted(slot for slot, _ in made)


def last(n: int) -> int:
    return n - 1


def subsets(window: Window) -> Iterable[tuple[int, ...]]:
    return combinations(range(window.cells), window.reports)


class Made(NamedTuple):
    """A report of the window it was made under, which nothing beyond `end` is held against."""

    slot: int
    position: int
    window: Window
    end: float = inf


class Home:
    """A ledger in use: what it reported, under which window, and what it has ever spent."""

    def __init__(self, window: Window, draw: Callable[[int], int]) -> None:
        self.draw = draw
        self.now = 1000
        self.ledger = open_ledger(window, self.now, draw)
        self.made: list[Made] = []

    def act(self, event: str, amount: int, window: Window, ratio: Ratio) -> None:
        """Live through one event; `amount` is a step of time, of either sign."""
        before = dict(self.spent)
        if event == "lose":  # the time is right, whatever the clock did before
            self.now, known = max(self.now, self.ledger.floor), self.ledger.window.slots
            self.made = [  # a longer window than the configured one went with the state
                made._replace(end=min(made.end, self.now)) if made.window.slots > known else made
                for made in self.made
            ]
            self.ledger = open_ledger(self.ledger.window, self.now, self.draw)
            return
        if event == "restart":
            self.ledger = parse_ledger(self.ledger.to_json())
        elif event == "adopt":
            self.ledger = adopt(self.ledger, window, self.now, self.draw)
        else:
            self.now = max(0, self.now + amount)
            self._report(amount, ratio)
        assert {key: max(n, self.spent.get(key, 0)) for key, n in before.items()} == {
            key: self.spent[key] for key in before
        }

    @property
    def spent(self) -> dict[tuple[int, int], int]:
        return {(num, den): n for num, den, n in self.ledger.spent}

    def _report(self, amount: int, ratio: Ratio) -> None:
        due = included(self.ledger, self.now)
        kept = [position for position in due if (position + amount) % 3]  # the rest had no value
        if kept:
            self.ledger = charge(self.ledger, self.now, 0, [ratio] * len(kept))
            self.made += [Made(self.now, position, self.ledger.window) for position in kept]


KINDS = ["slot"] * 9 + ["restart", "adopt", "lose"]
STEPS = [1] * 10 + [2, 3, 7, 40, 5000, 0, -1, -4, -60]


@settings(max_examples=2 * settings().max_examples)
@given(st.lists(windows(), min_size=1, max_size=3), st.binary(min_size=60, max_size=200), draws())
def test_in_any_life_every_report_lies_only_in_windows_that_hold_k_at_most(
    held_in_turn: list[Window], life: bytes, draw: Callable[[int], int]
) -> None:
    """S4, PRV_12, AGT_10: slots in any order, steps of the clock, restarts, losses, new windows.

    Each report's window is the one it was made under; whatever is reported later, under whatever
    window, counts in it too, but after a loss while a shorter window is configured: the longer one
    went with the state. What was spent never falls; no slot reports twice.
    """
    home = Home(held_in_turn[0], draw)
    for byte in life:
        event, step = KINDS[byte % len(KINDS)], STEPS[byte % len(STEPS)]
        home.act(event, step, held_in_turn[byte % len(held_in_turn)], (ONE, TWO)[byte // 128])
    slots = [made.slot for made in home.made]
    assert len({(made.slot, made.position) for made in home.made}) == len(home.made)
    assert slots == sorted(slots)
    for slot, _, held, end in home.made:
        counted = [other for other in slots if other <= end]
        for start in range(slot - held.slots + 1, slot + 1):
            assert sum(start <= other < start + held.slots for other in counted) <= held.reports


def test_a_loss_after_a_shorter_window_knows_the_shorter_one_only_PRV_12() -> None:
    """PRV_12: what docs/privacy.md concedes (7); without the loss the longer window is waited for.

    A window of 6 slots gives way to one of 2 in the slot after a report, and the state is lost.
    """
    longer, shorter = Window(1, 6, 1), Window(1, 2, 1)
    ledger, made = run(open_ledger(longer, 0, lambda _: 0), range(13))
    assert made == [(6, 0), (12, 0)]
    kept, lost = adopt(ledger, shorter, 13, lambda _: 0), open_ledger(shorter, 13, lambda _: 0)
    assert run(kept, range(13, 22))[1][0] == (20, 0)
    assert run(lost, range(13, 22))[1][0] == (16, 0)  # within 6 slots of the report in 12


def test_such_lives_do_report() -> None:
    """The control: the property above is not about empty lists."""
    home = Home(Window(3, 4, 2), lambda n: n // 2)
    for event in [("slot", 1)] * 30 + [("adopt", 0)] + [("slot", 1)] * 30:
        home.act(*event, Window(2, 5, 1), ONE)
    assert len({made.window for made in home.made}) == 2
    assert len(home.made) > 20


@pytest.mark.parametrize("window", SMALL, ids=str)
def test_a_changed_windows_cells_are_drawn_with_the_same_law(window: Window) -> None:
    """Enumerated: after a change every cell is included with probability k / (w·m) too."""
    old = open_ledger(Window(1, 6, 1), 10, lambda n: n - 1)
    law = dict.fromkeys(range(window.period * window.streams), Fraction(0))
    for asked, ledger in outcomes(lambda draw: adopt(old, window, 20, draw)):
        for cell in ledger.cells:
            law[cell] += Fraction(1, prod(asked))
    assert set(law.values()) == {Fraction(window.reports, window.period * window.streams)}


@given(windows(), draws(), st.integers(0, 60), st.integers(0, 1000))
def test_no_span_of_slots_holds_more_than_the_most_of_its_window(
    window: Window, draw: Callable[[int], int], span: int, start: int
) -> None:
    _, made = run(open_ledger(window, 0, draw), range(1100 + span))
    assert sum(start <= slot < start + span for slot, _ in made) <= window.most_in(span)


@given(windows(), windows(), draws(), st.integers(0, 30))
def test_a_changed_window_waits_until_the_old_reports_are_out_of_both(
    old: Window, new: Window, draw: Callable[[int], int], at: int
) -> None:
    ledger, made = run(open_ledger(old, 0, draw), range(60 + at))
    changed = adopt(ledger, new, 59 + at, draw)
    if new == old:
        assert changed is ledger
        return
    assume(not is_same_bound(old, new))
    longest = max(old.slots, new.slots)
    assert changed.silent_until == 59 + at + longest
    assert (changed.spent, changed.day, changed.floor) == (ledger.spent, ledger.day, 59 + at)
    _, later = run(changed, range(60 + at, 60 + at + 3 * longest))
    for window in (old, new):
        counts = counts_of_windows(made, range(60 + at), window.slots)
        mixed = counts_of_windows(
            made + later, range(60 + at - window.slots, 60 + at + longest), window.slots
        )
        assert max(mixed) <= max(old.reports, new.reports, *counts)
    assert max(counts_of_windows(later, range(60 + at, 60 + at + 3 * longest), new.slots)) <= (
        new.reports
    )


PERIODS = [
    (Window(2, 4, 1), Window(2, 4, 1, 6)),
    (Window(2, 4, 1, 6), Window(2, 4, 1)),
    (Window(2, 3, 2, 4), Window(2, 3, 2, 5)),
    (Window(1, 3, 1), Window(1, 3, 1, 5)),
    (Window(3, 4, 1), Window(3, 4, 1, 5)),
]


@pytest.mark.parametrize(("old", "new"), PERIODS, ids=str)
def test_another_period_begins_as_soon_as_the_old_reports_allow_and_no_sooner(
    old: Window, new: Window
) -> None:
    """Enumerated: all old subsets, all new ones, all moments of the change."""
    slots = range(40)
    for old_cells, new_cells in product(subsets(old), subsets(new)):
        for at in range(10, 10 + old.period):
            ledger, made = run(replace(open_ledger(old, 0, last), cells=old_cells), range(at + 1))
            ledger = replace(ledger, floor=at)
            changed = replace(adopt(ledger, new, at, last), cells=new_cells)
            changed = replace(changed, silent_until=_first_beside(ledger, changed))
            _, later = run(changed, slots)
            assert max(counts_of_windows(made + later, slots, new.slots)) <= new.reports
            assert at < changed.silent_until <= at + new.slots + 1
            if changed.silent_until > at + 1:  # a slot sooner is one too soon
                _, sooner = run(replace(changed, silent_until=changed.silent_until - 1), slots)
                assert max(counts_of_windows(made + sooner, slots, new.slots)) > new.reports


def test_97_slots_give_way_to_107_without_a_silent_day() -> None:
    """Over seeded homes: from one report to the next 10 hours on average."""
    rng = Random(1)  # noqa: S311 (which homes are tried)
    old, new, waits = Window(8, 97, 1), Window(8, 97, 1, 107), []
    for _ in range(300):
        at = rng.randrange(1000, 2000)
        ledger, made = run(open_ledger(old, 0, rng.randrange), range(at))
        changed = adopt(ledger, new, at, rng.randrange)
        _, later = run(changed, range(at, at + 400))
        assert max(counts_of_windows(made[-20:] + later, range(at - 97, at + 400), 97)) <= 8
        waits.append(later[0][0] - made[-1][0])
    assert max(waits) < 96
    assert mean(waits) < 48


def test_a_second_change_within_a_window_waits_for_a_whole_one() -> None:
    """What reported before the first change is in no schedule that is known any more."""
    first, *others = (Window(2, 10, 1, period) for period in (10, 11, 12))
    ledger, made = run(open_ledger(first, 0, last), range(40))
    for at, window in zip((40, 44), others, strict=True):
        ledger, more = run(adopt(ledger, window, at, last), range(at, at + 4))
        made += more
    assert ledger.silent_until == made[-1][0] + 10


def test_another_period_keeps_an_ordered_silence_and_the_floor() -> None:
    ledger = open_ledger(Window(1, 50, 1), 0, last)
    changed = adopt(ledger, Window(1, 50, 1, 60), 1, last)
    assert (changed.silent_until, changed.floor, changed.cells) == (50, 0, (59,))


def test_a_window_adopted_in_the_past_does_not_lower_the_floor() -> None:
    ledger, _ = run(open_ledger(Window(2, 2, 1), 0, lambda n: n - 1), range(100))
    changed = adopt(ledger, Window(1, 4, 1), 10, lambda n: n - 1)
    assert changed.floor == 99
    assert changed.silent_until == 103


def test_silence_ordered_before_is_not_shortened_by_a_change() -> None:
    ledger = open_ledger(Window(1, 50, 1), 0, lambda n: n - 1)
    assert adopt(ledger, Window(1, 2, 1), 1, lambda n: n - 1).silent_until >= 50


def test_prv_12_a_lost_ledger_counts_as_a_spent_window() -> None:
    window = Window(5, 5, 1)  # every slot
    ledger, before = run(open_ledger(window, 0, lambda n: n - 1), range(30))
    assert before[-1] == (29, 0)
    fresh = open_ledger(window, 29, lambda n: n - 1)
    assert included(fresh, 29) == ()
    _, after = run(fresh, range(29, 60))
    assert after[0][0] == 29 + 5
    assert max(counts_of_windows(before + after, range(60), 5)) == 5
    assert fresh.reports == 0  # the new ledger does not know what was spent, and says so
    assert ledger.reports == len(before)


# Charging


def open_and_ready() -> Ledger:
    return replace(open_ledger(Window(4, 4, 1), 6, lambda n: n - 1), silent_until=0)


def test_a_slot_is_charged_once_and_never_below_the_floor() -> None:
    ledger = charge(open_and_ready(), 10, 0, [ONE])
    for slot in (10, 9, 6, 0, -1):
        with pytest.raises(ParameterError):
            charge(ledger, slot, 0, [ONE])
        assert included(ledger, slot) == ()
    assert charge(ledger, 11, 0, [ONE]).floor == 11


@pytest.mark.parametrize("window", [Window(1, 1, 1), Window(2, 5, 2), Window(3, 4, 1)])
def test_what_a_copy_may_have_reported_is_conceded_whatever_its_cells_AGT_25(
    window: Window,
) -> None:
    for cells in combinations(range(window.slots * window.streams), window.reports):
        ledger = Ledger(window, cells, floor=17, silent_until=0)
        for slot in range(15, 40):
            reported = sum(len(included(ledger, at)) for at in range(18, slot + 1))
            after = conceded(ledger, 17, slot, Ratio(3, 1))
            assert reported <= after.reports == window.most_in(max(window.slots, slot - 17))


def test_charges_are_counted_by_ratio_by_day_and_in_all_and_never_refunded() -> None:
    ledger = open_and_ready()
    ledger = charge(ledger, 10, 20_000, [TWO, ONE])
    ledger = charge(ledger, 11, 20_000, [ONE])
    assert ledger.spent == ((ONE.num, ONE.den, 2), (TWO.num, TWO.den, 1))
    assert (ledger.day, ledger.day_reports, ledger.reports) == (20_000, 3, 3)
    assert charge(ledger, 12, 20_000, []) == replace(ledger, floor=12)  # a slot that is given up
    ledger = charge(ledger, 12, 20_001, [ONE])
    assert (ledger.day, ledger.day_reports, ledger.reports) == (20_001, 1, 4)
    assert ledger.epsilon_spent == pytest.approx(3 * 1 + 2, abs=1e-4)


@given(st.lists(st.lists(st.sampled_from([ONE, TWO, Ratio(3, 1)]), max_size=3), max_size=20))
def test_what_was_spent_is_the_sum_of_all_charges(charges: list[list[Ratio]]) -> None:
    ledger = open_and_ready()
    for at, ratios in enumerate(charges):
        before = ledger
        ledger = charge(ledger, 10 + at, 0, ratios)
        assert ledger.reports == before.reports + len(ratios)
        ledger = parse_ledger(ledger.to_json())
    every = Counter(ratio for ratios in charges for ratio in ratios)
    assert {Ratio(num, den): n for num, den, n in ledger.spent} == dict(every)
    assert ledger.epsilon_spent == pytest.approx(sum(r.epsilon * n for r, n in every.items()))


# State on disk


@pytest.mark.parametrize(
    ("is_one", "sizes"),
    each(
        (False, (0, 1, 1), (2, 1, 1), (16_385, 65_536, 1), (1, 0, 1), (1, 1, 0)),
        (False, (1, 65_537, 1), (1, 40_000, 2), (1, 1, 65_537)),
        (True, (1, 65_536, 1), (1, 1, 65_536), (1, 2, 32_768)),
    ),
)
def test_a_window_that_cannot_be_is_refused(sizes: tuple[int, int, int], *, is_one: bool) -> None:
    with nullcontext() if is_one else pytest.raises(ParameterError):
        assert Window(*sizes).most_in(sizes[1]) == 1


@given(windows(), draws(), st.integers(0, 200))
def test_a_ledger_is_read_back_as_it_was(
    window: Window, draw: Callable[[int], int], slots: int
) -> None:
    ledger, _ = run(open_ledger(window, 3, draw), range(3, 3 + slots))
    assert parse_ledger(ledger.to_json()) == ledger


def test_the_largest_ledger_can_be_read_back() -> None:
    ledger = open_ledger(Window(16_384, 65_536, 1), 1 << 40, lambda n: n - 1)
    for at in range(1, 40):
        ledger = charge(ledger, (1 << 40) + at, 1 << 40, [Ratio((1 << 63) + at, 1 << 62)] * 9)
    assert parse_ledger(ledger.to_json()) == ledger


STORED = charge(charge(open_and_ready(), 10, 5, [ONE]), 11, 5, [TWO])
TABLE: dict[str, Any] = json.loads(STORED.to_json())


def test_a_ledger_of_version_1_has_the_windows_slots_as_its_period() -> None:
    table = json.loads(replace(STORED, floor=77).to_json()) | {"v": 1}
    del table["window"]["period"]
    payload = json.dumps(table).encode()
    assert parse_ledger(payload) == replace(STORED, floor=77)
    assert parse_ledger(payload).window.period == 4


@pytest.mark.parametrize(
    ("name", "value"),
    each(
        *((name, 0, 65_537) for name in ("reports", "slots", "streams")),
        ("period", 0, 65_537, "7"),
    ),
)
def test_a_number_of_a_stored_window_is_refused_by_its_own_name(name: str, value: Any) -> None:
    window = {"reports": 4, "slots": 4, "streams": 1, "period": 4, name: value}
    with pytest.raises(MessageError) as refused:
        parse_ledger(json.dumps(TABLE | {"window": window}).encode())
    assert refused.value.field == f"window.{name}"


@pytest.mark.parametrize(
    ("name", "value"),
    each(
        ("v", 3),
        ("window", {"reports": 4, "slots": 4, "streams": 1, "period": 3}),
        ("window", {"reports": 5, "slots": 4, "streams": 1, "period": 4}),
        ("window", {"reports": 3, "slots": 4, "streams": 1, "period": 4}),
        ("window", {"reports": 4, "slots": 65_536, "streams": 2, "period": 65_536}),
        ("window", {"reports": 0, "slots": 4, "streams": 1, "period": 4}, []),
        ("cells", [0, 1, 2], [0, 1, 2, 2], [0, 1, 3, 2], [0, 1, 2, 4], [-1, 0, 1, 2]),
        ("cells", [0, 1, 2, 3, 4], [False, 1, 2, 3], ["0", 1, 2, 3], [[0], 1, 2, 3]),
        ("cells", [{}, {}, {}, {}], [None, 1, 2, 3], "0123"),
        ("floor", -1, "11", (1 << 62) + 1),
        ("silent_until", None),
        ("day", True, -1),
        ("day_reports", -1),
        ("spent", [[3, 1]], [[3, 1, -1]], [[1, 1, 1]], [[1, 3, 1]], [[3, 0, 1]], [[3, 1, "1"]]),
        ("spent", [["3", 1, 1]], [None], {}, [[3, 1, 1], [3, 1, 1]]),
    ),
)
def test_a_damaged_ledger_is_refused(name: str, value: Any) -> None:
    with pytest.raises(MessageError):
        parse_ledger(json.dumps(TABLE | {name: value}).encode())
    with pytest.raises(MessageError) as refused:
        parse_ledger(json.dumps({key: TABLE[key] for key in TABLE if key != name}).encode())
    assert (refused.value.reason, refused.value.field) == ("missing", name)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 9) | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


@given(st.sampled_from(sorted(TABLE)), JSON)
def test_any_value_in_any_field_gives_a_ledger_or_a_message_error(name: str, value: Any) -> None:
    with suppress(MessageError):
        ledger = parse_ledger(json.dumps(TABLE | {name: value}).encode())
        assert len(ledger.cells) == ledger.window.reports
        assert parse_ledger(ledger.to_json()) == ledger


@given(st.integers(0, len(STORED.to_json()) - 1), st.binary(max_size=3), st.integers(0, 4))
def test_any_damage_to_the_bytes_gives_a_ledger_or_a_message_error(
    at: int, inserted: bytes, removed: int
) -> None:
    payload = STORED.to_json()
    with suppress(MessageError):
        parse_ledger(payload[:at] + inserted + payload[at + removed :])
