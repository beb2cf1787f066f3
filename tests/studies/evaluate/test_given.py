"""The user's own values: every refusal names file, field, reason and remedy, and no reading."""

import csv
import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from studies.evaluate.files import user_values
from studies.evaluate.given import InputError, ValueRange, in_homes, parse_epsilons

RANGE = ValueRange(low=0, ceiling=100, unit="W")


def column(folder: Path, *fields: object, name: str = "power_w") -> str:
    path = folder / "own.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["time", name], *(["t", field] for field in fields)])
    return f"{path}:{name}"


def archive(folder: Path, **arrays: object) -> str:
    made: dict[str, Any] = {name: np.asarray(given) for name, given in arrays.items()}
    np.savez(folder / "own.npz", **made)
    return str(folder / "own.npz")


def test_a_column_of_integers_is_taken_in_its_order(tmp_path: Path) -> None:
    found = user_values(column(tmp_path, 5, " 7 ", "3.0", 100, 0), RANGE)
    assert found.values.tolist() == [5, 7, 3, 100, 0]
    assert (found.name, found.low, found.ceiling, found.unit) == ("power_w", 0, 100, "W")


def test_a_packed_column_with_a_mark_at_the_start_is_read(tmp_path: Path) -> None:
    path = tmp_path / "own.csv.gz"
    path.write_bytes(gzip.compress("\ufeffpower_w\n1\n\n2\n".encode()))
    assert user_values(f"{path}:power_w", RANGE).values.tolist() == [1, 2]


@pytest.mark.parametrize("kind", [np.uint8, np.int16, np.int64, np.float32])
def test_an_array_of_whole_numbers_is_taken(tmp_path: Path, kind: type) -> None:
    file = archive(tmp_path, power=np.array([1, 2, 99], kind), other=[5])
    found = user_values(f"{file}:power", RANGE)
    assert found.values.tolist() == [1, 2, 99]
    assert found.values.dtype == np.int64


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ((), "no values"),
        ((1, 2.5, 3), "1 of 3 values are not whole numbers"),
        ((1, "nan", "", 4), "2 of 4 values are missing or not finite"),
        ((1, "inf"), "1 of 2 values are missing or not finite"),
        ((1, "n/a", 3), "no number in line 3"),
        ((-5, 7, 101, 102), "3 of 4 values outside 0..100 (1 below, 2 above)"),
    ],
)
def test_what_is_no_reading_is_counted_and_refused(
    tmp_path: Path, fields: tuple[object, ...], reason: str
) -> None:
    with pytest.raises(InputError) as caught:
        user_values(column(tmp_path, *fields), RANGE)
    assert caught.value.field == "power_w"
    assert reason in str(caught.value)
    assert "own.csv" in str(caught.value)


def test_no_refusal_shows_a_reading(tmp_path: Path) -> None:
    for fields in ((98765,), (76.5,), ("98765x",)):
        with pytest.raises(InputError) as caught:
            user_values(column(tmp_path, *fields), RANGE)
        assert not any(word in str(caught.value) for word in ("98765", "76.5"))


def test_values_outside_are_clamped_only_if_told(tmp_path: Path) -> None:
    given = column(tmp_path, -5, 7, 101)
    found = user_values(given, ValueRange(0, 100, clamp=True))
    assert found.values.tolist() == [0, 7, 100]
    assert "2 of them clamped" in found.source


@pytest.mark.parametrize(("low", "ceiling"), [(5, 5), (6, 5), (0, 2**60), (-(2**60), 5)])
def test_a_range_that_is_none_is_refused(tmp_path: Path, low: int, ceiling: int) -> None:
    with pytest.raises(InputError, match="low < ceiling"):
        user_values(column(tmp_path, 5), ValueRange(low, ceiling))


def test_files_and_fields_that_are_not_there_are_named(tmp_path: Path) -> None:
    given = column(tmp_path, 1)
    with pytest.raises(InputError, match="no such column; the header has time, power_w"):
        user_values(given.replace(":power_w", ":watts"), RANGE)
    with pytest.raises(InputError, match=r"none\.csv, power_w: no such file"):
        user_values(str(tmp_path / "none.csv:power_w"), RANGE)
    file = archive(tmp_path, power=[1])
    with pytest.raises(InputError, match="no such array; it has power"):
        user_values(f"{file}:watts", RANGE)
    for wrong in ("own.csv", "own.txt:a", ":a", "own.csv:"):
        with pytest.raises(InputError, match=r"FILE\.npz:NAME"):
            user_values(wrong, RANGE)


def test_damaged_files_are_refused_with_a_reason(tmp_path: Path) -> None:
    broken = {
        "own.npz": b"PK\x03\x04 no archive",
        "own.csv": b"power\n\xff\xfe\n",
        "own.csv.gz": b"\x1f\x8b\x08 no stream",
    }
    for name, content in broken.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match="not a readable"):
            user_values(f"{tmp_path / name}:power", RANGE)
    (tmp_path / "own.csv").write_bytes(b"")
    with pytest.raises(InputError, match="no such column; the header has none"):
        user_values(f"{tmp_path / 'own.csv'}:power", RANGE)


def test_arrays_that_are_no_lists_of_numbers_are_refused(tmp_path: Path) -> None:
    for made in ([[1, 2], [3, 4]], [True, False], ["1"], 5):
        file = archive(tmp_path, power=made)
        with pytest.raises(InputError, match="not a list of numbers"):
            user_values(f"{file}:power", RANGE)
    np.savez(tmp_path / "own.npz", power=np.array([object()], object))
    with pytest.raises(InputError, match="not a readable"):
        user_values(f"{tmp_path / 'own.npz'}:power", RANGE)


def test_budgets_are_listed_with_commas() -> None:
    assert parse_epsilons("0.5, 1,2,1") == (0.5, 1.0, 2.0)


@pytest.mark.parametrize("wrong", ["-1", "0", "1,,2", "", "x", "nan", "inf", "11"])
def test_what_is_no_budget_is_refused(wrong: str) -> None:
    with pytest.raises(InputError, match=r"--epsilon.*above 2\*\*-16, at most 10"):
        parse_epsilons(wrong)


def test_values_of_homes_come_in_blocks_of_the_same_length(tmp_path: Path) -> None:
    values = user_values(column(tmp_path, *range(12)), RANGE)
    found = in_homes(values, 3, 2)
    assert (found.homes, found.slots_per_day) == (3, 2)
    assert found.digest() != values.digest()
    assert in_homes(values, 1, 48).digest() != values.digest()
    assert in_homes(values, 1, 24).digest() == values.digest()
    with pytest.raises(InputError, match="--homes, 5: 12 values are not 5 blocks"):
        in_homes(values, 5, 2)
    with pytest.raises(InputError, match="--slots-per-day"):
        in_homes(values, 3, 0)
