"""Every row of docs/faults.md has tests that carry its number, and no test carries another."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROW = re.compile(r"^- ([A-Z]{3}-\d\d): \*\*[^*]+\*\* \S", re.MULTILINE)
ROWS = ROW.findall((ROOT / "docs" / "faults.md").read_text())
TEST = re.compile(r"^ *(?:async )?def (test_\w+)", re.MULTILINE)
NUMBER = re.compile(r"_((?:SER|AGT|SVC|NET|PLN|REP|AGG|PRV)_\d\d)(?=_|$)")


def names_of_tests() -> set[str]:
    """Return the names of all tests, as their files have them; parsing these would take seconds."""
    paths = (*(ROOT / "tests").rglob("test_*.py"), *(ROOT / "tests").rglob("*_contract.py"))
    return {name for path in paths for name in TEST.findall(path.read_text())}


def test_every_row_has_a_test_that_carries_its_number_and_every_number_a_row() -> None:
    carried = {number for name in names_of_tests() for number in NUMBER.findall(name)}
    assert {row.replace("-", "_") for row in ROWS} == carried
    assert len(set(ROWS)) == len(ROWS)


@pytest.mark.parametrize(
    ("group", "count"),
    [
        ("SER", 32),
        ("AGT", 27),
        ("NET", 28),
        ("PLN", 21),
        ("REP", 14),
        ("AGG", 32),
        ("PRV", 21),
        ("SVC", 7),
    ],
)
def test_every_row_of_a_group_is_there(group: str, count: int) -> None:
    assert {f"{group}-{n:02}" for n in range(1, count + 1)} <= set(ROWS)
