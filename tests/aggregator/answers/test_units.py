"""Energies, units and times as people read them."""

import re
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from aggregator.answers.crowds import Reported, supposed
from aggregator.answers.curve_answer import curve_answer, curve_csv, curve_text
from aggregator.answers.load_curve import LoadCurve
from aggregator.answers.local_time import Spans
from aggregator.answers.parts import AnswerPart
from aggregator.answers.sums_answer import SumFigures, SumPeriod, SumsAnswer
from aggregator.answers.units import clock_text, csv_text, energies, energy_kwh, iso, scale_of
from aggregator.config import StreamTable
from tests.aggregator.fakes import make_config

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.fixture
def stream(tmp_path: Path) -> StreamTable:
    return make_config(tmp_path / "a.db").streams[0]


class Told(AnswerPart, frozen=True, kw_only=True):
    """Something told."""

    mean: float
    words: list[str]
    more: int = 7


def test_a_part_takes_what_the_last_of_its_sources_calls_so() -> None:
    first = SimpleNamespace(mean=1.0, words=("a", "b"), other=3)
    found = Told.of(first, SimpleNamespace(mean=2.0))
    assert found == Told(mean=2.0, words=["a", "b"], more=7)
    assert Told.of(first, mean=3.0, words=["c"]) == Told(mean=3.0, words=["c"])
    with pytest.raises(TypeError, match="words"):
        Told.of(SimpleNamespace(mean=1.0))


@pytest.mark.parametrize(
    ("unit", "slot_s", "total", "kwh"),
    [
        ("W", 900, 4000, 1.0),  # four quarter-hours at 1 kW
        ("W", 3600, 1000, 1.0),
        ("W", 60, 60_000, 1.0),
        ("Wh", 900, 1000, 1.0),  # what the slots used, whatever their length
        ("kW", 900, 4, 1.0),
        ("kWh", 900, 1, 1.0),
        ("mA", 900, 1000, None),
        ("W", 900, None, None),
    ],
)
def test_a_total_is_an_energy_where_its_unit_tells_of_one(
    stream: StreamTable, unit: str, slot_s: int, total: float | None, kwh: float | None
) -> None:
    assert energy_kwh(replace(stream, unit=unit, slot_seconds=slot_s), total) == kwh


def test_an_interval_is_one_of_energy_too(stream: StreamTable) -> None:
    found = energies(replace(stream, unit="W", slot_seconds=900), 4000, 2000, 6000)
    assert found == {"energy_kwh": 1.0, "energy_kwh_low": 0.5, "energy_kwh_high": 1.5}


def test_large_figures_are_shown_in_a_larger_unit() -> None:
    assert scale_of("W", 9999) == ("W", 1.0)
    assert scale_of("W", -10_000) == ("kW", 1000.0)
    assert scale_of("kWh", 999_999) == ("kWh", 1.0)
    assert scale_of("kWh", 1e6) == ("MWh", 1000.0)
    assert scale_of("mA", 1e9) == ("mA", 1.0)


def test_times_are_those_of_the_zone_summer_and_winter() -> None:
    winter, summer = 1_700_000_000, 1_720_000_000
    assert (iso(winter), iso(None)) == ("2023-11-14T22:13:20+00:00", None)
    assert iso(winter, BERLIN) == "2023-11-14T23:13:20+01:00"
    assert iso(summer, BERLIN) == "2024-07-03T11:46:40+02:00"
    assert (clock_text(winter, BERLIN), clock_text(None)) == ("2023-11-14 23:13", "-")


def test_csv_has_a_head_and_leaves_empty_what_there_is_not() -> None:
    assert csv_text(("a", "b"), [{"a": 1, "b": None}, {"a": "x,y"}]) == 'a,b\n1,\n"x,y",\n'


