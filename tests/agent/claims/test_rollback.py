"""What a receipt proves of a state: that another copy of it went on, or nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.claims.batches import BatchSeries
from agent.claims.rollback import (
    ReportingLife,
    Told,
    as_kept,
    denied,
    made_more,
    news_of_copies,
    told_by,
)
from edge_ldp.protocol.messages import Receipt, StreamReceipt, StreamStatus

LIFE = ReportingLife(begun=500, until=560, now=600)
OLD, OWN, OTHER = 0, 77, 88  # series: of frames v1, the present one, one that is not ours
SERIES = [
    BatchSeries(1, 0, OLD, 900, 699),
    BatchSeries(1, 699, OWN, 900, 710),
    BatchSeries(2, 0, 78, 900, 0),
]


def receipt(
    stream: int, highest: int, *gaps: tuple[int, int], series: int = OWN, last: int = -1
) -> Receipt:
    return Receipt((StreamReceipt(stream, highest, gaps, series, last),))


@pytest.mark.parametrize(
    ("heard", "is_news"),
    [(receipt(1, 0), False), (receipt(1, 11), False), (receipt(1, 12), True),
     (receipt(1, 2**32 - 1), True), (receipt(1, 699, series=OLD), False),
     (receipt(1, 700, series=OLD), True), (receipt(2, 0, series=78), False),
     (receipt(2, 1, series=78), True), (receipt(1, 2**32 - 1, series=OTHER), False),
     (receipt(9, 2**32 - 1, series=OLD), False)],
)  # fmt: skip
def test_a_batch_of_our_own_series_that_was_never_made_shows_a_copy_AGT_25_NET_24(
    heard: Receipt, *, is_news: bool
) -> None:
    """Of 699 batches v1 and 11 of the present series, at whatever number one is told."""
    assert bool(news_of_copies(heard, SERIES, (), LIFE)) == is_news


@pytest.mark.parametrize(
    ("last", "life", "is_news"),
    [(-1, LIFE, False), (499, LIFE, False), (560, LIFE, False), (561, LIFE, True),
     (600, LIFE, True), (601, LIFE, False), (2**32 - 1, LIFE, False),
     (510, ReportingLife(500, 9, 600), True), (499, ReportingLife(500, 9, 600), False)],
)  # fmt: skip
def test_slots_of_a_foreign_series_show_a_copy_if_they_are_of_this_states_time_AGT_25_NET_24(
    last: int, life: ReportingLife, *, is_news: bool
) -> None:
    """An earlier state that was lost has one too; no slot above the present one is believed."""
    heard = receipt(1, 9, series=OTHER, last=last)
    assert bool(news_of_copies(heard, SERIES, (), life)) == is_news
    own = receipt(1, 9, series=OWN, last=last)
    assert news_of_copies(own, SERIES, (), life) == []


def test_what_was_told_before_is_no_news_and_blinds_for_no_other_series_AGT_25_NET_24() -> None:
    told = [Told(1, OLD, 2**32 - 1, is_settled=True), Told(1, OWN, 50)]
    assert news_of_copies(receipt(1, 50), SERIES, told, LIFE) == []
    assert news_of_copies(receipt(1, 51), SERIES, told, LIFE) == [Told(1, OWN, 51)]
    assert news_of_copies(receipt(2, 1, series=78), SERIES, told, LIFE) == [Told(2, 78, 1)]


@pytest.mark.parametrize(
    ("heard", "untrue"),
    [(receipt(1, 50), False), (receipt(1, 12), False), (receipt(1, 11), True),
     (Receipt(()), True)],
)  # fmt: skip
def test_a_receipt_of_no_more_than_was_made_denies_NET_24(heard: Receipt, *, untrue: bool) -> None:
    told = [Told(1, OWN, 50), Told(1, OLD, 900, is_settled=True)]
    assert denied(heard, told, SERIES) == told[: int(untrue)]
    assert denied(heard, [Told(1, OTHER, 3)], SERIES) == [Told(1, OTHER, 3)]


def test_a_receipt_is_read_in_this_states_own_numbers() -> None:
    heard = Receipt(
        (
            StreamReceipt(1, 5, ((2, 3),), OWN, 560),
            StreamReceipt(1, 699, ((698, 698),), OLD),
            StreamReceipt(2, 9, (), OTHER),
            StreamReceipt(9, 9, (), OWN),
        ),
        "0" * 16,
    )
    ours = as_kept(heard, SERIES)
    covered = [number for number in range(690, 720) if ours.covers(1, number)]
    assert covered == [*range(690, 698), 699, 700, 703, 704]
    assert not any(ours.covers(stream, number) for stream in (2, 9) for number in range(12))
    assert ours.lacks(1, 701)
    assert ours.store == heard.store


@given(
    st.lists(st.builds(StreamReceipt, st.integers(1, 3), st.integers(0, 2**32 - 1),
                       series=st.sampled_from([OLD, OWN, 78, OTHER])), max_size=9)
)  # fmt: skip
def test_whatever_is_told_only_what_was_made_is_covered_NET_24(told: list[StreamReceipt]) -> None:
    ours = as_kept(Receipt(tuple(told)), SERIES)
    assert {one.stream for one in ours.streams} <= {1, 2}
    assert all(one.highest <= (710 if one.stream == 1 else 0) for one in ours.streams)


def said(stream: int = 1, *, since: int = 100, following: int = 12, made: int = 9) -> StreamStatus:
    return StreamStatus(stream, 1, following, following, made, 0, series=OWN, since=since)


@pytest.mark.parametrize(
    ("told", "is_copy"),
    [(said(), False), (said(made=8), False), (said(made=10), True),
     (said(since=99, made=10), False), (said(2, made=10), False)],
)  # fmt: skip
def test_more_reports_than_this_account_has_show_a_copy_AGT_25(
    told: StreamStatus, *, is_copy: bool
) -> None:
    """An account is told by its first slot: a state that was lost counts anew, and is no copy."""
    assert made_more([told], [said()]) == [Told(1, OWN, 11)] * is_copy


def test_batches_that_the_device_told_of_count_like_received_ones_AGT_25() -> None:
    assert news_of_copies(told_by([said()]), SERIES, (), LIFE) == []
    (news,) = news_of_copies(told_by([said(following=13)]), SERIES, (), LIFE)
    assert news == Told(1, OWN, 12)
