"""The decision about a closed slot: who reports, what it costs, and that it happens once."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.claims import pipeline
from agent.claims.elapsed import Elapsed
from agent.claims.pipeline import ActiveStream, Claim, Report
from agent.claims.slots import SlotValues
from edge_ldp.device.errors import ParameterError
from edge_ldp.protocol.ledger import Ledger, Window, charge, included
from edge_ldp.ratio import Ratio, floor_ratio
from tests.agent.samples import SLOT, SLOT_S, make_plan

E1 = floor_ratio(1)
E2 = floor_ratio(2)


def ledger_of(window: Window, cells: tuple[int, ...], floor: int = SLOT - 1) -> Ledger:
    return Ledger(window, cells, floor, silent_until=0)


def every_slot(streams: int = 1) -> Ledger:
    return ledger_of(Window(streams, 1, streams), tuple(range(streams)))


def active(stream: int = 1, epoch: int = 3, ratio: Ratio = E1) -> ActiveStream:
    return ActiveStream(stream, epoch, make_plan(epoch, stream_id=stream).reporter(), ratio)


def decide(
    ledger: Ledger,
    closed: SlotValues,
    streams: Sequence[ActiveStream | None],
    slot_seconds: int,
    draw: Callable[[int], int],
) -> Claim | None:
    """Decide when time alone would allow anything."""
    free = Elapsed(slot_seconds, 0, 0, 0, "new")
    return pipeline.decide(ledger, free, closed, streams, draw)


class Script:
    """A draw that gives 0, 1, 2 … modulo n, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self._next = count()

    def __call__(self, n: int) -> int:
        self.asked.append(n)
        return next(self._next) % n


