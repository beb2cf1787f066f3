"""What homes' own sums answer: the library's figures of the same homes, and none of few homes."""

from dataclasses import replace
from datetime import UTC
from typing import Any

import pytest

from aggregator.answers.parts import answer_json
from aggregator.answers.sums_answer import SumFigures, SumsAnswer, narrower_mode, read_sums_answer
from aggregator.answers.sums_text import sums_csv, sums_text
from aggregator.config import parse_config
from aggregator.counting.period_totals import report_of
from aggregator.counting.records import Member
from aggregator.store.sqlite.store import SqliteStore
from edge_ldp.device.sums import DAY_S
from edge_ldp.device.sums_frame import SumsFrame
from edge_ldp.period_sums.estimate import estimate_total
from edge_ldp.period_sums.law import FEW
from tests.aggregator.archive_run import CONFIG
from tests.aggregator.counting.test_period_sums import (
    RULES,
    SCALE,
    SPAN,
    WEEK,
    Store,
    arrival,
    frame,
)
from tests.aggregator.store_contract import changes, commit

STREAM = replace(parse_config(CONFIG.format(place="/x"), "a.toml").streams[0], ceiling=43_470)
LATER = replace(RULES, now_s=RULES.now_s + 21 * DAY_S)


def noisy(seed: int, period: int = WEEK, cells: int = 1, slots: int = 672) -> dict[str, Any]:
    """Return what differs in a home's release: up to twice the scale about 2 kW in each slot."""
    n = tuple(slots // cells for _ in range(cells))
    noise = ((seed * 7919 + cell * 104_729) % 2001 - 1000 for cell in range(cells))
    y = (one * 2000 + SCALE * moved // 500 for one, moved in zip(n, noise, strict=True))
    return {"period": period, "batch": 1 + period - WEEK, "cells": cells, "n": n, "y": tuple(y)}


def fill(
    store: SqliteStore, homes: int, *weeks: int, cells: int = 1, **members: Member
) -> list[SumsFrame]:
    """Let homes send so many weeks; return their frames."""
    kept, frames = Store(**members), []
    for week in weeks or (WEEK,):
        told = [noisy(100 * week + home, week, cells) for home in range(homes)]
        frames += [frame(**one) for one in told]
        found = [arrival(f"home-{at}", **one) for at, one in enumerate(told)]
        commit(store, changes(summed=kept.flush(*found, rules=LATER).summed))
    return frames


def asked(
    store: SqliteStore, *, since_s: int | None = None, until_s: int | None = None, **given: Any
) -> SumsAnswer | None:
    return read_sums_answer(store, STREAM, (since_s, until_s), UTC, **{"least": 10, **given})


def enrol(store: SqliteStore, devices: int) -> None:
    commit(store, changes(enrolled=frozenset(f"enrolled-{at}" for at in range(devices))))


def found_of(store: SqliteStore, **given: Any) -> SumsAnswer:
    found = asked(store, **given)
    assert found is not None
    return found


@pytest.mark.parametrize("homes", [10, 40])
def test_the_mean_is_the_librarys_of_the_same_homes(store: SqliteStore, homes: int) -> None:
    frames = fill(store, homes)
    whole = found_of(store).whole
    known = estimate_total([[report_of(one)] for one in frames])
    assert known.is_exact == whole.exact == (homes <= FEW)
    ends = (whole.mean, whole.low, whole.high)
    assert ends == pytest.approx((known.mean, known.low, known.high), rel=1e-9)
    assert (whole.homes, whole.slots, whole.coverage) == (homes, 672 * homes, 1.0)
    assert whole.energy_kwh == pytest.approx(known.total / 4000)


def test_energy_is_told_as_measured_and_of_every_home_apart(store: SqliteStore) -> None:
    fill(store, 40, WEEK, WEEK + 1)
    enrol(store, 100)
    whole = found_of(store).whole
    assert whole.coverage == pytest.approx(0.4)
    assert whole.energy_kwh is not None
    assert whole.mean is not None
    assert whole.full_kwh == pytest.approx(whole.energy_kwh / 0.4)
    assert whole.full_kwh == pytest.approx(whole.mean * 100 * 2 * 168 / 1000)


def test_one_line_tells_sums_where_they_leave_out_no_time_of_reports(store: SqliteStore) -> None:
    """Of two weeks in a row and one apart."""
    fill(store, 40, WEEK, WEEK + 1, WEEK + 3)
    found, week_s = found_of(store), 7 * DAY_S
    first_s = WEEK * week_s
    for begin_s, end_s, is_all in (
        (first_s, first_s + 2 * week_s, True),
        (first_s + 1, first_s + week_s, True),
        (first_s - 1, first_s + week_s, False),
        (first_s, first_s + 2 * week_s + 1, False),
        (first_s, first_s + 4 * week_s, False),
        (first_s + 3 * week_s, first_s + 4 * week_s, True),
    ):
        assert found.is_all_of(begin_s, end_s) is is_all
    assert found.is_all_of(None, None), "no report of that time"
    assert not found_of(store, least=41).is_all_of(first_s, first_s + week_s), "of too few homes"


def test_periods_and_parts_add_up_to_the_whole(store: SqliteStore) -> None:
    frames = fill(store, 40, WEEK, WEEK + 1, cells=4)
    found = found_of(store)
    assert [one.from_s for one in found.periods] == [WEEK * 7 * DAY_S, (WEEK + 1) * 7 * DAY_S]
    assert [one.from_day_s for one in found.parts] == [0, DAY_S // 4, DAY_S // 2, 3 * DAY_S // 4]
    for rows in (found.periods, found.parts):
        assert sum(one.energy_kwh or 0 for one in rows) == pytest.approx(found.whole.energy_kwh)
        assert sum(one.slots or 0 for one in rows) == found.whole.slots
    known = estimate_total([[report_of(one)] for one in frames], [2])
    assert found.parts[2].mean == pytest.approx(known.mean)
    half = (found.parts[2].high or 0) - (found.parts[2].mean or 0)
    assert half == pytest.approx(known.total_half_width / known.slots)


def test_what_one_liar_can_move_is_told_REP_17(store: SqliteStore) -> None:
    fill(store, 40, WEEK, WEEK + 1, cells=4)
    found = found_of(store)
    assert found.whole.sway == 2 * (672 * SPAN + 4 * 56 * SCALE)  # it lies in each of its cells
    assert [one.sway for one in found.periods] == [found.whole.sway / 2] * 2
    assert [one.sway for one in found.parts] == [2 * (168 * SPAN + 56 * SCALE)] * 4
    assert found.whole.mean_sway == found.whole.sway / (2 * 672 * 40)
    assert "one that lies can move the mean of all by" in sums_text(found, "W", UTC)


def test_a_range_takes_whole_periods_alone(store: SqliteStore) -> None:
    fill(store, 40, WEEK, WEEK + 1)
    begin = WEEK * 7 * DAY_S
    assert len(found_of(store, until_s=begin + 14 * DAY_S - 1).periods) == 1
    assert asked(store, since_s=begin + 1, until_s=begin + 14 * DAY_S - 1) is None


def test_few_homes_are_withheld_and_the_rest_of_a_group_too_AGG_13(store: SqliteStore) -> None:
    fill(store, 30, home_0=Member(group=2), home_1=Member(group=2))
    assert found_of(store, least=31).whole == SumFigures(withheld=True)
    assert not found_of(store).whole.withheld
    assert found_of(store, group=2).whole.withheld
    assert found_of(store, group=0).whole.withheld  # with all of them it would tell of two


def test_a_period_of_few_homes_is_not_in_the_whole_either_AGG_13(store: SqliteStore) -> None:
    fill(store, 30)
    fill(store, 3, WEEK + 1)
    found = found_of(store)
    assert [one.withheld for one in found.periods] == [False, True]
    assert found.whole.slots == 672 * 30
    few = found_of(store, least=50)
    assert few.whole == SumFigures(withheld=True)
    assert "withheld: fewer homes" in sums_text(few, "W", UTC)


def test_slots_of_another_length_are_left_out_and_said(store: SqliteStore) -> None:
    fill(store, 40)
    gas = {"slot_seconds": 3600, "n": (168,), "y": (5,)}
    kept = Store().flush(*(arrival(f"gas-{at}", **gas) for at in range(12))).summed
    commit(store, changes(summed=kept))
    found = found_of(store)
    assert found.whole.homes == 40
    assert found.warnings == ["sums over slots of another length than 900 s are left out: 1"]


def test_no_sums_are_no_answer(store: SqliteStore) -> None:
    assert asked(store) is None


def test_homes_are_counted_at_the_moment_when_they_were_the_most(store: SqliteStore) -> None:
    kept = Store()
    weekly = [arrival(f"a-{at}", **noisy(at)) for at in range(12)]
    next_week = [arrival(f"b-{at}", **noisy(at, WEEK + 1)) for at in range(11)]
    month = {"days": 28, "period": WEEK // 4, "n": (2688,), "y": (2688 * 2000,)}
    monthly = [arrival(f"c-{at}", **month) for at in range(10)]
    found = kept.flush(*weekly, *next_week, *monthly, rules=LATER).summed
    commit(store, changes(summed=found))
    both = found_of(store).whole
    assert both.homes == 22
    assert both.slots == 672 * 23 + 2688 * 10


def figures(mean: float, half: float) -> SumFigures:
    return SumFigures(mean=mean, low=mean - half, high=mean + half)


@pytest.mark.parametrize(
    ("cells", "days", "told"),
    [
        (1, 1, {"day"}),
        (24, 1, {"day", "hour-of-day"}),
        (4, 7, {"week", "hour-of-day"}),
        (24, 28, {"hour-of-day"}),
        (48, 7, {"week"}),
    ],
)
def test_the_mode_is_that_of_the_narrower_answer_to_what_is_asked(
    store: SqliteStore, cells: int, days: int, told: set[str]
) -> None:
    layout: dict[str, Any] = {"days": days, "period": WEEK * 7 // days, "cells": cells}
    layout |= {"n": (days * 96 // cells,) * cells}
    sent = [arrival(f"home-{at}", **layout, y=(at * 1000,) * cells) for at in range(30)]
    commit(store, changes(summed=Store().flush(*sent, rules=LATER).summed))
    sums, few = found_of(store), found_of(store, least=31)
    wide, narrow, none = figures(2000, 10**6), figures(2000, 1), SumFigures()
    for row, mode in ((wide, "sums"), (narrow, "local"), (none, "sums")):
        assert narrower_mode([row], sums) == mode
        for by in ("hour-of-day", "day", "week"):
            has_such = by in told or row == none  # without reports, what sums there are
            assert narrower_mode([row] * 2, sums, by) == (mode if has_such else "local")
    assert narrower_mode([wide] * 3, sums, "day") == "local"  # they know two days more
    assert narrower_mode([wide, narrow, narrow], sums, min(told)) == "local"
    assert narrower_mode([none], None) == narrower_mode([none], few) == "local"


@pytest.mark.parametrize(("times", "mode"), [(2.4, "local"), (2.5, "sums")])
def test_blocks_of_hours_answer_hours_where_they_are_narrower_by_more_than_root_k(
    store: SqliteStore, times: float, mode: str
) -> None:
    """Six hours of reports as wide as √6 = 2.45 times a block's may be one as wide."""
    fill(store, 40, cells=4)
    sums = found_of(store)
    assert sums.block_hours == 6
    half = ((sums.parts[0].high or 0) - (sums.parts[0].low or 0)) / 2
    assert narrower_mode([figures(2000, times * half)] * 24, sums, "hour-of-day") == mode


def test_it_is_shown_to_people_machines_and_spreadsheets(store: SqliteStore) -> None:
    fill(store, 40, cells=4)
    enrol(store, 50)
    found = found_of(store)
    text = sums_text(found, "W", UTC)
    assert "06:00 to 12:00 UTC" in text
    assert "80%" in text
    assert sums_csv(found).splitlines()[0].startswith("at,mean,low,high,energy_kwh")
    assert len(sums_csv(found).splitlines()) == 1 + 1 + 1 + 4
    assert '"from": "' in answer_json(found)
    gas = replace(STREAM, unit="dm3")
    of_gas = read_sums_answer(store, gas, (None, None), UTC, least=10)
    assert of_gas
    whole, known = of_gas.whole, found.whole  # told in dm³ for each slot, and in m³ of all homes
    assert (whole.mean, whole.energy_kwh, known.volume_m3) == (known.mean, None, None)
    ends = (whole.volume_m3, whole.full_m3_low, whole.full_m3_high)
    kwh = (
        known.energy_kwh,
        known.full_kwh_low,
        known.full_kwh_high,
    )  # of quarter hours of as many W
    assert ends == pytest.approx([4 * (one or 0) for one in kwh])
    lines = [line.split() for line in sums_text(of_gas, "dm3", UTC).splitlines()]
    assert lines[1][:4] == ["mean", "dm3", "95", "%"]
    assert f"{whole.full_m3:,.1f}" in lines[2]
    assert f"{whole.volume_m3}" in sums_csv(of_gas)
