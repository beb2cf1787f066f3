"""The built-in data sets: two made by recipe, others from bundled or given arrays.

Sources of the recipes: [SW] §6.1 (Beta(5,2)); the spiky one stands for its incomes, which nobody
may pass on: people report round thousands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from studies.evaluate.study import Values
from studies.evaluate.sums import laws

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

MADE = ("beta", "spiky")
LENGTHS = ("pos", "retail", "webview")  # bundled as histograms
BUNDLED = (*LENGTHS, "pickup", "fares", "household")
GIVEN = ("pums", "sf-pay", "sf-benefits")  # licence unclear: read from --data DIR only
MONTHS = "months"  # of METERED, read from --data DIR
METERED = ("homes", MONTHS)
METERED_DAYS, MONTH_DAYS = 49, 28
NAMES = (*MADE, *BUNDLED, *GIVEN, *METERED, *laws.NAMES)

BETA_STEPS = 1 << 20
INCOME_CEILING = (1 << 19) - 1  # [SW] §6.1 keeps incomes below 2^19
RETIREMENT_CEILING = 59_999  # [SW] §6.1 keeps 0..59,999 dollars
DAY_S = 86_400
_HOURS = 24
FARE_CEILING = 50_000
HOUSE_CEILING = 12_287  # 12 kW and 12 W a bucket of 1024: above the largest of the sort of home
_LENGTHS = {
    "pos": (1638, "items + 1", "items of 515,597 point-of-sale transactions (BMS-POS)"),
    "retail": (16_470, "items", "items of 88,162 supermarket baskets (FIMI retail)"),
    "webview": (1610, "clicks", "clicks of 77,511 web sessions (BMS-WebView-2)"),
}
_SEED = 12_345


def made_values(name: str) -> Values:
    """Return `beta` or `spiky`: always the same 100,000 values."""
    return {"beta": _beta, "spiky": _spiky}[name]()


def lengths(name: str, found: ArrayLike, counts: ArrayLike) -> Values:
    """Return a set of LENGTHS from its histogram, in a fixed random order (as the sources have)."""
    ceiling, unit, about = _LENGTHS[name]
    values = np.repeat(np.asarray(found, np.int64), np.asarray(counts, np.int64))
    np.random.default_rng(_SEED).shuffle(values)
    return Values(name, values, 0, ceiling, unit, f"{about}, in a fixed random order")


def pickup(per_second_of_day: ArrayLike) -> Values:
    """Return taxi pick-up times of day from their counts per second, in a fixed random order."""
    values = np.repeat(np.arange(DAY_S), np.asarray(per_second_of_day, np.int64))
    np.random.default_rng(_SEED).shuffle(values)
    about = "pick-ups of 239,999 New York yellow taxi trips of 2018 and 2019, in random order"
    return Values("pickup", values, 0, DAY_S - 1, "s of the day", about)


def fares(cents: ArrayLike) -> Values:
    """Return taxi fares in the order of pick-up."""
    about = "fares of the same trips by pick-up, without refunds and fares above 500 dollars"
    return Values("fares", np.asarray(cents, np.int64), 0, FARE_CEILING, "cents", about)


def household(power_w: ArrayLike) -> Values:
    """Return minute means of a home's power, in order."""
    about = "minute means of one French home's power, 131,072 from 2007-01-15 (UCI 235)"
    watts = np.asarray(power_w, np.int64)
    return Values("household", watts, 0, HOUSE_CEILING, "W", about, slots_per_day=1440)


def homes(power_w: ArrayLike) -> Values:
    """Return the quarter hours of 400 Swiss homes, as in time; values outside are clamped.

    What is missing stands as the source has it, as 0.
    """
    blocks = np.asarray(power_w).reshape(-1, METERED_DAYS * 96)
    about = f"quarter hours of 400 Swiss homes: {len(blocks)} blocks of {METERED_DAYS} days"
    return _metered("homes", blocks, 96, about)


