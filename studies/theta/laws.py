"""The distributions that θ is measured on, as histograms over the integers 0..B."""

from __future__ import annotations

import csv
import gzip
from typing import TYPE_CHECKING

import numpy as np
import scipy

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

REAL = ("pos", "retail", "webview", "taxi", "uci", "swiss")
MADE = ("lognormal", "weibull", "pareto", "two", "spiky", "narrow")
HELD = ("gauss", "gumbel", "lomax", "burr", "invgauss", "three")
HOMES = ("ukdale", "refit", "ideal", "sgsc", "fontana", "reactive", "heater")
OTHER = (*HOMES, "duration", "distance", "tips", "sf", "pums", "hours", "age", "gains")
SETS = {"real": REAL, "made": MADE, "held": HELD, "other": OTHER}


def named(words: str) -> list[str]:
    """Return the laws of words with commas between: SETS and single laws."""
    return [law for word in words.split(",") if word for law in SETS.get(word, (word,))]


def known(folder: Path | None) -> dict[str, Floats]:
    """Return all laws; without a folder of data only those made up."""
    return (real(folder) | other(folder) if folder else {}) | made()


def real(folder: Path) -> dict[str, Floats]:
    """Return the histograms over 0..B of the bundled data sets."""
    taxi = np.load(folder / "papers/nyc_yellow_taxi_2018_2019.npz")["fare_cents"]
    watts = np.load(folder / "load/uci_household_1min_2006_2009.npz")["active_w"]
    homes = np.load(folder / "load/swiss_homes_15min.npz")["energy_milliwh"].astype(np.int64)
    return {
        "pos": _counted(np.load(folder / "papers/bms_pos_lengths.npz")["length"], 1657),
        "retail": _counted(np.load(folder / "papers/retail_be_lengths.npz")["length"], 16_470),
        "webview": _counted(np.load(folder / "papers/bms_webview2_lengths.npz")["length"], 1610),
        "taxi": _counted(taxi[(taxi > 0) & (taxi <= 50_000)], 50_000),  # no refunds, no $429,490
        "uci": _counted(watts[watts >= 0], 20_000),
        "swiss": _counted((homes.ravel() * 4 + 500) // 1000, 43_470),  # mWh a quarter hour to W
    }


def other(folder: Path) -> dict[str, Floats]:
    """Return the histograms of OTHER: real sets, of which two (atoms far out) led to `heap`."""
    home = np.load(folder / "load/uci_household_1min_2006_2009.npz")
    trips = np.load(folder / "papers/nyc_yellow_taxi_2018_2019.npz")
    sgsc = np.load(folder / "load/sgsc_homes_30min.npz")["energy_wh"]
    fontana = np.load(folder / "load/fontana_17homes_60min.npz")["load_wh"]
    sf = [_column(folder, f"sf_compensation_{year}", "total_pay") for year in (2011, 2012, 2013)]
    pums = _column(folder, "pums_california_1000", "income")
    hours, age, gains = (
        _column(folder, "adult_numeric", name) for name in ("hours_per_week", "age", "capital_gain")
    )
    return {
        "ukdale": _counted(_watts(folder, "ukdale_house2_1min"), 20_000),
        "refit": _counted(_watts(folder, "refit_house2_1min"), 20_000),
        "ideal": _counted(_watts(folder, "ideal_house65_1min"), 20_000),
        "sgsc": _counted(sgsc, 10_000),  # Wh in half an hour
        "fontana": _counted(fontana.ravel(), 20_000),  # Wh in an hour
        "reactive": _known(home["reactive_var"], 10_000),
        "heater": _known(home["sub3_wh"], 333),  # Wh in a minute
        "duration": _known(trips["duration_s"], 86_400),
        "distance": _known(trips["distance_centimiles"], 10_000),
        "tips": _known(trips["tip_cents"], 50_000),
        "sf": _known(np.concatenate(sf) / 10, 100_000),  # tens of dollars
        "pums": _known(pums / 10, 100_000),
        "hours": _counted(hours, 168),
        "age": _counted(age, 130),
        "gains": _counted(gains, 100_000),
    }


def made() -> dict[str, Floats]:
    """Return histograms of laws made up to be unlike each other: MADE, then HELD.

    HELD were not looked at while hypotheses were added; `narrow` was.
    """
    gauss, gamma = scipy.stats.norm(200, 60).sf, scipy.stats.gamma(9, scale=150).sf
    spiky = 0.1 * _cut(scipy.stats.expon(scale=400).sf, 6000)
    for value, mass in ((0, 30), (50, 30), (230, 20), (1000, 15), (2000, 4.9), (3200, 0.1)):
        spiky[value] += 0.9 * mass / 100
    return {
        "lognormal": _cut(scipy.stats.lognorm(0.8, scale=300).sf, 20_000),
        "weibull": _cut(scipy.stats.weibull_min(1.5, scale=120).sf, 4000),
        "pareto": _cut(lambda at: (1 + np.maximum(at, 0) / 100) ** -3.0, 30_000),
        "two": 0.9 * _cut(gauss, 10_000) + 0.1 * _cut(gamma, 10_000),
        "spiky": spiky,
        "narrow": _cut(scipy.stats.norm(900, 40).sf, 4000),
        "gauss": _cut(scipy.stats.norm(3000, 300).sf, 10_000),
        "gumbel": _cut(scipy.stats.gumbel_r(2500, 250).sf, 20_000),
        "lomax": _cut(lambda at: (1 + np.maximum(at, 0) / 60) ** -2.5, 20_000),
        "burr": _cut(lambda at: (1 + (np.maximum(at, 0) / 200) ** 1.5) ** -2.5, 20_000),
        "invgauss": _cut(scipy.stats.invgauss(1.5, scale=200).sf, 15_000),
        "three": 0.6 * _cut(scipy.stats.norm(100, 30).sf, 8000)
        + 0.35 * _cut(scipy.stats.norm(900, 150).sf, 8000)
        + 0.05 * _cut(scipy.stats.norm(2500, 400).sf, 8000),
    }


def _watts(folder: Path, name: str) -> NDArray[np.int64]:
    """Return a home's minutes; a 0 there is a gap of its logger."""
    tenths = np.load(folder / f"load/{name}.npz")["aggregate_dw"].astype(np.int64)
    watts: NDArray[np.int64] = (tenths[tenths > 0] + 5) // 10
    return watts


def _column(folder: Path, name: str, column: str) -> Floats:
    with gzip.open(folder / f"papers/{name}.csv.gz", "rt") as file:
        return np.array([float(row[column]) for row in csv.DictReader(file) if row[column]])


def _known(values: ArrayLike, ceiling: int) -> Floats:
    """Count the values that are not negative: those are refunds, faults and gaps."""
    found = np.asarray(values)
    return _counted(found[found >= 0], ceiling)


def _counted(values: ArrayLike, ceiling: int) -> Floats:
    clamped = np.clip(np.asarray(values).astype(np.int64), 0, ceiling)
    counts = np.bincount(clamped, minlength=ceiling + 1).astype(np.float64)
    return np.asarray(counts / counts.sum())


def _cut(survival: Callable[[Floats], Floats], ceiling: int) -> Floats:
    above = np.array(survival(np.arange(ceiling + 2, dtype=np.float64) - 0.5), np.float64)
    above[0], above[-1] = 1, 0
    return np.asarray(-np.diff(above))
