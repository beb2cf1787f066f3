"""One small fleet and its console for all tests that only look."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.aggregator.console.small_fleet import Fleet, add_plans, add_reports, make_fleet, serving

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    """Give a fleet of two feeders, one of which has too few homes for figures."""
    made = make_fleet(tmp_path_factory.mktemp("fleet"), console="per_minute = 1000000")
    add_reports(made, add_plans(made, 3), {"north": 20, "south": 6}, 3)
    return made


@pytest.fixture(scope="session")
def console(fleet: Fleet) -> Iterator[str]:
    """Give the address of its console."""
    with serving(fleet) as (address, _):
        yield address
