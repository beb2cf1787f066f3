"""docs/results.md: the figures of the C kernel are measured again, and its example run."""

import re
from pathlib import Path

import pytest

from edge_ldp.device import frame
from edge_ldp.device.channel import wave
from edge_ldp.device.draw import Draw
from edge_ldp.device.randomizer import LATTICE, randomizer
from tests import needs
from tests.edge_ldp.laws import Bytes
from tests.firmware_stubs.c.builds import SOURCES, Runner, Script, done, make
from tests.firmware_stubs.c.laws import random_words
from tests.firmware_stubs.c.vectors import joined

PAGE = Path(__file__).parents[3] / "docs" / "results.md"
READINGS = [-5, 0, 1, 20, 40, 41, 42, 10**12]
DEEPEST = ["eldp_report", "eldp_perturb", "eldp_lattice", "eldp_draw"]


def number_in_page(pattern: str) -> int:
    (found,) = re.findall(pattern, PAGE.read_text())
    return int(found)


def test_the_example_sends_the_frame_that_python_sends(run: Runner) -> None:
    branches = (wave(256, 78, 178_145, 65_536), wave(2, 0, 178_145, 65_536))
    hybrid = randomizer(0, 41, LATTICE, (25_786, 65_536), branches)
    given = random_words("example", 8 * 3)
    draw = Draw(Bytes(given), block_words=1)
    codes = [hybrid.perturb(reading, draw) for reading in READINGS]
    made = frame.encode(1, 70, 1, list(range(900, 908)), codes, 5)
    script = Script()
    script.entropy(given)
    script.add(f"device 5 70 900 {joined(READINGS)}", made.hex())
    script.entropy(given[:-1])
    script.add(f"device 5 70 900 {joined(READINGS)}", "entropy")
    script.entropy(given)
    script.add(f"device 5 70 {(1 << 32) - 4} {joined(READINGS)}", "slots")
    assert run.differences(script) == []


def test_the_code_sizes_of_the_page_are_those_measured(build: Path) -> None:
    """Within a tenth: another compiler makes other code."""
    rows = re.findall(r"^\| `(\w+\.(?:c|elf))` \| (\d+) \|", PAGE.read_text(), flags=re.MULTILINE)
    said = {name.replace(".c", ".o"): int(size) for name, size in rows}
    lines = [line.split() for line in make("size", build).splitlines()[1:]]
    found = {Path(line[5]).name: int(line[0]) for line in lines}
    assert set(said) == set(found)
    assert said == pytest.approx(found, rel=0.1)
    stream = [found[f"eldp_{name}.o"] for name in ("draw", "wave", "randomizer", "frame")]
    libgcc = found["stream_kernel.elf"] - sum(stream)
    assert number_in_page(r"division, (\d+) bytes") == pytest.approx(libgcc, rel=0.1)


def test_the_depth_of_the_stack_is_that_measured(build: Path) -> None:
    make("size", build)
    usage = "".join(path.read_text() for path in (build / "cortex-m").glob("*.su"))
    assert "dynamic" not in usage
    frames = dict(re.findall(r":(\w+)\t(\d+)\tstatic", usage))
    deepest = sum(int(frames[name]) for name in DEEPEST)
    assert number_in_page(r"takes (\d+) bytes of stack") == pytest.approx(deepest, rel=0.1)


def test_the_storage_of_the_page_is_that_measured(tmp_path: Path) -> None:
    needs.program("arm-none-eabi-gcc")
    source = tmp_path / "storage.c"
    kinds = ("channel", "randomizer")
    lines = [f"char {kind}[sizeof(eldp_{kind})];" for kind in kinds]
    source.write_text('#include "eldp.h"\n' + "\n".join(lines) + "\n")
    made = tmp_path / "storage.o"
    flags = ["-mcpu=cortex-m3", "-mthumb", "-ffreestanding", "-I", str(SOURCES), "-c"]
    done(["arm-none-eabi-gcc", *flags, str(source), "-o", str(made)])
    rows = [
        line.split() for line in done(["arm-none-eabi-nm", "-S", str(made)]).stdout.splitlines()
    ]
    sizes = {row[3]: int(row[1], 16) for row in rows}
    assert number_in_page(r"(\d+) bytes a channel") == sizes["channel"]
    assert number_in_page(r"channel, (\d+) a randomizer") == sizes["randomizer"]


def test_the_lines_of_the_stream_device_are_counted() -> None:
    names = ["eldp_draw.c", "eldp_wave.c", "eldp_randomizer.c", "eldp_frame.c"]
    lines = [line for name in names for line in (SOURCES / name).read_text().splitlines()]
    code = [line for line in lines if not re.match(r"\s*(/?\*|$)", line)]
    assert number_in_page(r"first four are (\d+) lines") == len(code)


def test_every_file_of_the_kernel_is_in_the_table() -> None:
    named = set(re.findall(r"^\| `(eldp_\w+\.c)`", PAGE.read_text(), flags=re.MULTILINE))
    assert named == {path.name for path in SOURCES.glob("eldp_*.c")}
