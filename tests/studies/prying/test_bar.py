"""The bar of what is shipped: nothing shows more in it than in reports of the same window."""

import numpy as np
import pytest

from edge_ldp.period_sums.habits import SLACK, leak_of_reports
from firmware_stubs.data import load_swiss
from studies.prying.base_load import error, law_of_reports
from studies.prying.figures import LOADS
from studies.prying.habits import FUSES, HABITS, Plan, Sums, Way, alone

HOMES = np.maximum(load_swiss()[::10].astype(np.int64), 0)  # forty
SHIPPED = Way(2, Sums(1, 1, 6))
FAIR = (Sums(1, 1, 8), Sums(7, 1, 3), Sums(28, 1, 2), Sums(7, 6, 5), Sums(28, 24, 5))
WAYS = [SHIPPED, *(Way(0, one) for one in (*FAIR, Sums(7, 24, 6, 4)))]
LEAST_ERROR = 0.85

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.parametrize("fuse", FUSES)]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_no_habit_shows_more_than_in_reports_PRV_29(fuse: int, way: Way) -> None:
    """Seeded. He knows the home; good to 0.015."""
    plan, reports = Plan(fuse), leak_of_reports(fuse)
    assert reports is not None
    told = [alone(np.clip(HOMES, 0, fuse), habit, plan, way, 24) for habit in HABITS]
    print(fuse, way.name, [f"{one:.3f}" for one in told], reports.found)  # noqa: T201
    pairs = zip(told, reports.found, strict=True)
    assert all(one <= other + SLACK for one, other in pairs), (told, reports)


def test_no_base_load_is_known_better_than_by_reports_PRV_29(fuse: int) -> None:
    """Seeded: a load that never changes, and one that varies and moves."""
    found = {}
    for name in ("never changes", "and moves 20 W a day"):
        load, law = LOADS[name], law_of_reports(fuse, LOADS[name])
        by_reports, *others = (
            error(way, fuse, load, law, homes=60, paths=6000) for way in (Way(8), *WAYS)
        )
        print(fuse, name, round(by_reports), [round(one) for one in others])  # noqa: T201
        found[name] = min(others) / by_reports
    assert min(found.values()) >= LEAST_ERROR, found
