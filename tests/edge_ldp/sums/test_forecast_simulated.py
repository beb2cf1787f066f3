"""What was forecast is what is printed: within 15 %, on laws that nothing was fitted to."""

from collections.abc import Callable
from statistics import mean

import pytest

from edge_ldp.protocol.ledger import scheduled
from edge_ldp.sums import EVERY_SLOT, SHIPPED, Fleet, forecast
from tests.edge_ldp.sums.fleets import Homes, french, heaters, pareto, simulated, swiss

# runs: more where a run's strata move together, by what the spread between them was taken for
RUNS = {"whole": 60, "week": 120, "day": 60, "hour-of-day": 60}
FLEETS = {
    "8 of ε 1 in 97 slots": (400, 1, SHIPPED),
    "2 of ε 4 in 97 slots": (400, 4, scheduled(2, 97, 1, 900)),
    "8 of ε 1 in 97 slots, 30 homes": (30, 1, SHIPPED),
    "every slot, 40,000 homes": (40_000, 1, EVERY_SLOT),
}


def compared(homes: Homes, fleet: str, horizon: str) -> tuple[float, float]:
    """Return the half-width forecast and the mean one printed."""
    count, epsilon, window = FLEETS[fleet]
    found = forecast(Fleet(count, homes.days, epsilon, window), homes.law)
    (row,) = (row for row in found.rows if row.horizon == horizon)
    halves = [
        (stratum.high - stratum.low) / 2
        for means in simulated(homes, found, horizon, RUNS[horizon])
        for stratum in means.strata
        if stratum is not None
    ]
    return row.half, mean(halves)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("make", [swiss, french, pareto, heaters])
@pytest.mark.parametrize("horizon", RUNS)
@pytest.mark.parametrize("fleet", FLEETS)
def test_the_forecast_is_within_15_percent_of_the_simulation(
    make: Callable[[], Homes], horizon: str, fleet: str
) -> None:
    expected, printed = compared(make(), fleet, horizon)
    assert expected == pytest.approx(printed, rel=0.15)
