"""Reports of sums: unbiased for every sum, intervals of the exact law, bad input refused."""

from fractions import Fraction
from math import exp, log

import numpy as np
import pytest

from edge_ldp import ParameterError
from edge_ldp.period_sums import PeriodLayout, scale_for
from edge_ldp.period_sums.estimate import PeriodReport, estimate_total, folded
from edge_ldp.period_sums.law import (
    FEW,
    Noise,
    cell_variance,
    forecast_total,
    noise_half_width,
    reach,
)

WEEK = PeriodLayout(900, 7)
HOURS = PeriodLayout(900, 28, 24)
BLOCKS = PeriodLayout(900, 28, 24, block=4)
B = 527_074


def report(
    layout: PeriodLayout = WEEK, y: int = 10_000, *, scale: int = B, n: int = 5
) -> PeriodReport:
    cells = layout.cells
    return PeriodReport(layout, 3, 0, 43_470, scale, (n,) * cells, (y,) * cells)


@pytest.mark.parametrize("scale", [1, 3, 20])
@pytest.mark.parametrize("held", [0, 1, 7, 60])
def test_folding_is_unbiased_for_every_sum_and_tells_its_variance(scale: int, held: int) -> None:
    """Every noise as far as a double sees: the law's own weights, no sampling."""
    q = exp(-1 / scale)
    noises = np.arange(-60 * scale - 60, 60 * scale + 61)
    chance = (1 - q) / (1 + q) * q ** np.abs(noises)
    values, spreads = np.transpose([folded([int(held + z)], scale) for z in noises])
    mean = float(chance @ values)
    assert mean == pytest.approx(held, abs=1e-9 * (1 + held))
    assert float(chance @ spreads) == pytest.approx(float(chance @ (values - mean) ** 2), rel=1e-9)
    assert float(chance @ spreads) <= cell_variance(scale)


@pytest.mark.parametrize(("scale", "block"), [(1, 1), (5, 1), (3, 2), (4, 4), (2, 6)])
def test_the_variance_of_a_cell_is_that_of_its_law(scale: int, block: int) -> None:
    q = exp(-1 / scale)
    r = np.arange(200 * scale)
    if block == 1:
        weights, squares = np.where(r, 2, 1) * q**r, r.astype(float) ** 2
    else:
        weights, squares = (2 * r + 1.0) ** block * q**r, r * (r + 1) / 3
    found = float((weights * squares).sum() / weights.sum())
    assert found == pytest.approx(cell_variance(scale, block), rel=2e-3 / scale)


def test_a_lone_homes_interval_is_laplaces_own() -> None:
    assert noise_half_width([Noise(B)]) == pytest.approx(B * log(20), rel=1e-12)


