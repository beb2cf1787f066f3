"""The bundled load series, and that the committed script makes them."""

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from firmware_stubs.data import HOMES, HOUSEHOLDS, load_household, load_swiss

ROOT = Path(__file__).parents[2]
SOURCES = ROOT.parent / "shared" / "data" / "load"
BUNDLE = ROOT / "firmware_stubs" / "data"


def test_the_swiss_homes_keep_the_faults_of_real_meters() -> None:
    power_w = load_swiss()
    assert power_w.shape == (HOMES, 7 * 672)
    assert power_w.dtype == np.int32
    assert (power_w.min(), power_w.max()) == (-145_920, 188_200)
    assert int((power_w < 0).sum()) == 15
    assert int((power_w > 32_767).sum()) == 1266
    weeks = power_w.reshape(HOMES, 7, 672)
    assert int((power_w == 0).all(axis=1).sum()) == 4
    assert int((weeks == 0).all(axis=2).sum()) == 32
    assert int(power_w.sum(dtype=np.int64)) == 3_780_597_231


def test_the_household_has_two_winters_in_two_resolutions() -> None:
    winters = [load_household(which) for which in range(HOUSEHOLDS)]
    for which, (power_w, mean_w) in enumerate(zip(winters, (1391, 1500), strict=True)):
        assert power_w.shape == (84 * 96,)
        assert power_w.dtype == np.int32
        assert 200 < power_w.min() < power_w.max() < 9000
        assert round(float(power_w.mean())) == mean_w
        fine_w = load_household(which, 300)
        assert fine_w.shape == (84 * 288,)
        assert abs(fine_w.reshape(-1, 3).mean(axis=1) - power_w).max() < 300  # missing minutes
        assert np.median(abs(fine_w.reshape(-1, 3).mean(axis=1) - power_w)) < 1
    assert not np.array_equal(winters[0], winters[1])
    with pytest.raises(IndexError):
        load_household(2)
    with pytest.raises(IndexError):
        load_household(-1)


def test_the_bundle_is_small_and_says_whose_it_is() -> None:
    files, licences = bundled(BUNDLE)
    assert len(files) == 3
    assert sum(file.stat().st_size for file in files) < 2_700_000
    for file in files:
        assert f"\n## {file.name} — CC BY" in licences
    studied, licences = bundled(ROOT / "studies" / "data")
    assert len(studied) == 3
    assert all(f"\n## {file.name}" in licences for file in studied)
    assert "\n## household.npz — CC BY" in licences


def bundled(folder: Path) -> tuple[list[Path], str]:
    files = sorted([*folder.glob("*.npz"), *folder.glob("*.csv")])
    return files, (folder / "LICENSES.txt").read_text()


def script() -> ModuleType:
    found = importlib.util.spec_from_file_location("prepare", ROOT / "tools" / "prepare_data.py")
    assert found
    assert found.loader
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_an_archive_depends_on_its_arrays_only(tmp_path: Path) -> None:
    arrays = {"power_w": np.arange(1000, dtype=np.int32)}
    for name in ("one.npz", "two.npz"):
        script().save(tmp_path / name, arrays)
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    with np.load(tmp_path / "one.npz", allow_pickle=False) as archive:
        assert np.array_equal(archive["power_w"], arrays["power_w"])


def test_a_source_that_is_not_the_one_we_know_is_refused(tmp_path: Path) -> None:
    (tmp_path / script().SWISS[0]).write_bytes(b"other")
    with pytest.raises(SystemExit, match="not the file"):
        script().swiss_homes(tmp_path)


@pytest.mark.skipif(not SOURCES.is_dir(), reason="the sources are not beside us")
def test_the_script_makes_the_bundle_from_its_sources() -> None:
    prepare = script()
    for file, made in (
        ("swiss_homes.npz", prepare.swiss_homes(SOURCES)),
        ("uci_household.npz", prepare.uci_household(SOURCES)),
    ):
        with np.load(BUNDLE / file, allow_pickle=False) as archive:
            assert sorted(archive.files) == sorted(made)
            for name, array in made.items():
                assert archive[name].dtype == array.dtype
                assert np.array_equal(archive[name], array)