def curve_of(mean: float, half: float, spans: int = 5, devices: int = 50) -> LoadCurve:
    every = np.full(spans, mean)
    there = np.full(spans, devices * 4)
    cells = [Reported((devices * 2, 0), 4, supposed(devices))] * spans
    columns = (there // 2, every, every - half, every + half, there)
    return LoadCurve(np.arange(spans) * 4, *columns, cells)


def test_a_curve_of_few_homes_says_that_it_is_mostly_noise(stream: StreamTable) -> None:
    """With four times as many reports an interval is half as wide."""
    view = curve_answer(stream, curve_of(500.0, 1000.0), zone=BERLIN)
    noise = view.noise
    assert noise is not None
    assert (noise.half_width, noise.mean, noise.devices, noise.times) == (1000, 500, 50, 64)
    text = curve_text(view, BERLIN)
    assert text.index("mostly noise") < text.index("95 % from")  # a table may be long
    assert "mostly noise: the mean of an hour is uncertain by ± 1,000 W, the mean over all" in text
    assert "about 3,200 devices in place of 50 would bring that to ± 25%" in text
    assert "`query --by hour-of-day` over about 64 days" in text
    days = curve_answer(stream, curve_of(500.0, 1000.0), by="day")
    assert "--by hour-of-day" not in curve_text(days)
    for fine in (curve_of(500.0, 250.0), curve_of(500.0, 1000.0, spans=0)):
        assert curve_answer(stream, fine).noise is None
        assert "noise" not in curve_text(curve_answer(stream, fine))


def test_a_curve_by_days_is_of_sums_where_their_days_are_narrower(
    stream: StreamTable,
) -> None:
    day = SumPeriod(from_s=0, to_s=86_400, from_=None, to=None, mean=500.0, low=400.0, high=600.0)
    whole = SumFigures(mean=500.0, low=400.0, high=600.0)
    sums = SumsAnswer(whole=whole, periods=[day], parts=[], warnings=[])
    modes = {
        (by, half, spans): curve_answer(
            stream, curve_of(500.0, half, spans=spans), by=by, sums=sums
        )
        for by in ("hour", "day", "week")
        for half in (50.0, 150.0)
        for spans in (2, 3)  # of which one may not be over
    }
    assert [one for one, found in modes.items() if found.mode == "sums"] == [("day", 150.0, 2)]
    beside = curve_text(curve_answer(stream, curve_of(500.0, 150.0), sums=sums))
    assert "beside, by homes' own sums: mean 500.0 W, 95 % from 400.0 to 600.0" in beside


def test_a_curve_without_a_crowd_tells_nothing_of_its_noise(stream: StreamTable) -> None:
    view = curve_answer(stream, curve_of(500.0, 1000.0, devices=9), 10)
    assert view.noise is None
    assert {row.energy_kwh for row in view.spans[1]} == {None}
    assert "500" not in curve_csv(view)


def test_a_curve_is_told_in_energy_and_local_time(stream: StreamTable) -> None:
    view = curve_answer(stream, curve_of(1000.0, 100.0, spans=1), zone=BERLIN)
    (row,) = view.spans[1]
    assert (row.energy_kwh, row.energy_kwh_low, row.energy_kwh_high) == (50, 45, 55)
    assert (row.from_, view.zone) == ("1970-01-01T01:00:00+01:00", "Europe/Berlin")
    _, _, head, line = curve_text(view, BERLIN).splitlines()
    assert re.split(r"  +", head) == [
        *("hour", "mean W", "95 % from", "to"),
        *("energy kWh", "95 % from", "to", "stream reports"),
    ]
    assert re.split(r"  +", line) == [
        *("1970-01-01 01:00", "1,000.0", "900.0", "1,100.0"),
        *("50.0", "45.0", "55.0", "100"),
    ]
    few = curve_text(curve_answer(stream, curve_of(1000.0, 100.0, devices=9), 10))
    assert few.splitlines()[-1].endswith("withheld: too few reporters")
    assert curve_csv(view).splitlines()[1].startswith("1970-01-01T01:00:00+01:00,0,1000.0,900.0,")


@pytest.mark.parametrize(
    ("reporters", "beside", "shown"),
    [(10, 0, True), (9, 0, False), (10, 1, False), (10, 9, False), (10, 10, True)],
)
def test_spans_of_few_devices_or_that_leave_few_out_are_withheld_PRV_21(
    stream: StreamTable, reporters: int, beside: int, *, shown: bool
) -> None:
    """With all devices, a group tells of the others."""
    one, mean = np.array([40]), np.array([500.0])
    cell = Reported((40, 0), 40, supposed(reporters), supposed(beside))
    curve = LoadCurve(np.array([0]), one, mean, mean - 9, mean + 9, one, [cell])
    of = Spans(stream, "hour", UTC)
    assert curve.withheld(10, of) == [not shown]
    assert curve.withheld(1, of) == [False]


def test_a_day_less_all_hours_that_are_shown_is_of_a_crowd_AGG_30(stream: StreamTable) -> None:
    """Of 24 hours one is of a single home: the hour of the fewest others goes with it."""
    cells = [Reported((40, 0), 4, supposed(40))] * 48
    cells[5] = Reported((1, 0), 4, supposed(1))
    cells[7] = Reported((12, 0), 4, supposed(12))
    every = np.full(48, 500.0)
    buckets = np.arange(48)
    curve = LoadCurve(buckets, buckets + 9, every, every - 9, every + 9, buckets + 160, cells)
    hour = replace(stream, bucket_slots=4)
    hidden = curve.withheld(10, Spans(hour, "hour", UTC))
    assert [at for at, one in enumerate(hidden) if one] == [5, 7]
    assert [row.withheld for row in curve_answer(hour, curve, 10).spans[1]] == hidden
