"""Data sets from files: the bundled ones, those of `--data DIR`, and the user's own."""

from __future__ import annotations

import csv
import gzip
import zlib
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile, ZipFile

import numpy as np

from aggregator.evaluate import sources
from aggregator.evaluate.errors import InputError
from aggregator.evaluate.given import checked, numbers

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

    from numpy.typing import ArrayLike, NDArray

    from aggregator.evaluate.given import Range
    from aggregator.evaluate.study import Values

_BUNDLE = resources.files("aggregator.evaluate").joinpath("data")
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


def built_in(name: str, folder: Path | None = None) -> Values:
    """Return a data set of `sources.NAMES`; those of GIVEN are read from `folder`.

    Raises InputError for another name, no folder, or a file that is missing or damaged.
    """
    if name in sources.MADE:
        return sources.made(name)
    if name in sources.LENGTHS:
        return _lengths(name)
    if name in _SERIES:
        file, array, make = _SERIES[name]
        return make(_bundled(file, array))
    if name not in sources.GIVEN:
        raise InputError("--sets", name, "no such data set", f"known: {', '.join(sources.NAMES)}")
    if folder is None:
        remedy = "give --data DIR with its files (aggregator/evaluate/data/README.md)"
        raise InputError("--sets", name, "not bundled, as its licence is unclear", remedy)
    files, column = _MONEY[name]
    parts = [_column(folder / "papers" / f"{file}.csv.gz", column) for file in files]
    return sources.money(name, np.concatenate(parts))


def user_values(given: str, limits: Range) -> Values:
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
    return checked(found, file, field, limits)


def _lengths(name: str) -> Values:
    with _BUNDLE.joinpath("lengths.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["set"] == name]
    found, counts = ([int(row[key]) for row in rows] for key in ("length", "count"))
    return sources.lengths(name, found, counts)


def _bundled(file: str, name: str) -> NDArray[Any]:
    with (
        _BUNDLE.joinpath(f"{file}.npz").open("rb") as stream,
        np.load(stream, allow_pickle=False) as archive,
    ):
        return np.asarray(archive[name])


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