def test_a_slot_with_plan_and_value_gives_one_report_and_one_charge() -> None:
    claim = decide(every_slot(), SlotValues(SLOT, (500,)), [active()], SLOT_S, Script())
    assert claim is not None
    (report,) = claim.reports
    assert (report.stream, report.slot, report.epoch) == (1, SLOT, 3)
    assert report.code == active().reporter.report(500, Script())
    assert claim.ledger == charge(every_slot(), SLOT, SLOT * SLOT_S // 86_400, [E1])
    assert (claim.ledger.floor, claim.ledger.reports, claim.ledger.day_reports) == (SLOT, 1, 1)


@pytest.mark.parametrize(
    ("plans", "values", "streams"),
    [
        ((True, True), (5, 6), (1, 2)),
        ((True, False), (5, 6), (1,)),
        ((False, True), (5, 6), (2,)),
        ((True, True), (None, 6), (2,)),
        ((True, True), (5, None), (1,)),
        ((True, False), (None, 6), None),
        ((False, False), (5, 6), None),
        ((True, True), (None, None), None),
        ((True, True), (0, 0), (1, 2)),
    ],
)
def test_only_streams_with_a_plan_and_a_value_report(
    plans: tuple[bool, bool], values: tuple[int | None, ...], streams: tuple[int, ...] | None
) -> None:
    running = [active(at + 1) if has else None for at, has in enumerate(plans)]
    draw = Script()
    claim = decide(every_slot(2), SlotValues(SLOT, values), running, SLOT_S, draw)
    if streams is None:
        assert claim is None
        assert draw.asked == []
    else:
        assert claim is not None
        assert tuple(report.stream for report in claim.reports) == streams
        assert claim.ledger.reports == len(streams)


def test_only_the_positions_that_the_window_includes_report() -> None:
    window = Window(2, 4, 2)
    first = SLOT % 4 * 2
    ledger = ledger_of(window, tuple(sorted((first + 1, (first + 2) % 8))))
    made = {}
    for slot in range(SLOT, SLOT + 8):
        claim = decide(ledger, SlotValues(slot, (5, 6)), [active(1), active(2)], SLOT_S, Script())
        made[slot - SLOT] = [report.stream for report in claim.reports] if claim else []
        ledger = claim.ledger if claim else ledger
    assert made == {0: [2], 1: [1], 2: [], 3: [], 4: [2], 5: [1], 6: [], 7: []}


@pytest.mark.parametrize("slot", [SLOT - 5, SLOT - 1])
def test_a_slot_claimed_or_given_up_before_is_not_randomised_again(slot: int) -> None:
    draw = Script()
    assert decide(every_slot(), SlotValues(slot, (5,)), [active()], SLOT_S, draw) is None
    assert draw.asked == []


def test_a_claimed_slot_decided_again_gives_nothing() -> None:
    closed = SlotValues(SLOT, (5,))
    claim = decide(every_slot(), closed, [active()], SLOT_S, Script())
    assert claim is not None
    assert decide(claim.ledger, closed, [active()], SLOT_S, Script()) is None


def test_each_stream_is_charged_its_own_ratio() -> None:
    running = [active(1, ratio=E1), active(2, ratio=E2)]
    claim = decide(every_slot(2), SlotValues(SLOT, (5, 6)), running, SLOT_S, Script())
    assert claim is not None
    assert claim.ledger.spent == ((E1.num, E1.den, 1), (E2.num, E2.den, 1))
    assert claim.ledger.epsilon_spent == pytest.approx(3, abs=1e-3)


def test_the_day_of_a_slot_is_its_own() -> None:
    """The slot's day is counted, not the day on which it was claimed."""
    last = 86_400 // SLOT_S * 20_833 - 1
    ledger = every_slot()
    days = []
    for slot in (last - 1, last, last + 1):
        ledger = replace(ledger, floor=slot - 1)
        claim = decide(ledger, SlotValues(slot, (5,)), [active()], SLOT_S, Script())
        assert claim is not None
        ledger = claim.ledger
        days.append((ledger.day, ledger.day_reports))
    assert days == [(20_832, 1), (20_832, 2), (20_833, 1)]


def test_the_number_and_ranges_of_draws_do_not_depend_on_the_value() -> None:
    asked = set()
    for value in (0, 1, 499, 500, 999, 1000, 1001, 4000, 10**9, -5):
        draw = Script()
        assert decide(every_slot(), SlotValues(SLOT, (value,)), [active()], SLOT_S, draw)
        asked.add(tuple(draw.asked))
    assert len(asked) == 1


@given(
    st.lists(
        st.tuples(st.integers(SLOT - 5, SLOT + 40), st.booleans(), st.booleans()), max_size=60
    ),
    st.sets(st.integers(0, 13), min_size=4, max_size=4),
)
def test_whatever_closes_no_slot_is_claimed_twice_and_no_window_holds_more_than_k(
    slots: list[tuple[int, bool, bool]], cells: set[int]
) -> None:
    """S2, S4: any order of closed slots, streams with and without values."""
    window = Window(4, 7, 2)
    ledger = ledger_of(window, tuple(sorted(cells)))
    reports: list[Report] = []
    for slot, first, second in slots:
        closed = SlotValues(slot, (5 if first else None, 6 if second else None))
        claim = decide(ledger, closed, [active(1), active(2)], SLOT_S, Script())
        if claim is None:
            continue
        assert {report.stream - 1 for report in claim.reports} <= set(included(ledger, slot))
        ledger, reports = claim.ledger, [*reports, *claim.reports]
    keys = [(report.stream, report.slot) for report in reports]
    assert len(set(keys)) == len(keys)
    for start in range(SLOT - 5, SLOT + 41):
        assert sum(start <= slot < start + window.slots for _, slot in keys) <= window.reports
    assert ledger.reports == len(reports)


def test_claiming_is_refused_below_the_floor_whoever_asks() -> None:
    with pytest.raises(ParameterError, match="slot"):
        charge(every_slot(), SLOT - 1, 0, [E1])


def test_a_claim_holds_codes_and_no_value() -> None:
    claim = decide(every_slot(), SlotValues(SLOT, (987_654,)), [active()], SLOT_S, Script())
    assert isinstance(claim, Claim)
    assert "987654" not in repr(claim)
    assert "987654" not in str(SlotValues(SLOT, (987_654,)))
