"""Homes' sums of a period at the aggregator: settled like reports, no slot in two of them."""

import json
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.counting.frames import FrameBatch
from aggregator.counting.period_sums import (
    MOST_SPANS,
    SumsArrival,
    read_sums,
    settle_sums,
    wanted_sums,
)
from aggregator.counting.period_totals import (
    FIXED,
    PeriodTotal,
    layout_text,
    read_layout,
    report_of,
    totals_of,
    unpack_total,
)
from aggregator.counting.records import Changes, KeptSums, Key, Known, Member, Record
from aggregator.counting.refusals import Measured, Rules, StreamRules
from aggregator.counting.settle import settle
from edge_ldp.device.sums_frame import SumsFrame, encode_sums
from edge_ldp.errors import RowError
from edge_ldp.period_sums.estimate import estimate_total
from edge_ldp.period_sums.law import FEW
from tests.tables import each

DAY_S = 86_400
WEEK = 2_900  # begins at a border of 7 days from 1970
NOW = (WEEK + 1) * 7 * DAY_S + 600
LOW, SPAN, SCALE = 0, 43_470, 527_074
KEY = 512
RULES = Rules(
    {1: StreamRules(900, 4, {})},
    None,
    1000,
    window_s=35 * DAY_S,
    tolerance_s=300,
    now_s=NOW,
    measured={"power": Measured(1, "W", 0, 43_470)},
)


def frame(period: int = WEEK, batch: int = 1, **changes: Any) -> SumsFrame:
    """Return a home's release of one week in one cell: 2 kW in each of its slots."""
    made = SumsFrame(
        *(0, 7, batch, period, 900, 7, 1, 1, 0, LOW, SPAN, SCALE),
        *("W", "power", (672,), (672 * 2000,)),
    )
    return made._replace(**changes)


def arrival(device: str = "home-1", **changes: Any) -> SumsArrival:
    return read_sums(device, encode_sums(frame(**changes)))


class Store:
    """What a store keeps between flushes, in a few dictionaries."""

    def __init__(self, **members: Member) -> None:
        self.records: dict[Key, Record] = {}
        self.kept: list[KeptSums] = []
        self.members = {name.replace("_", "-"): one for name, one in members.items()}
        self.devices = {*self.members}

    def flush(self, *found: SumsArrival, rules: Rules = RULES, retired: bool = False) -> Changes:
        known = Known(
            dict(self.records),
            frozenset(self.devices),
            len(self.devices),
            members=self.members,
            retired=frozenset({1} if retired else ()),
            claims=[one[:4] for one in self.kept],
        )
        changes = settle_sums(found, known, rules, settle(FrameBatch.of([]), {}, {}, known, rules))
        self.records.update(changes.records)
        self.devices |= changes.enrolled
        self.kept += changes.summed
        return changes

    def told(self, *found: SumsArrival, **changed: Any) -> dict[str, int]:
        """Flush; return the reports refused, by reason."""
        refused = self.flush(*found, **changed).refused
        return {str(reason): reports for (reason, _), (_, reports) in refused.items()}


def test_a_release_counts_once_whatever_comes_again_REP_04() -> None:
    store = Store()
    for _ in range(3):
        store.flush(arrival(), arrival())
    record = store.records["home-1", KEY]
    assert (record.counted, record.duplicates, len(store.kept)) == (1, 5, 1)
    assert wanted_sums([arrival()]) == {("home-1", KEY)}
    (key, total), *_ = totals_of(store.kept).items()
    assert key == ("power", WEEK * 7 * DAY_S, (WEEK + 1) * 7 * DAY_S, "900/7/1/0/1", 0)
    assert (total.homes, total.cells[0].slots) == (1, 672)


