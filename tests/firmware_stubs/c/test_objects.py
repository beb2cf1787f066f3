"""What the kernel is made of: integers, no heap, no C library, and few bytes."""

import re
import shlex
from pathlib import Path

import pytest

from tests import needs
from tests.firmware_stubs.c.builds import SOURCES, done, make

KERNEL = sorted(SOURCES.glob("eldp*.[ch]"))
STREAM = ["eldp_draw.c", "eldp_wave.c", "eldp_randomizer.c", "eldp_frame.c"]
FROM_LIBGCC = {"__aeabi_uldivmod", "__aeabi_ldivmod"}  # 64-bit division comes with the compiler
CROSS = shlex.split("arm-none-eabi-gcc -std=c99 -mcpu=cortex-m3 -mthumb -Os -ffreestanding -c")


@pytest.fixture(scope="module")
def sizes(build: Path) -> dict[str, int]:
    """Return bytes of code by file name, as `make size` reports them."""
    rows = [line.split() for line in make("size", build).splitlines()[1:]]
    # no data, no zeroed storage; for a program, binutils 2.47 reserves a stack
    assert all(row[1:3] == ["0", "0"] for row in rows if row[5].endswith(".o"))
    return {Path(row[5]).name: int(row[0]) for row in rows}


def undefined(path: Path) -> set[str]:
    """Return the symbols that an object file wants from elsewhere."""
    listed = done(["arm-none-eabi-nm", "-u", str(path)]).stdout
    return {line.split()[-1] for line in listed.splitlines()}


def foreign(names: set[str]) -> set[str]:
    """Return the symbols that are neither the kernel's nor a 64-bit division."""
    return {name for name in names if not name.startswith("eldp_")} - FROM_LIBGCC


def test_the_sources_name_no_float_no_heap_and_three_headers() -> None:
    text = "".join(path.read_text() for path in KERNEL)
    assert set(re.findall(r"#include (\S+)", text)) == {
        '"eldp.h"',
        "<stdbool.h>",
        "<stddef.h>",
        "<stdint.h>",
    }
    code = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    assert not re.search(r"\b(float|double|malloc|calloc|free|memcpy|memset|rand)\b", code)
    assert not re.search(r"\d\.\d|\d[eE][-+]?\d", re.sub(r"0x\w+", "", code))


def test_no_object_wants_floats_a_heap_or_a_library(build: Path, sizes: dict[str, int]) -> None:
    objects = [build / "cortex-m" / name for name in sizes if name.endswith(".o")]
    assert len(objects) == len([path for path in KERNEL if path.suffix == ".c"])
    wanted = {path.name: foreign(undefined(path)) for path in objects}
    assert not any(wanted.values()), wanted


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("float f(float x) { return x * 3; }", "__aeabi_fmul"),
        ("int f(double x) { return x < 3; }", "__aeabi_dcmplt"),
        ("#include <stdint.h>\ndouble f(uint64_t x) { return x; }", "__aeabi_ul2d"),
        ("void *malloc(unsigned); void *f(void) { return malloc(3); }", "malloc"),
        ("double log(double); double f(double x) { return log(x); }", "log"),
        ("struct s { char c[99]; }; void f(struct s *a, struct s *b) { *a = *b; }", "memcpy"),
    ],
)
def test_a_file_that_did_would_be_noticed(tmp_path: Path, line: str, wanted: str) -> None:
    needs.program("arm-none-eabi-gcc")
    source = tmp_path / "wrong.c"
    source.write_text(f"{line}\n")
    done([*CROSS, str(source), "-o", str(tmp_path / "wrong.o")])
    assert wanted in foreign(undefined(tmp_path / "wrong.o"))


def test_a_stream_device_links_alone_and_is_small(sizes: dict[str, int]) -> None:
    """Without start-up code and C library; the division is in these figures, too."""
    assert sizes["stream_kernel.elf"] < 3000
    assert sizes["stream_device.elf"] < 3500
    lines = [line for name in STREAM for line in (SOURCES / name).read_text().splitlines()]
    code = [line for line in lines if line.strip() and not line.lstrip().startswith(("/*", "*"))]
    assert len(code) < 250


def test_a_cpp_compiler_reads_the_header(tmp_path: Path) -> None:
    needs.program("arm-none-eabi-g++")
    source = tmp_path / "header.cpp"
    source.write_text('#include "eldp.h"\n')
    flags = shlex.split("-std=c++11 -Wall -Wextra -Werror -pedantic -fsyntax-only -I")
    done(["arm-none-eabi-g++", *flags, str(SOURCES), str(source)])
