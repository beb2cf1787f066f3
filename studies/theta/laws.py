"""The distributions that θ is measured on, as histograms over the integers 0..B."""

from __future__ import annotations

import csv
import gzip
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

REAL = ("pos", "retail", "webview", "taxi", "uci", "swiss")
HOMES = ("ukdale", "refit", "ideal", "sgsc", "fontana", "reactive", "heater")
OTHER = (*HOMES, "duration", "distance", "tips", "sf", "pums", "hours", "age", "gains")
SETS = {"real": REAL, "other": OTHER}


def named(words: str) -> list[str]:
    """Return the laws of words with commas between: SETS and single laws."""
    return [law for word in words.split(",") if word for law in SETS.get(word, (word,))]


def known(folder: Path) -> dict[str, Floats]:
    """Return all laws, of a folder of data."""
    return real(folder) | other(folder)


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
