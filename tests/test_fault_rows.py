"""Every row of docs/faults.md has tests that carry its number, and no test carries another."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROW = re.compile(r"^- ([A-Z]{3}-\d\d): \*\*[^*]+\*\* \S", re.MULTILINE)
ROWS = ROW.findall((ROOT / "docs" / "faults.md").read_text())
NUMBER = re.compile(r"_((?:SER|AGT|SVC|NET|PLN|REP|AGG|PRV)_\d\d)(?=_|$)")


def names_of_tests() -> Iterator[str]:
    for path in (*(ROOT / "tests").rglob("test_*.py"), *(ROOT / "tests").rglob("*_contract.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) if name.startswith("test_"):
                    yield name


EXISTING = set(names_of_tests())
CARRIED = {number for name in EXISTING for number in NUMBER.findall(name)}


def test_every_row_has_a_test_that_carries_its_number_and_every_number_a_row() -> None:
    assert {row.replace("-", "_") for row in ROWS} == CARRIED
    assert len(set(ROWS)) == len(ROWS)


@pytest.mark.parametrize(
    ("group", "count"),
    [
        ("SER", 27),
        ("AGT", 27),
        ("NET", 23),
        ("PLN", 17),
        ("REP", 14),
        ("AGG", 29),
        ("PRV", 21),
        ("SVC", 7),
    ],
)
def test_every_row_of_a_group_is_there(group: str, count: int) -> None:
    assert {f"{group}-{n:02}" for n in range(1, count + 1)} <= set(ROWS)
