"""No trouble buries a fleet: measured messages, and it is over in time: NET-25, NET-26."""

import pytest

from studies.outages.fleet import DAY_S, UNITS_A_DAY, Fleet
from studies.outages.main import played

HOMES = 150


@pytest.mark.parametrize(("days", "share"), [(7, 0.0), (1, 1 / 3)])
def test_after_a_trouble_messages_are_few_and_all_is_counted_in_time_NET_25_NET_26(
    days: int, share: float
) -> None:
    one = played("", HOMES, days * DAY_S, share)
    assert one.all_messages <= 1.2
    assert one.recovered <= 1.5
    assert one.tally.dropped == 0
    if not share:
        assert one.messages < 0.5  # several batches went in one message


def test_without_trouble_every_batch_goes_once() -> None:
    needed = HOMES * UNITS_A_DAY / DAY_S
    fleet = Fleet(HOMES, [(0.0, 10 * needed)], seed=2)
    fleet.run(3 * DAY_S)
    assert fleet.tally.duplicates == 0
    assert fleet.tally.reports <= fleet.tally.made
    assert fleet.tally.made - fleet.tally.settled < HOMES  # within the jitter
