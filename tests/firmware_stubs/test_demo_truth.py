"""What the demo holds the answers against: sums by slot, by hour of the day, clamped."""

import os

import numpy as np
import pytest

from firmware_stubs.demo.scenario import BASE_WH, CEILING_W, Scenario, registers_wh
from firmware_stubs.demo.search import build_patterns
from firmware_stubs.demo.truth import Interval, find_truth, simulate_plain, true_density

DAY = 96


def test_the_fleet_goes_on_from_the_midnight_after_what_was_counted_and_by_one_clock() -> None:
    played = Scenario(weeks=1, homes=20, seconds=7.0, started_s=1000.0)
    day_s = played.rate
    goes_on = played.anew(7, 3600, played.origin_s + 8.5 * day_s, 2000.0)
    assert (goes_on.homes, goes_on.days, goes_on.rate) == (20, 49, 3600)
    assert goes_on.origin_s == goes_on.now_s(2000.0) == played.origin_s + 9 * day_s
    again = goes_on.once_more(2000.0 + 24 * 49.25)
    assert again.origin_s == goes_on.origin_s + 50 * day_s
    assert again.now_s(5000.0) == goes_on.now_s(5000.0)


def two_days() -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Two homes, two days; home k uses 100·hour + k W, on the second day ten times that."""
    day = np.arange(DAY) // 4 * 100
    return np.array([[*(day + k), *(10 * (day + k))] for k in range(2)], np.int64)


def test_the_truth_is_the_mean_and_total_of_every_hour_of_the_day() -> None:
    whole, hours = find_truth(two_days(), 0, CEILING_W).over(slice(0, None))
    assert [known.mean for known in hours] == [
        pytest.approx(5.5 * (100 * h + 0.5)) for h in range(24)
    ]
    assert [known.total for known in hours] == [pytest.approx(16 * known.mean) for known in hours]
    assert whole.mean == pytest.approx(two_days().mean())
    assert whole.total == two_days().sum()


def test_the_truth_can_be_had_for_the_slots_that_an_answer_is_about() -> None:
    first = DAY + 8  # from 02:00 of the second day on
    whole, hours = find_truth(two_days(), 0, CEILING_W).over(slice(first, 2 * DAY - 4 * 4))
    assert whole.total == two_days()[:, first : 2 * DAY - 16].sum()
    assert hours[5].mean == pytest.approx(10 * 500.5)
    assert np.isnan(hours[0].mean)


def test_readings_outside_the_range_are_clamped_and_counted() -> None:
    values = np.array([[-40, 0, CEILING_W, CEILING_W + 1] * 24], np.int64)
    truth = find_truth(values, 0, CEILING_W)
    assert (truth.clamped, truth.values, truth.homes) == (48, 96, 1)
    assert truth.over(slice(0, None))[0].mean == CEILING_W / 2


def test_the_run_without_truncation_is_unbiased_and_its_interval_is_of_its_noise() -> None:
    """False alarm: 6 standard errors, 2 in a billion for each of 25 figures."""
    values = np.full((200, 2 * DAY), 2_000, np.int64)
    whole, hours = simulate_plain(values, 1, 0, CEILING_W, os.urandom).over(slice(0, None))
    for interval in (whole, *hours):
        assert abs(interval.mean - 2_000) < 6 * interval.half_width / 1.96
    # HM at ε = 1: variance 4.289 on [-1, 1] (docs/methods.md, Optimal tables)
    expected = 1.96 * (4.289 / values.size) ** 0.5 * CEILING_W / 2
    assert whole.half_width == pytest.approx(expected, rel=0.05)
    assert hours[0].half_width == pytest.approx(expected * 24**0.5, rel=0.2)


def test_an_interval_holds_its_ends() -> None:
    interval = Interval(2.0, 1.0, 4.0)
    assert [interval.holds(x) for x in (0.99, 1.0, 4.0, 4.01)] == [False, True, True, False]
    assert interval.half_width == 1.5


def test_the_true_density_counts_every_reading_once() -> None:
    edges = np.array([0.0, 10.0, 20.0])
    values = np.array([[-5, 0, 9, 10, 20, 99]], np.int64)
    assert true_density(values, edges).tolist() == [0.5, 0.5]


def test_a_meter_shows_the_registers_that_are_searched_for() -> None:
    powers = np.array([400, 0, 401, -7, 3])
    shown = registers_wh(1_000_001, powers)
    totals = {1_000_001, 1_000_101, 1_000_201, 1_000_202}  # floor of W·s / 3600 above the base
    assert set(shown) == totals | {half for t in totals for half in (t // 2, t - t // 2)}


def test_planted_registers_look_like_nothing_else_in_any_encoding() -> None:
    """Not like text, not like a frame's pairs (slot offset below 1024, code below 4096)."""
    for base, powers in zip(BASE_WH, Scenario(7, 400, 42.0, 0.0).agent_values(), strict=True):
        patterns = build_patterns([base], registers_wh(base, powers))
        for _, name, words, _ in patterns.words:
            if name.endswith("8"):
                continue  # eight bytes are never met by chance
            for word in words[:: len(words) // 500].tolist():
                top, second = word.to_bytes(4, "big")[:2]
                printable = 0x20 <= top < 0x7F and 0x20 <= second < 0x7F
                assert not printable
                assert top
                assert second > 0x0F