@pytest.mark.parametrize(
    ("again", "reason"),
    [
        ({"batch": 2}, "period"),  # the same period under another number
        ({"batch": 2, "stream": 1}, "period"),  # and under another number of the home's stream
        ({"batch": 2, "y": (5,)}, "period"),
        ({"y": (5,)}, "conflict"),
        # a layout of other days, over the same week
        ({"stream": 1, "days": 14, "period": WEEK // 2, "n": (9,), "y": (0,)}, "period"),
        ({"stream": 1, "offset_s": DAY_S // 2, "period": WEEK - 1}, "period"),
    ],
)
def test_a_period_that_is_claimed_twice_is_refused_and_counted_REP_15(
    again: dict[str, Any], reason: str
) -> None:
    store = Store()
    later = replace(RULES, now_s=NOW + 14 * DAY_S)
    store.flush(arrival(), rules=later)
    assert store.told(arrival(**again), rules=later) == {reason: 1}
    assert len(store.kept) == 1
    both = Store()  # in one flush it is no other
    assert both.told(arrival(), arrival(**again), rules=later) == {reason: 1}


def test_neighbouring_periods_and_other_homes_and_streams_do_not_overlap_REP_15() -> None:
    store, later = Store(), replace(RULES, now_s=NOW + 7 * DAY_S)
    rules = replace(later, measured={**RULES.measured, "gas": Measured(2, "Wh", 0, 43_470)})
    found = [
        arrival(),
        arrival(period=WEEK + 1, batch=2),
        arrival("home-2"),
        arrival(stream=1, name="gas", unit="Wh"),
    ]
    assert store.told(*found, rules=rules) == {}
    assert len(store.kept) == 4


@pytest.mark.parametrize(
    ("reason", "changes"),
    each(
        ("span", {"span": SPAN + 1}, {"low": -1}, {"scale": MOST_SPANS * SPAN + 1}),
        ("range", {"y": (672 * SPAN + 28 * SCALE + 1,)}, {"y": (-28 * SCALE - 1,)}),
        ("range", {"n": (0,), "y": (28 * SCALE + 1,)}),
        ("early", {"period": WEEK + 1}),
        ("late", {"period": WEEK - 6}),
        ("stream", {"name": "gas"}, {"unit": "Wh"}),
    ),
)
def test_what_no_honest_home_sends_is_refused_by_name_REP_16(
    changes: dict[str, Any], reason: str
) -> None:
    store = Store()
    assert store.told(arrival(**changes)) == {reason: 1}
    assert not store.kept
    settled = reason in {"span", "range", "late"}
    assert (("home-1", KEY) in store.records) is settled
    if settled:
        record = store.records["home-1", KEY]
        assert (record.counted, record.rejected, record.state.highest) == (0, 1, 1)


@pytest.mark.parametrize("y", [-28 * SCALE, -1, 0, 672 * SPAN, 672 * SPAN + 28 * SCALE])
def test_a_cell_where_honest_noise_reaches_is_taken_REP_16(y: int) -> None:
    assert Store().told(arrival(y=(y,))) == {}


def test_who_may_not_report_and_a_stream_that_is_retired_are_refused_REP_08() -> None:
    assert Store(home_1=Member(revoked=True)).told(arrival()) == {"device": 1}
    assert Store().told(arrival(), retired=True) == {"plan": 1}


def test_a_closed_time_opens_no_period_again_REP_07() -> None:
    ahead = replace(RULES, closed_s=NOW + 100 * DAY_S)
    assert Store().told(arrival(), rules=ahead) == {"clock": 1}


def test_a_held_home_is_kept_and_in_no_total_until_it_is_released_REP_10() -> None:
    store = Store(home_1=Member(group=3, held=True))
    store.flush(arrival(), arrival("home-2"))
    assert [one.held for one in store.kept] == [True, False]
    assert [key.group for key in totals_of(store.kept)] == [0]


@st.composite
def frames(draw: st.DrawFn) -> SumsFrame:
    block = draw(st.sampled_from([1, 2]))
    n = draw(st.lists(st.integers(0, 168), min_size=4, max_size=4))
    beyond = 28 * SCALE
    y = [draw(st.integers(-beyond, many * SPAN + beyond)) for many in n]
    return frame(cells=4, block=block, n=tuple(n), y=tuple(y))


def test_a_homes_total_is_exact_and_a_cell_without_a_slot_is_left_out_with_its_noise() -> None:
    """As it is kept: sums in parts of 2**20, the law's variance, and how far one home can sway."""
    told = frame(cells=4, n=(168, 0, 168, 168), y=(168 * 2000, 999, 0, SCALE))
    sway = 168 * SPAN + 2 * 28 * SCALE
    home, *cells = json.loads(PeriodTotal.of(told).pack())
    assert (home, cells) == (
        1,
        [
            [
                [1, 168, 336_000 << 20, 555_614_002_952, sway],
                [0, 0, 0, 0, 0],
                [1, 168, -552_676_622_336, 277_807_001_476, sway],
                [1, 168, SCALE << 20, 555_614_002_952, sway],
            ]
        ],
    )


@given(st.lists(frames(), min_size=2, max_size=4))
def test_totals_are_integers_that_add_up_in_any_order(found: list[SumsFrame]) -> None:
    sums = set()
    for order in permutations(map(PeriodTotal.of, found)):
        total = order[0]
        for one in order[1:]:
            total = total.plus(one)
        sums.add(total)
    (total,) = sums
    assert unpack_total(total.pack()) == total


@given(st.lists(frames(), min_size=FEW, max_size=FEW))
def test_totals_are_what_the_library_says_of_the_same_homes(found: list[SumsFrame]) -> None:
    total = PeriodTotal.of(found[0])
    for one in found[1:]:
        total = total.plus(PeriodTotal.of(one))
    if sum(n > 0 for one in found for n in one.n) <= FEW * 2:
        return  # the exact law's, or nothing at all
    known = estimate_total([[report_of(one)] for one in found])
    assert sum(one.slots for one in total.cells) == known.slots
    assert sum(one.total for one in total.cells) / FIXED == pytest.approx(known.total, rel=1e-9)
    spread = sum(one.variance for one in total.cells) ** 0.5 * 1.959963984540054
    assert spread == pytest.approx(known.total_half_width, rel=1e-9)
    assert max(one.sway for one in total.cells) <= known.sway


@pytest.mark.parametrize("text", ["", "[1]", "[1,[[1]]]", "[1,[[1,1,2,3,4.5]]]", "{}", "[true,[]]"])
def test_a_damaged_total_is_told(text: str) -> None:
    with pytest.raises(RowError):
        unpack_total(text)


def test_a_layout_is_read_from_its_text() -> None:
    report = report_of(frame())
    assert read_layout(layout_text(report.layout)) == report.layout
    for text in ("", "900/7/1", "900/7/5/0/1", "a/b/c/d/e"):
        with pytest.raises(RowError):
            read_layout(text)
