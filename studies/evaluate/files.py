"""Data sets from files: bundled ones, those of edge-ldp-demo and `--data DIR`, the user's own.

Load series of homes come with another distribution, which says by an entry point of the group
`edge_ldp.data` which package holds them; without one `--data` names their folder.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from importlib import resources
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile, ZipFile

import numpy as np

from studies.evaluate import sources
from studies.evaluate.given import InputError, checked_values, numbers
from studies.evaluate.sums import laws

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from importlib.resources.abc import Traversable
    from typing import TextIO

    from numpy.typing import ArrayLike, NDArray

    from studies.evaluate.given import ValueRange
    from studies.evaluate.study import Values

GROUP = "edge_ldp.data"
_LENGTHS = "lengths.csv"
_LOADS = {  # W in a unit; the start where times are not given is 0
    "sgsc_homes_30min.npz": ("energy_wh", 2.0),
    "fontana_17homes_60min.npz": ("load_wh", 1.0),
    "uci_household_1min_2006_2009.npz": ("active_w", 1.0),
    "ukdale_house2_1min.npz": ("aggregate_dw", 0.1),
    "refit_house2_1min.npz": ("aggregate_dw", 0.1),
    "ideal_house65_1min.npz": ("aggregate_dw", 0.1),
}
_MONEY = {
    "pums": (("pums_california_1000",), "income"),
    "sf-pay": (tuple(f"sf_compensation_{year}" for year in (2011, 2012, 2013)), "total_pay"),
    "sf-benefits": (tuple(f"sf_compensation_{year}" for year in (2012, 2013)), "benefits"),
}
_SERIES: dict[str, tuple[str, str, Callable[[ArrayLike], Values]]] = {
    "pickup": ("taxi", "pickups_per_second_of_day", sources.pickup),
    "fares": ("taxi", "fare_cents", sources.fares),
    "household": ("household", "power_w", sources.household),
}
_DAMAGED = (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error)


def built_in(name: str, folder: Path | None = None) -> Values:  # noqa: PLR0911 (a case a line)
    """Return a data set of `sources.NAMES`; what is not installed is read from `folder`.

    Raises InputError for another name, no folder, or a file that is missing or damaged.
    """
    if name in sources.MADE:
        return sources.made_values(name)
    if name in sources.LENGTHS:
        return _lengths(name, folder)
    if name in _SERIES:
        file, array, make = _SERIES[name]
        return make(_bundled(f"{file}.npz", array, folder))
    if name in laws.NAMES:
        return laws.made_fleet(name)
    if name == "homes":
        return sources.homes(_bundled("swiss_homes.npz", "power_w", folder))
    if name not in (*sources.GIVEN, *sources.METERED):
        raise InputError("--sets", name, "no such data set", f"known: {', '.join(sources.NAMES)}")
    if folder is None:
        remedy = "give --data DIR with its files, named in studies/data/LICENSES.txt"
        raise InputError("--sets", name, "not bundled, as its licence is unclear", remedy)
    if name == sources.MONTHS:
        return sources.months(list(_series(folder / "load")))
    files, column = _MONEY[name]
    parts = [_column(folder / "papers" / f"{file}.csv.gz", column) for file in files]
    return sources.money(name, np.concatenate(parts))


def user_values(given: str, limits: ValueRange) -> Values:
    """Return the values of `FILE.npz:NAME` or `FILE.csv:COLUMN` (also .csv.gz).

    Raises InputError: see `given.checked`, and for files and fields that cannot be read.
    """
    file, colon, field = given.rpartition(":")
    if not colon or not field or not file.endswith((".npz", ".csv", ".csv.gz")):
        remedy = "give FILE.npz:NAME or FILE.csv:COLUMN"
        raise InputError("--values", "its value", "not a file and a field", remedy)
    path = Path(file)
    if not path.is_file():
        raise InputError(file, field, "no such file", "check the path")
    found = _array(path, field) if path.suffix == ".npz" else _column(path, field)
    return checked_values(found, file, field, limits)


def _lengths(name: str, folder: Path | None) -> Values:
    with _file(_LENGTHS, folder).open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["set"] == name]
    found, counts = ([int(row[key]) for row in rows] for key in ("length", "count"))
    return sources.lengths(name, found, counts)


def _series(folder: Path) -> Iterator[tuple[ArrayLike, ArrayLike]]:
    """Yield the times and powers of the homes of _LOADS; a negative power is a missing one."""
    for file, (array, scale) in _LOADS.items():
        watts = scale * _array(folder / file, array)
        if file.startswith("sgsc"):
            home, at = (_array(folder / file, key) for key in ("customer", "epoch_s_local"))
            for one in np.unique(home):
                yield at[home == one], watts[home == one]
        elif file.startswith("fontana"):
            hours = 3600 * np.arange(watts.shape[1])
            for one in watts:
                yield hours, one
        elif file.startswith("uci"):
            start = int(_array(folder / file, "start_epoch_s_local"))
            at = start + 60 * np.arange(len(watts))
            yield at[watts >= 0], watts[watts >= 0]
        else:
            yield _array(folder / file, "epoch_s"), watts


def _bundled(file: str, name: str, folder: Path | None) -> NDArray[Any]:
    with (
        _file(file, folder).open("rb") as stream,
        np.load(stream, allow_pickle=False) as archive,
    ):
        return np.asarray(archive[name])


def _file(name: str, folder: Path | None) -> Traversable:
    """Return a bundled file where it is installed, else in `folder`; raises InputError."""
    bundled = resources.files("studies").joinpath("data", name)
    if bundled.is_file():
        return bundled
    for entry in entry_points(group=GROUP):
        return resources.files(entry.module).joinpath(name)
    if folder is None or not (path := folder / name).is_file():
        remedy = (
            "give --data DIR with it (firmware_stubs/data of a clone), or install edge-ldp-demo"
        )
        raise InputError("--data", name, "the homes' load series are not installed", remedy)
    return path


def _array(path: Path, name: str) -> NDArray[Any]:
    remedy = "write it with numpy.savez_compressed, without Python objects"
    try:
        with path.open("rb") as stream, ZipFile(stream) as archive:
            names = [entry.removesuffix(".npy") for entry in archive.namelist()]
            if name not in names:
                known = ", ".join(names) or "none"
                raise InputError(str(path), name, "no such array", f"it has {known}")
            with archive.open(f"{name}.npy") as entry:
                return np.asarray(np.lib.format.read_array(entry, allow_pickle=False))
    except (*_DAMAGED, ValueError, KeyError, BadZipFile) as exc:
        if isinstance(exc, InputError):
            raise
        raise InputError(str(path), name, "not a readable .npz", remedy) from exc


def _column(path: Path, name: str) -> NDArray[np.float64]:
    try:
        with _text(path) as file:
            return numbers(csv.reader(file), str(path), name)
    except _DAMAGED as exc:
        remedy = "give a UTF-8 CSV file with a header"
        raise InputError(str(path), name, "not a readable CSV file", remedy) from exc


def _text(path: Path) -> TextIO:
    """Return the file, unpacked where its name ends with .gz, as text."""
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")
