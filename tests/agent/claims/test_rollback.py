"""What a receipt proves of a state: that another copy of it went on, or nothing."""

import pytest

from agent.claims.rollback import LAST_BATCH, is_rolled_back, numbers_after
from edge_ldp.protocol.messages import Receipt, StreamReceipt

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


def test_numbers_go_on_above_all_that_is_known() -> None:
    heard = receipt((1, 900), (2, 3), (3, 50))
    assert numbers_after(heard, {1: 700, 2: 9, 4: 10_000}, 800, (1, 2, 4)) == {
        1: 901,
        2: 800,
        3: 800,
        4: 10_000,
    }
