"""The five distributions, built and installed as a stranger would."""

import os
import re
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZipFile

import pytest

from edge_ldp import __version__, cli
from edge_ldp.extras import IN_A_CLONE, pip_install
from tests.processes import run_told

ROOT = Path(__file__).parents[2]
FOLDERS = {
    "edge-ldp": ".",
    "edge-ldp-agent": "agent",
    "edge-ldp-aggregator": "aggregator",
    "edge-ldp-demo": "firmware_stubs",
    "edge-ldp-studies": "studies",
}
PARTS = list(FOLDERS)[1:]
DATA_FOLDERS = {
    "agent": ("meters/modbus/models",),
    "aggregator": ("console/static", "console/templates"),
    "firmware_stubs": ("data",),
    "studies": ("data",),
}
LIBRARY_BYTES = 330_000
OFFLINE = ("--quiet", "--no-index", "--no-deps", "--disable-pip-version-check")


def project(name: str) -> dict[str, object]:
    text = (ROOT / FOLDERS[name] / "pyproject.toml").read_text()
    found: dict[str, object] = tomllib.loads(text)["project"]
    return found


def run(*command: object, check: bool = True) -> subprocess.CompletedProcess[str]:
    alone = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = run_told([str(part) for part in command], env=alone, cwd="/")
    assert not check or done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    built = tmp_path_factory.mktemp("wheels")
    folders = [ROOT / folder for folder in FOLDERS.values()]
    run(
        sys.executable,
        "-m",
        "pip",
        "wheel",
        *OFFLINE,
        "--no-build-isolation",
        "-w",
        built,
        *folders,
    )
    found = {path.name.partition("-")[0].replace("_", "-"): path for path in built.iterdir()}
    assert sorted(found) == sorted(FOLDERS)
    return found


def files_of(wheel: Path) -> set[str]:
    with ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def installed(place: Path, *given: Path, packages: tuple[str, ...] = ()) -> Path:
    """Return the Python of a fresh environment with these wheels, and packages of ours."""
    run(sys.executable, "-m", "venv", "--without-pip", place)
    python = place / "bin" / "python"
    install(python, *given)
    (site,) = place.glob("lib/python*/site-packages")
    for package in packages:
        found = find_spec(package)
        assert found
        assert found.origin
        (site / package).symlink_to(Path(found.origin).parent)
    return python


def install(python: Path, *given: Path) -> None:
    """Install wheels, not compiled: a few modules of hundreds are loaded."""
    run(
        sys.executable, "-m", "pip", "--python", python, "install", "--no-compile", *OFFLINE, *given
    )


def in_the_tree(folder: str) -> set[str]:
    return {str(path.relative_to(ROOT)) for path in (ROOT / folder).rglob("*.py")}


def test_the_library_is_small_and_holds_neither_data_nor_c_nor_a_service(
    wheels: dict[str, Path],
) -> None:
    files = files_of(wheels["edge-ldp"])
    assert wheels["edge-ldp"].stat().st_size <= LIBRARY_BYTES
    assert {name.partition("/")[0] for name in files} == {"edge_ldp"}
    kinds = {"edge_ldp/py.typed", "edge_ldp/mechanisms/tables_v1.json"}
    assert files == in_the_tree("edge_ldp") | kinds


@pytest.mark.parametrize("part", PARTS)
def test_a_part_is_its_folder_and_nothing_else(part: str, wheels: dict[str, Path]) -> None:
    folder = FOLDERS[part]
    data = {
        str(path.relative_to(ROOT))
        for place in DATA_FOLDERS.get(folder, ())
        for path in (ROOT / folder / place).iterdir()
        if path.suffix != ".py" and path.is_file()
    }
    assert files_of(wheels[part]) == in_the_tree(folder) | {f"{folder}/py.typed"} | data


@pytest.mark.parametrize("part", PARTS)
def test_versions_are_in_step_and_each_part_asks_for_the_librarys_own(part: str) -> None:
    found = project(part)
    assert found["version"] == __version__
    extras = found.get("optional-dependencies", {})
    assert isinstance(extras, dict)
    assert isinstance(found["dependencies"], list)
    wanted = [*found["dependencies"], *(each for extra in extras.values() for each in extra)]
    ours = [each for each in wanted if each.startswith("edge-ldp")]
    assert any(each.startswith(("edge-ldp=", "edge-ldp[")) for each in ours)
    assert all(each.endswith(f"=={__version__}") for each in ours)


def test_whoever_cites_it_names_this_version() -> None:
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text()


