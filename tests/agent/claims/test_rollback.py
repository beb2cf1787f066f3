"""What a receipt proves of a state: that another copy of it went on, or nothing."""

import pytest

from agent.claims.rollback import (
    LAST_BATCH,
    is_rolled_back,
    made_more,
    numbers_after,
    told_by,
)
from edge_ldp.protocol.messages import Receipt, StreamReceipt, StreamStatus

BEGUN = 500  # the first slot that may have reported


def receipt(*highest: tuple[int, int]) -> Receipt:
    return Receipt(tuple(StreamReceipt(stream, number) for stream, number in highest))


@pytest.mark.parametrize(
    ("highest", "is_copy"),
    [((1, 0), False), ((1, 699), False), ((1, 700), True), ((1, 10**6), True),
     ((2, 499), False), ((2, 500), True), ((1, LAST_BATCH), False)],
)  # fmt: skip
def test_a_batch_that_was_never_made_shows_a_copy_AGT_25(
    highest: tuple[int, int], *, is_copy: bool
) -> None:
    """Stream 1 makes batch 700 next; stream 2 made none, and nothing reported before slot 500."""
    assert is_rolled_back(receipt(highest), {1: 700}, BEGUN) == is_copy


def test_one_stream_of_several_is_enough() -> None:
    assert is_rolled_back(receipt((1, 3), (2, 9)), {1: 700, 2: 9}, BEGUN)
    assert not is_rolled_back(receipt((1, 3), (2, 8)), {1: 700, 2: 9}, BEGUN)
    assert not is_rolled_back(receipt(), {1: 700}, BEGUN)


def said(stream: int = 1, *, first: int = 100, following: int = 700, made: int = 9) -> StreamStatus:
    return StreamStatus(stream, first, following, following, made, 0)


@pytest.mark.parametrize(
    ("told", "is_copy"),
    [(said(), False), (said(made=8), False), (said(made=10), True),
     (said(first=99, made=10), False), (said(2, made=10), False)],
)  # fmt: skip
def test_more_reports_than_this_life_made_show_a_copy_AGT_25(
    told: StreamStatus, *, is_copy: bool
) -> None:
    """A life is told by its first batch: a state that was lost counts anew, and is no copy."""
    assert made_more([told], [said()]) == is_copy


def test_batches_that_the_device_told_of_count_like_received_ones_AGT_25() -> None:
    assert not is_rolled_back(told_by([said()]), {1: 700}, BEGUN)
    assert is_rolled_back(told_by([said(following=701)]), {1: 700}, BEGUN)


def test_numbers_go_on_above_all_that_is_known() -> None:
    heard = receipt((1, 900), (2, 3), (3, 50))
    assert numbers_after(heard, {1: 700, 2: 9, 4: 10_000}, 800, (1, 2, 4)) == {
        1: 901,
        2: 800,
        3: 800,
        4: 10_000,
    }
