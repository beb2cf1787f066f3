"""docs/privacy.md and docs/security.md: what they name as proof is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = ("privacy.md", "security.md")
SOURCES = "\n".join(
    path.read_text() for path in (ROOT / "tests").rglob("test_*.py") if path != Path(__file__)
)


def text(page: str) -> str:
    return (ROOT / "docs" / page).read_text()


@pytest.mark.parametrize("page", PAGES)
def test_every_test_that_a_page_names_is_there(page: str) -> None:
    names = re.findall(r"`(test_[a-z_]+)`", text(page))
    ids = re.findall(r"`([A-Z]{3}_[0-9]{2})`", text(page))
    paths = re.findall(r"`((?:tests|studies|agent|docs)/[\w/.]+)`", text(page))
    assert all(f"def {name}" in SOURCES for name in names)
    assert all(id_ in SOURCES for id_ in ids)
    assert all((ROOT / path).exists() for path in paths)
    assert names or ids or paths


def test_every_promise_of_the_privacy_page_names_its_test() -> None:
    _, _, after = text("privacy.md").partition("| promise | test |\n| --- | --- |\n")
    rows = after.partition("\n\n")[0].splitlines()
    assert len(rows) > 10
    for row in rows:
        assert re.search(r"`(tests/|test_|[A-Z]{3}_)", row.split("|")[2]), row
