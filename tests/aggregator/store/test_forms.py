"""Rows survive the trip, take the bytes they should, and damaged ones are never numbers."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.counting.records import Record
from aggregator.counting.seen_batches import DIGEST, DeviceState
from aggregator.counting.tally import MOST
from aggregator.store.forms import (
    PairSum,
    pack_pairs,
    repack_pairs,
    unpack_pairs,
)
from aggregator.store.packed_records import pack_record, sum_records, unpack_record
from edge_ldp.errors import RowError
from tests.aggregator.counting.some_records import RECORDS

HISTOGRAMS = st.dictionaries(st.integers(0, 65_535), st.integers(1, (1 << 63) - 1), max_size=50)


@given(RECORDS)
def test_a_packed_record_is_the_record(record: Record) -> None:
    assert unpack_record(pack_record(record)) == record


def test_a_usual_record_takes_110_bytes_of_which_64_are_digests() -> None:
    digests = b"".join(DIGEST.pack(batch, bytes(8)) for batch in range(60_000, 60_008))
    state = DeviceState(60_007, 1_900_000, 1, (), digests)
    record = Record(state, 1_600_000, 300_000, 7, 500, 0, 300_100, 0, 1, 60_008, 0)
    assert len(pack_record(record)) <= 110
    assert len(pack_record(record._replace(state=DeviceState()))) < 40


COUNTS = st.integers(0, 1 << 50) | st.integers((1 << 61) - 9, 1 << 61)
ALIKE = st.builds(
    Record,
    st.integers(5, 6).map(
        lambda last: DeviceState(last_slot=last, digests=DIGEST.pack(3, bytes(8)))
    ),
    st.none() | st.integers(0, 1),
    *[COUNTS] * 9,
)


@given(st.lists(ALIKE, max_size=20))
def test_packed_records_added_up_are_the_sums_of_single_ones(records: list[Record]) -> None:
    names = ("counted", "rejected", "given_up", "pending", "duplicates", "conflicts")
    sums: dict[tuple[int | None, int], list[int]] = {}
    for record in records:
        row = sums.setdefault((record.first_slot, record.state.last_slot), [0] * 7)
        for at, value in enumerate((1, *(getattr(record, name) for name in names))):
            row[at] += value
    found = list(sum_records(b"".join(map(pack_record, records)), len(records)))
    assert {(first, last): row for first, last, row in found} == sums
    assert len(found) == len(sums)


@pytest.mark.parametrize("damage", [b"", b"\xc0", b"\xcf" + b"\xff" * 8])
def test_damaged_records_are_not_added_up(damage: bytes) -> None:
    blob = pack_record(Record(DeviceState(3, 9)))
    for blobs, records in ((blob[:-1] + damage, 1), (blob + damage, 2), (blob + blob, 1)):
        with pytest.raises(RowError, match="record"):
            list(sum_records(blobs, records))


@pytest.mark.parametrize("cut", [0, 1, 20, -1])
def test_a_damaged_record_is_refused(cut: int) -> None:
    blob = pack_record(Record(DeviceState(3, 9, digests=DIGEST.pack(3, b"12345678"))))
    with pytest.raises(RowError, match="record"):
        unpack_record(blob[:cut])


@given(HISTOGRAMS)
def test_a_packed_histogram_is_the_histogram(found: dict[int, int]) -> None:
    codes = np.array(sorted(found), np.int64)
    counts = np.array([found[code] for code in sorted(found)], np.int64)
    for back in (
        unpack_pairs(pack_pairs(codes, counts)),
        unpack_pairs(repack_pairs(codes.astype("<u2").tobytes() + counts.astype("<u8").tobytes())),
    ):
        assert back[0].tolist() == codes.tolist()
        assert back[1].tolist() == counts.tolist()


@pytest.mark.parametrize(
    ("largest", "size"), [(255, 1001), (256, 2001), (1 << 16, 4001), (1 << 32, 8001)]
)
def test_a_histogram_with_every_code_takes_as_many_bytes_as_its_counts(
    largest: int, size: int
) -> None:
    codes, counts = np.arange(1000), np.full(1000, largest)
    assert len(pack_pairs(codes, counts)) == size


@pytest.mark.parametrize(
    "blob",
    [
        *(b"", b"\x04\x00", b"\x20", b"\x00\x01", b"\x00\x01\x00\x00", b"\x11\x01"),
        *(b"\x00\x02\x00\x01\x00\x01\x01", b"\x03\x01\x00" + b"\xff" * 8),
    ],
)
def test_a_damaged_histogram_is_refused(blob: bytes) -> None:
    with pytest.raises(RowError):
        unpack_pairs(blob)


@given(st.lists(HISTOGRAMS, max_size=5), st.sampled_from([1, 2, 300]))
def test_histograms_of_any_forms_add_up_and_none_wraps_AGG_23(
    found: list[dict[int, int]], times: int
) -> None:
    summed, expected = PairSum(), Counter[int]()
    for histogram in found:
        codes = np.array(sorted(histogram), np.int64)
        counts = np.array([histogram[int(code)] for code in codes], np.int64)
        for _ in range(times):
            summed.add(pack_pairs(codes, counts))
        expected.update({code: count * times for code, count in histogram.items()})
    codes, counts = summed.pairs()
    saturated = {code: min(count, MOST) for code, count in expected.items()}
    assert dict(zip(codes.tolist(), counts.tolist(), strict=True)) == saturated
    assert (np.diff(codes) > 0).all()


@pytest.mark.parametrize("bits", [8, 16, 32, 53])
@pytest.mark.parametrize("times", [63, 64, 65, 1000])
def test_the_largest_counts_of_each_width_add_up(bits: int, times: int) -> None:
    codes, counts = np.arange(3), np.full(3, (1 << bits) - 1)
    summed = PairSum()
    for _ in range(times):
        summed.add(pack_pairs(codes, counts))
    assert summed.pairs()[1].tolist() == [times * ((1 << bits) - 1)] * 3


@pytest.mark.parametrize("times", [1, 2, 256])
@pytest.mark.parametrize("blob", [b"", b"\x14\x00", b"\x11\x01", b"\x00\x01"])
def test_a_damaged_histogram_is_not_added(blob: bytes, times: int) -> None:
    summed = PairSum()
    with pytest.raises(RowError):  # noqa: PT012 (by which of the two, the number decides)
        for _ in range(times):
            summed.add(blob)
        summed.pairs()


def test_a_histogram_of_the_first_form_that_is_cut_is_refused() -> None:
    with pytest.raises(RowError):
        repack_pairs(b"123")
