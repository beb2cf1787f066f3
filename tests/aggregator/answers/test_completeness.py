"""What of a device's reports is missing: gaps between what came and what it says of its batches."""

import pytest

from aggregator.answers.fleet.completeness import (
    DeviceAccount,
    account_answer,
    account_text,
    is_incomplete,
)
from aggregator.counting.accounts import account, with_status
from aggregator.counting.records import Record
from aggregator.counting.seen_batches import ArrivedBatch, place
from edge_ldp.protocol.messages import StreamStatus

SLOT = 1_795_696_319  # of the first report, and the number of the first batch


def came(record: Record, *numbers: int) -> Record:
    """Return the record after these batches, each of one report in the slot of its number."""
    for number in numbers:
        batch = ArrivedBatch(number, number, number, bytes(8))
        state, placed = place(record.state, batch)
        record = account(record, state, placed.outcome, batch, 1)
    return record


def told(record: Record, following: int, created: int) -> Record:
    """Return the record after the device's status, by which it gave nothing up."""
    return with_status(record, StreamStatus(1, SLOT, following, SLOT, created, 0))


def test_what_a_device_gave_up_unconfirmed_is_told_alike_on_both_sides_AGG_38() -> None:
    """113 reports whose receipts were late: given up at home, all counted here, none lost."""
    home = StreamStatus(1, SLOT, SLOT + 113, SLOT + 113, 113, 113)
    record = with_status(came(Record(), *range(SLOT, SLOT + 113)), home)
    view = account_answer("homes", [DeviceAccount("h1", "", "power", record, 0)], [])
    (row,) = view.devices
    found = [row.created, row.counted, row.expired, row.unconfirmed]
    assert found == [113, 113, 0, 113]
    (row,) = account_answer(
        "homes", [DeviceAccount("h1", "", "power", record, 0)], [], least=2
    ).devices
    assert (row.unconfirmed, row.expired, is_incomplete(row)) == (113, None, True)


@pytest.mark.parametrize(
    ("record", "missing"),
    [
        (came(Record(), SLOT), []),
        (came(Record(), SLOT, SLOT + 3, SLOT + 2), [[SLOT + 1, SLOT + 1]]),
        (told(came(Record(), SLOT + 2), SLOT + 3, 3), [[SLOT, SLOT + 1]]),
        (came(told(Record(), SLOT, 0), SLOT, SLOT + 2), [[SLOT + 1, SLOT + 1]]),
        (Record(), []),
    ],
)
def test_what_lies_below_the_first_batch_is_not_missing(
    record: Record, missing: list[list[int]]
) -> None:
    """Also before the device's first status, when nobody knows which its first batch is."""
    view = account_answer("homes", [DeviceAccount("h1", "", "power", record, 0)], [])
    (row,) = view.devices
    assert row.gaps == missing
    batches = sum(last - first + 1 for first, last in missing)
    assert row.missing_batches == view.totals.missing_batches == batches
    assert account_text(view).splitlines()[1].split()[-1] == str(batches)