def months(series: Sequence[tuple[ArrayLike, ArrayLike]]) -> Values:
    """Return home-months: 28 days of hours each, of readings (seconds, W) of some homes.

    A home's whole days one after the other, cut into blocks; each stands for a home of its own, and
    none is drawn twice. Whole is a day of which each hour has half of its readings, not all 0.
    """
    length = MONTH_DAYS * _HOURS
    days = [_whole_days(*(np.asarray(part, np.float64) for part in one)) for one in series]
    blocks = [one[: one.size // length * length].reshape(-1, length) for one in days]
    found = np.concatenate(blocks)
    about = f"{len(found)} months of {MONTH_DAYS} whole days, cut from {len(series)} homes' hours"
    return _metered(MONTHS, found, _HOURS, about)


def money(name: str, dollars: ArrayLike) -> Values:
    """Return a set of GIVEN from amounts (NaN: none), whole dollars within the paper's range.

    In a fixed random order, as one source is sorted.
    """
    ceiling = RETIREMENT_CEILING if name == "sf-benefits" else INCOME_CEILING
    amounts = np.asarray(dollars, np.float64)
    inside = (amounts >= 0) & (amounts < ceiling + 1)
    values = np.floor(amounts[inside]).astype(np.int64)
    np.random.default_rng(_SEED).shuffle(values)
    about = {
        "pums": "incomes of 1,000 persons of the California PUMS",
        "sf-pay": "total pay of San Francisco's employees, 2011 to 2013",
        "sf-benefits": "benefits of San Francisco's employees, 2012 and 2013",
    }[name]
    return Values(name, values, 0, ceiling, "dollars a year", f"{about}, below {ceiling + 1}")


def _metered(name: str, watts: Floats, slots_per_day: int, about: str) -> Values:
    values = np.clip(np.rint(watts), 0, laws.CEILING).astype(np.int64)
    blocks = len(values)
    return Values(name, values.ravel(), 0, laws.CEILING, "W", about, blocks, slots_per_day)


def _whole_days(second: Floats, watts: Floats) -> Floats:
    """Return the means of the hours of whole days, in time."""
    hour = (second // 3600).astype(np.int64)
    hour -= hour.min() // _HOURS * _HOURS
    slots = -(-(int(hour.max()) + 1) // _HOURS) * _HOURS
    read, sums = np.bincount(hour, minlength=slots), np.bincount(hour, watts, slots)
    known = (2 * read >= read.max()) & (sums > 0)
    days = known.reshape(-1, _HOURS).all(axis=1)
    means: Floats = (sums / np.maximum(read, 1)).reshape(-1, _HOURS)[days].ravel()
    return means


def _beta() -> Values:
    drawn = np.random.default_rng(_SEED).beta(5, 2, 100_000)
    values = (drawn * BETA_STEPS).astype(np.int64)
    about = "100,000 values of Beta(5, 2) on a grid of 2^20, NumPy's default_rng(12345)"
    return Values("beta", values, 0, BETA_STEPS - 1, "2^-20", about)


def _spiky() -> Values:
    """Return incomes: lognormal, 60 % rounded to thousands and 15 % to ten thousands."""
    rng = np.random.default_rng(_SEED)
    drawn = rng.lognormal(10.5, 0.8, 300_000)
    kept = drawn[drawn < INCOME_CEILING + 1][:100_000]
    rounding = rng.random(len(kept))
    thousands = np.round(kept / 1000) * 1000
    ten_thousands = np.round(kept / 10_000) * 10_000
    rounded = np.where(rounding < 0.6, thousands, np.where(rounding < 0.75, ten_thousands, kept))
    values = np.minimum(np.floor(rounded), INCOME_CEILING).astype(np.int64)
    about = "100,000 lognormal incomes, most of them rounded, NumPy's default_rng(12345)"
    return Values("spiky", values, 0, INCOME_CEILING, "dollars a year", about)