@pytest.mark.parametrize("part", PARTS)
def test_a_part_carries_the_licence(part: str) -> None:
    assert (ROOT / FOLDERS[part] / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


# what is told to be installed: on pages, in sentences of the product, in scripts
TOLD = re.compile(r"(?:pip install |pip_install\(['\"])([^`\n]+)")
OURS = re.compile(r"(?<![\w./])(\.|\./\w+|edge-ldp[\w-]*)(?:\[([\w,]+)\])?(?![\w/])")
PLACES = (
    *("README.md", "docs/*.md", "config/*", "agent/**/*.py", "aggregator/**/*.py"),
    *(
        "edge_ldp/**/*.py",
        "firmware_stubs/**/*.py",
        "studies/**/*.py",
        "studies/**/*.md",
        "tests/packaging/test_clean_root.py",
    ),
)


def told() -> list[tuple[str, str, str]]:
    """Return (file, folder or distribution, extras) of everything of ours told to be installed."""
    paths = (path for place in PLACES for path in sorted(ROOT.glob(place)) if path.is_file())
    return [
        (str(path.relative_to(ROOT)), *found)
        for path in paths
        for line in TOLD.findall(path.read_text())
        for found in OURS.findall(line)
    ]


def test_what_is_told_to_be_installed_can_be_from_a_clone_and_with_that_extra() -> None:
    known = {f"./{folder}".replace("./.", "."): name for name, folder in FOLDERS.items()}
    lines = told()
    assert {wanted for _, wanted, _ in lines} >= {".", "./agent", "./aggregator", "edge-ldp-demo"}
    for file, wanted, extras in lines:
        name = known.get(wanted, wanted)
        assert name in FOLDERS, (file, wanted)
        there = project(name).get("optional-dependencies", {})
        assert isinstance(there, dict)
        assert set(extras.split(",")) - {""} <= set(there), (file, wanted, extras)


def test_every_dependency_has_a_floor_and_the_same_in_every_part() -> None:
    """What `make test-lowest` installs; the script refuses anything else."""
    lowest = run(sys.executable, ROOT / "tools" / "lowest.py").stdout.split()
    assert "paho-mqtt==2.2" in lowest
    assert len(lowest) == len({line.partition("==")[0] for line in lowest}) >= 14


def test_every_command_is_the_librarys_or_an_entry_point_of_the_part_it_names() -> None:
    served: dict[str, str] = {}
    for part in PARTS:
        groups = project(part)["entry-points"]
        assert isinstance(groups, dict)
        served |= dict.fromkeys(groups[cli.GROUP], part)
    named = {
        name: command.needs.partition("[")[0]
        for name, command in cli.COMMANDS.items()
        if not command.module
    }
    assert served == named
    assert {name.partition("[")[0] for name in IN_A_CLONE} == set(FOLDERS)


# the part with pages here, the others with the slow tests: each is built twice more
@pytest.mark.parametrize(
    "part",
    [
        "edge-ldp-aggregator",
        *(pytest.param(p, marks=pytest.mark.slow) for p in PARTS if p != "edge-ldp-aggregator"),
    ],
)
def test_the_same_wheel_is_built_from_the_source_distribution(
    part: str, wheels: dict[str, Path], tmp_path: Path
) -> None:
    hatch = (sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path))
    subprocess.run(hatch, cwd=ROOT / FOLDERS[part], check=True, capture_output=True, timeout=240)
    (source,) = tmp_path.glob("*.tar.gz")
    again = tmp_path / "again"
    run(sys.executable, "-m", "pip", "wheel", *OFFLINE, "--no-build-isolation", "-w", again, source)
    (wheel,) = again.iterdir()
    assert files_of(wheel) == files_of(wheels[part])


LAW = "from edge_ldp import Hybrid; print(Hybrid(epsilon=1, low=0, high=9).perturb(3) < 1000)"


def test_the_library_alone_works_and_names_what_each_other_command_comes_with(
    wheels: dict[str, Path], tmp_path: Path
) -> None:
    python = installed(tmp_path / "alone", wheels["edge-ldp"])
    assert run(python, "-c", LAW).stdout == "True\n"
    command = python.with_name("edge-ldp")
    shown = run(command, "--help").stdout
    assert run(command, "--version").stdout == f"edge-ldp {__version__}\n"
    assert "all 11 claims hold" in run(command, "certify", "hybrid", "--epsilon", "1").stdout
    for name, (_, needs, module) in cli.COMMANDS.items():
        assert f"  {name} " in shown
        if not module:
            done = run(command, name, "--help", check=False)
            part = needs.partition("[")[0]
            assert done.returncode == cli.EXIT_USAGE
            assert done.stderr.startswith(f"edge-ldp {name} comes with {part}, ")
            assert done.stderr.count("\n") == 1
    done = run(command, "forecast", "--help", check=False)
    assert done.returncode == cli.EXIT_USAGE
    assert done.stderr.endswith(f"{pip_install('edge-ldp[plot]')}\n")


def test_the_agent_needs_no_numpy(wheels: dict[str, Path], tmp_path: Path) -> None:
    given = (wheels["edge-ldp"], wheels["edge-ldp-agent"])
    python = installed(tmp_path / "device", *given, packages=("paho", "serial"))
    assert run(python, "-c", "import numpy", check=False).returncode != 0
    command = python.with_name("edge-ldp")
    assert "edge-ldp agent" in run(command, "agent", "--help").stdout
    assert (
        "epsilon_per_day"
        in run(command, "agent", "check", "-c", ROOT / "config" / "agent.toml").stdout
    )
    done = run(command, "aggregator", "--help", check=False)
    assert "comes with edge-ldp-aggregator" in done.stderr


DATA = """
from studies.evaluate.files import built_in
print(len(built_in("retail").values), len(built_in("homes").values))
"""


def test_homes_for_the_studies_come_with_the_demo_and_are_asked_for_without_it(
    wheels: dict[str, Path], tmp_path: Path
) -> None:
    packages = ("numpy", "scipy")
    given = (wheels["edge-ldp"], wheels["edge-ldp-studies"])
    python = installed(tmp_path / "whole", *given, packages=packages)
    command = python.with_name("edge-ldp")
    assert "worst variance" in run(command, "tune", "--epsilon", "0.9", "--high", "9").stdout
    done = run(python, "-c", DATA, check=False)
    assert "the homes' load series are not installed; give --data DIR" in done.stderr
    install(python, wheels["edge-ldp-demo"])
    assert run(python, "-c", DATA).stdout == "88162 1881600\n"