@pytest.mark.parametrize("many", [2, 3, 7])
def test_a_few_equal_noises_have_the_law_of_their_sum(many: int) -> None:
    """The sum of m Laplace numbers as a sum of gammas' differences, added up on a fine grid."""
    step = 0.01
    z = np.arange(-60, 60 + step / 2, step)
    one = np.diff([*np.where(z < 0, np.exp(z) / 2, 1 - np.exp(-z) / 2), 1.0])
    law = np.fft.irfft(np.fft.rfft(np.append(one, np.zeros(len(z) * many)), norm=None) ** many)
    centre = (len(z) // 2) * many + many / 2
    at = (np.arange(len(law)) - centre) * step
    x = noise_half_width([Noise(1000)] * many) / 1000
    assert float(law[np.abs(at) <= x].sum()) == pytest.approx(0.95, abs=2e-3)


@pytest.mark.parametrize("block", [1, 2, 4])
def test_exact_and_normal_widths_meet_where_the_one_ends(block: int) -> None:
    noises = [Noise(1000 + at % 3, block, block) for at in range(FEW)]
    spread = sum(noise.variance for noise in noises) ** 0.5
    assert noise_half_width(noises) == pytest.approx(1.96 * spread, rel=0.006)


def test_the_reach_of_a_cell_is_passed_once_in_two_to_the_40() -> None:
    assert reach() == 28
    assert exp(-28) < 2.0**-40 < exp(-27)
    assert reach(4) == 40


def test_ceilings_and_numbers_of_slots_may_differ_from_home_to_home() -> None:
    homes = [
        [PeriodReport(WEEK, 3, 0, 43_470, B, (600,), (1_000_000,))],
        [PeriodReport(WEEK, 3, 0, 17_250, B // 2, (672,), (500_000,))],
        [],
    ]
    found = estimate_total(homes)
    assert (found.homes, found.slots, found.total) == (2, 1272, 1_500_000)
    assert found.is_exact
    assert found.total_half_width == pytest.approx(noise_half_width([Noise(B), Noise(B // 2)]))
    assert found.sway == 600 * 43_470 + 56 * B
    assert found.low < found.mean < found.high


def test_a_low_below_zero_is_put_back() -> None:
    homes = [[PeriodReport(WEEK, 3, -1000, 5000, 100, (10,), (25_000,))]]
    assert estimate_total(homes).total == 25_000 - 10 * 1000


def test_cells_of_a_block_share_a_noise_and_the_interval_knows_it() -> None:
    whole = estimate_total([[report(BLOCKS)]])
    assert whole.total_half_width == pytest.approx(noise_half_width([Noise(B, 4, 4)] * 6))
    hour = estimate_total([[report(BLOCKS)]], cells=[5])
    assert hour.total_half_width == pytest.approx(noise_half_width([Noise(B, 4, 1)]))


def test_an_empty_cell_brings_neither_slots_nor_noise() -> None:
    part = PeriodReport(PeriodLayout(900, 7, 4), 3, 0, 100, 50, (5, 0, 0, 0), (10, 999, -999, 5))
    found = estimate_total([[part]])
    assert (found.slots, found.total) == (5, 10)
    assert found.total_half_width == pytest.approx(noise_half_width([Noise(50)]))
    with pytest.raises(ParameterError, match="slot"):
        estimate_total([[part]], cells=[1])
    with pytest.raises(ParameterError, match="slot"):
        estimate_total([])


@pytest.mark.parametrize(
    ("y", "is_plausible"), [(-28 * B, True), (-28 * B - 1, False), (5 * 43_470 + 28 * B + 1, False)]
)
def test_a_cell_is_judged_by_where_an_honest_one_lies(y: int, *, is_plausible: bool) -> None:
    assert report(y=y).is_plausible == is_plausible


@pytest.mark.parametrize(
    "wrong",
    [
        {"n": (673,)},
        {"n": (-1,)},
        {"n": ()},
        {"y": (1, 2)},
        {"y": (1.5,)},
        {"y": (float("nan"),)},
        {"y": (1 << 63,)},
        {"span": 0},
        {"scale": 0},
        {"scale": True},
    ],
)
def test_a_report_that_fits_no_layout_is_refused(wrong: dict[str, object]) -> None:
    given = {"period": 3, "low": 0, "span": 9, "scale": 5, "n": (5,), "y": (7,), **wrong}
    with pytest.raises(ParameterError):
        PeriodReport(layout=WEEK, **given)  # type: ignore[arg-type] # what may come from outside


def test_the_forecast_is_the_width_that_comes() -> None:
    rng = np.random.default_rng(5)
    scale = scale_for(HOURS, 97, 43_470, 8)
    held = 300_000
    noise = rng.laplace(0, scale, (400, 24)).round().astype(int)
    homes = [
        [PeriodReport(HOURS, 3, 0, 43_470, scale, (112,) * 24, tuple((held + z).tolist()))]
        for z in noise
    ]
    found = estimate_total(homes, cells=[18])
    told = forecast_total(HOURS, scale, homes=400, periods=1, cells=1, cell_sum=held)
    assert found.total_half_width == pytest.approx(told, rel=0.05)
    assert abs(found.total - 400 * held) < 4 * told


def test_a_fleets_month_is_as_exact_as_the_agreement_says() -> None:
    """Half-widths in % of homes of 2 kW, ε 8 in any 97 slots, ceiling 43,470 W."""
    used = 2000 * 2688
    week, month = (scale_for(one, 97, 43_470, 8) for one in (WEEK, PeriodLayout(900, 28)))
    for homes, weekly, monthly in ((30, 10.0, 4.9), (100, 5.4, 2.7), (400, 2.7, 1.35)):
        by_week = forecast_total(WEEK, week, homes=homes, periods=4) / (homes * used)
        by_month = forecast_total(PeriodLayout(900, 28), month, homes=homes, periods=1) / (
            homes * used
        )
        assert 100 * by_week == pytest.approx(weekly, rel=0.03)
        assert 100 * by_month == pytest.approx(monthly, rel=0.03)


def test_a_shift_of_one_slot_is_within_the_promise_of_the_law_itself() -> None:
    """The law's own weights of two sums that differ by R: no ratio above e^(R/b), one at it."""
    scale, span = 4, 3
    ratios = {Fraction(abs(z) - abs(z - span), scale) for z in range(-40, 41)}
    assert max(ratios) == Fraction(span, scale)
