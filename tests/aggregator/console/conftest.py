"""One small fleet and its console for all tests that only look."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from httpx._config import DEFAULT_TIMEOUT_CONFIG

from tests.aggregator.console.small_fleet import (
    Fleet,
    add_looks,
    add_plans,
    add_reports,
    make_fleet,
    serving,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session", autouse=True)
def _patience() -> None:
    """Give a console more than httpx's 5 s for an answer: other tests are at work, too."""
    for wait in ("connect", "read", "write", "pool"):
        setattr(DEFAULT_TIMEOUT_CONFIG, wait, 60.0)


@pytest.fixture(scope="session")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    """Give a fleet of two feeders, one of which has too few homes for figures."""
    made = make_fleet(tmp_path_factory.mktemp("fleet"))
    add_reports(made, add_plans(made, 3), {"north": 20, "south": 6}, 3)
    add_looks(made, (900.0, 700.0, 650.0, 600.0))
    return made


@pytest.fixture(scope="session")
def console(fleet: Fleet) -> Iterator[str]:
    """Give the address of its console."""
    with serving(fleet) as (address, _):
        yield address
