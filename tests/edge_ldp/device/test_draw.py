"""Uniform integers from words: order of bytes, rejection, and what is left behind."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_ldp.device.draw import WORD_RANGE, Draw, limit_of
from edge_ldp.device.errors import EntropyError, ParameterError
from tests.edge_ldp.laws import Bytes, draw_from, words
from tests.reached import blocks_of, words_in

TOP = WORD_RANGE - 1


@given(st.integers(1, WORD_RANGE))
def test_the_limit_is_the_largest_multiple_of_n(n: int) -> None:
    limit = limit_of(n)
    assert limit % n == 0
    assert WORD_RANGE - n < limit <= WORD_RANGE


@pytest.mark.parametrize("n", [1, 2, 3, 7, 10, 64, 255])
def test_as_many_words_stand_for_each_result(n: int) -> None:
    """Every residue of the words next to 0 and next to the limit comes equally often."""
    limit = limit_of(n)
    accepted = [*range(3 * n), *range(limit - 3 * n, limit)]
    drawn = Counter(draw_from(words(word))[0](n) for word in accepted)
    assert drawn == dict.fromkeys(range(n), 6)


@pytest.mark.parametrize("n", [3, 10, 243_681, 2**48 - 1, 2**63 + 1, 2**64 - 1])
def test_words_at_or_above_the_limit_are_drawn_again(n: int) -> None:
    limit = limit_of(n)
    draw, source = draw_from(words(limit, TOP, limit + (TOP - limit) // 2, limit - 1, 5))
    assert draw(n) == n - 1  # limit - 1 is accepted, and is the last of its run
    assert source.left == words(5)


@pytest.mark.parametrize("n", [1, 2, 65_536, 2**32, 2**64])
def test_a_power_of_two_rejects_nothing(n: int) -> None:
    draw, _ = draw_from(words(TOP))
    assert draw(n) == n - 1


def test_words_are_little_endian() -> None:
    draw, _ = draw_from(bytes([1, 2, 0, 0, 0, 0, 0, 0x80]))
    assert draw(1 << 64) == (0x80 << 56) + 0x201


def test_a_draw_of_one_takes_a_word() -> None:
    draw, source = draw_from(words(9, 4))
    assert draw(1) == 0
    assert source.left == words(4)
    assert draw(10) == 4


@pytest.mark.parametrize("n", [0, -1, WORD_RANGE + 1])
def test_a_range_that_one_word_cannot_serve_is_refused(n: int) -> None:
    draw, _ = draw_from(words(1))
    with pytest.raises(ParameterError):
        draw(n)


@pytest.mark.parametrize("given_bytes", [b"", bytes(7), bytes(127)])
def test_a_source_that_runs_dry_gives_no_number(given_bytes: bytes) -> None:
    draw = Draw(Bytes(given_bytes))
    for _ in range(2):  # and goes on giving none
        with pytest.raises(EntropyError):
            draw(6)


def test_a_source_that_gives_too_much_is_not_trusted() -> None:
    with pytest.raises(EntropyError):
        Draw(lambda size: bytes(size + 8))(6)


def test_an_error_of_the_source_is_not_swallowed_and_draws_go_on_after_it() -> None:
    answers: list[OSError | bytes] = [OSError("no entropy"), bytes(128)]

    def entropy(_size: int) -> bytes:
        answer = answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer

    draw = Draw(entropy, 16)
    with pytest.raises(OSError, match="no entropy"):
        draw(6)
    assert draw(6) == 0


@given(st.lists(st.integers(0, TOP), min_size=32, max_size=32), st.integers(1, 32))
def test_the_size_of_the_blocks_changes_no_number(drawn: list[int], block_words: int) -> None:
    count = 32 // block_words * block_words
    in_blocks = Draw(Bytes(words(*drawn)), block_words)
    one_by_one, _ = draw_from(words(*drawn))
    ranges = [WORD_RANGE, 2, 1 << 20, 1 << 63]  # none of them rejects
    for at in range(count):
        n = ranges[at % 4]
        assert in_blocks(n) == one_by_one(n)


def test_entropy_is_read_in_blocks() -> None:
    source = Bytes(words(*range(40)))
    draw = Draw(source, 16)
    assert [draw(1 << 40) for _ in range(20)] == list(range(20))
    assert source.asked == [128, 128]


def test_a_used_word_is_overwritten() -> None:
    draw = Draw(Bytes(words(*[TOP] * 16)), 16)
    draw(1 << 64)
    draw(1 << 64)
    assert words_in(draw) == [0, 0] + [TOP] * 14


def test_forgetting_overwrites_what_was_buffered_and_reads_anew() -> None:
    source = Bytes(words(*range(1, 33)))
    draw = Draw(source, 16)
    draw(1 << 64)
    (block,) = blocks_of(draw)
    draw.forget()
    assert list(block) == [0] * 16
    assert draw(1 << 64) == 17


def test_a_block_is_read_the_same_on_a_machine_of_the_other_byte_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("edge_ldp.device.draw._LITTLE", False)
    draw = Draw(Bytes(words(5, TOP)), 2)
    assert [draw(1 << 64), draw(1 << 64)] == [5, TOP]


def test_forgetting_before_the_first_draw_does_nothing() -> None:
    draw, _ = draw_from(words(3))
    draw.forget()
    assert draw(1 << 64) == 3
