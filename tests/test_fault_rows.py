"""docs/faults.md names, for each fault, tests that exist and carry the fault's number."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROW = re.compile(r"^\| ([A-Z]{2,3}-\d\d) \|.*\| ([^|]*) \|$", re.MULTILINE)
ROWS = dict(ROW.findall((ROOT / "docs" / "faults.md").read_text()))


def functions_of_tests() -> Iterator[str]:
    for path in (*(ROOT / "tests").rglob("test_*.py"), *(ROOT / "tests").rglob("*_contract.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node.name


EXISTING = set(functions_of_tests())


@pytest.mark.parametrize("row", ROWS)
def test_the_tests_of_a_row_exist_and_carry_its_number(row: str) -> None:
    named = re.findall(r"`(test_\w+)`", ROWS[row])
    assert named
    assert set(named) <= EXISTING
    assert any(row.replace("-", "_") in name for name in named)


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
    assert {f"{group}-{n:02}" for n in range(1, count + 1)} <= ROWS.keys()
