"""A row is its record, and what is settled on the row is what is settled on the record."""

import pytest
from hypothesis import given

from aggregator.counting.accounts import account
from aggregator.counting.record_rows import RecordRows, follow, record_row, row_record
from aggregator.counting.records import Record
from aggregator.counting.seen_batches import (
    DIGEST,
    KEPT_DIGESTS,
    LAST_BATCH,
    ArrivedBatch,
    ClosedSeries,
    DeviceState,
    Gap,
    place,
)
from edge_ldp.errors import RowError
from tests.aggregator.counting.some_records import RECORDS

KEY = ("home", 1)
REPORTS = 5


@given(RECORDS)
def test_a_row_of_columns_is_the_record(record: Record) -> None:
    row = record_row(KEY, record)
    assert row_record(row) == record
    assert RecordRows({KEY: row, ("away", 1): record}) == {KEY: record, ("away", 1): record}


@pytest.mark.parametrize(("column", "value"), [(6, b"x" * 23), (5, b"x"), (8, b"x")])
def test_a_row_with_a_cut_blob_is_refused_and_not_followed(column: int, value: bytes) -> None:
    row = list(record_row(KEY, Record(DeviceState(3, 9, digests=DIGEST.pack(3, bytes(8))))))
    row[column] = value
    with pytest.raises(RowError, match="record"):
        row_record(tuple(row))
    assert follow(tuple(row), REPORTS, 10, 10, 4, b"12345678", 0) is None


def test_the_quick_way_is_the_general_one_where_it_is_gone_REP_05() -> None:
    gone = set()
    for state in (
        DeviceState(),
        DeviceState(4, 2, 1),
        DeviceState(4, 20, 1, (), b"x" * DIGEST.size * KEPT_DIGESTS),
        DeviceState(4, 20, 9, (), b"", 7),
        DeviceState(4, 20, 1, (Gap(2, 2, 5, 9),), b"", 7),
        DeviceState(4, 20, 1, (), b"", 7, (ClosedSeries(6, 3, 0, (), b""),)),
        DeviceState(LAST_BATCH, 20, 1, (), b"", 7),
    ):
        for first_slot in (None, 3, 30):
            old = Record(state, first_slot, *range(1, 10))
            for number in (1, 4, 5, 6, 9, 10, LAST_BATCH + 1):
                for first, last in ((3, 3), (3, 4), (4, 8), (20, 24), (21, 21), (30, 40)):
                    for series in (0, 6, 7):
                        batch = ArrivedBatch(number, first, last, b"12345678", series=series)
                        numbers = (REPORTS, first, last, number, batch.digest, series)
                        found = follow(record_row(KEY, old), *numbers)
                        if found is None:
                            continue
                        moved, placed = place(state, batch)
                        assert placed.outcome == "new"
                        assert (placed.after, placed.before) == (state.last_slot, None)
                        made = account(old, moved, placed.outcome, batch, REPORTS)
                        assert found == record_row(KEY, made)
                        gone.add((state, number, series))
    assert len(gone) == 1 + 1 + 1 + 3
