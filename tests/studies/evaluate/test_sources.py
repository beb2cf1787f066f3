"""The built-in data sets: those that published figures were made with, and whose they are."""

import gzip
from importlib.metadata import EntryPoints
from pathlib import Path

import numpy as np
import pytest

from studies.evaluate import files
from studies.evaluate.files import built_in
from studies.evaluate.given import InputError
from studies.evaluate.sources import BUNDLED, GIVEN, MADE, money, months

DATA = Path(__file__).parents[3] / "firmware_stubs" / "data"


@pytest.mark.parametrize("name", [*MADE, *BUNDLED])
def test_a_set_that_needs_no_folder_is_there(name: str) -> None:
    found = built_in(name)
    assert (found.name, len(found.source) > 20, bool(found.unit)) == (name, True, True)
    assert len(found.values) >= 77_511
    assert found.digest() == built_in(name).digest()


def test_the_made_sets_have_the_mean_and_variance_of_the_runs_to_compare_with() -> None:
    """Of 100,000 values each; beta is kept to a millionth."""
    beta, spiky = built_in("beta").values, built_in("spiky").values
    assert len(beta) == len(spiky) == 100_000
    assert abs((beta + 0.5).mean() / 2**20 - 0.7144573692330511) < 1e-8
    assert abs(beta.var() / 2**40 - 0.0254374149630742) < 1e-8
    assert abs(spiky.mean() / 2**19 - 0.09521727741241455) < 1e-12
    assert abs(spiky.var() / 2**38 - 0.0075671031400996345) < 1e-12


def test_lengths_have_the_published_quantiles() -> None:
    pos = built_in("pos").values
    assert len(pos) == 515_597
    assert abs(pos.mean() - 7.53) < 0.005
    assert np.quantile(pos, [0.85, 0.95, 0.995, 1]).tolist() == [13, 21, 39, 165]
    assert len(built_in("retail").values) == 88_162


def test_lengths_and_pick_ups_come_in_random_order_fares_and_watts_in_their_own() -> None:
    """Neighbours' correlation: of 77,511 shuffled values a standard error of 0.0036."""
    for name in BUNDLED:
        values = built_in(name).values.astype(np.float64)
        near = np.corrcoef(values[:-1], values[1:])[0, 1]
        assert near > 0.9 if name == "household" else abs(near) < 0.02, name


def test_unknown_names_and_missing_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such data set; known: beta, spiky"):
        built_in("gamma")
    for name in GIVEN:
        with pytest.raises(InputError, match=r"not bundled.*--data DIR"):
            built_in(name)
        with pytest.raises(InputError, match="not a readable CSV"):
            built_in(name, tmp_path)


def test_incomes_are_kept_within_the_papers_range_in_whole_dollars() -> None:
    given = [0, 12.75, 59_999.99, 60_000, -1, float("nan"), 524_287.5, 524_288]
    assert sorted(money("sf-benefits", given).values) == [0, 12, 59_999]
    assert sorted(money("sf-pay", given).values) == [0, 12, 59_999, 60_000, 524_287]
    assert sorted(money("pums", given).values) == [0, 12, 59_999, 60_000, 524_287]


def test_incomes_are_read_from_a_folder(tmp_path: Path) -> None:
    (tmp_path / "papers").mkdir()
    path = tmp_path / "papers" / "pums_california_1000.csv.gz"
    path.write_bytes(gzip.compress(b"age,sex,educ,income\n59,1,9,0.0\n31,0,1,17000.0\n"))
    assert sorted(built_in("pums", tmp_path).values) == [0, 17_000]


def test_home_months_are_of_whole_days_each_a_home_of_its_own() -> None:
    """A day of hours of which one is all 0, or has less than half of its readings, is left out."""
    half_hours = 1800 * np.arange(58 * 48)
    watts = 100 + half_hours // 86_400
    watts[3 * 48 : 3 * 48 + 2] = 0
    kept = np.ones(len(watts), np.bool_)
    kept[5 * 48 : 5 * 48 + 2] = kept[7 * 48] = False
    found = months([(half_hours[kept], watts[kept]), (half_hours[:960], watts[:960])])
    days = [day for day in range(58) if day not in {3, 5}]
    assert found.homes == 2
    assert found.values.tolist() == np.repeat(np.add(days, 100), 24).tolist()


def test_home_months_need_a_folder_of_their_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"not bundled.*--data DIR"):
        built_in("months")
    with pytest.raises(InputError, match="sgsc_homes_30min"):
        built_in("months", tmp_path)


def test_without_the_installed_data_a_folder_of_them_serves_as_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    installed = built_in("homes")
    monkeypatch.setattr(files, "entry_points", no_entry_points)
    assert built_in("homes", DATA).digest() == installed.digest()
    with pytest.raises(InputError, match=r"--data, .*: .* not installed; give --data DIR"):
        built_in("homes")


def test_a_folder_without_the_file_is_refused_with_the_files_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "entry_points", no_entry_points)
    with pytest.raises(InputError, match=r"--data, swiss_homes\.npz: "):
        built_in("homes", tmp_path)


def no_entry_points(*, group: str) -> EntryPoints:
    assert group == files.GROUP
    return EntryPoints()
