"""Noise comes from the operating system, is watched, and no two processes share it (PRV_06, 07)."""

import json
import os
import random
import secrets
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_ldp import Hybrid
from edge_ldp.device.draw import WORD_BYTES, WORD_RANGE
from edge_ldp.device.errors import EntropyError, ParameterError
from edge_ldp.entropy import (
    FALSE_ALARM_A_BLOCK,
    Checked,
    ReportDraw,
    StuckEntropyError,
    system_draw,
)
from edge_ldp.oracles import Hrr
from edge_ldp.vectorized import perturb_many, perturb_oracle_many
from tests.edge_ldp.laws import words
from tests.reached import reached, words_in

Source = Callable[[int], bytes]
BLOCK = 128
READ = BLOCK + 32  # with two guard words at either end
FORK = """
import json, os, sys
from edge_ldp.device.draw import Draw
from edge_ldp.entropy import ReportDraw, system_draw

kind = sys.argv[1]
draw = {"naive": Draw(os.urandom), "system": system_draw(), "report": None}[kind]
draw = draw or (lambda n: ReportDraw().below(n))
draw(1 << 64)  # fills the buffer
read, write = os.pipe()
child = os.fork()
words = [draw(1 << 64) for _ in range(40)]
if not child:
    os.write(write, json.dumps(words).encode())
    os._exit(0)
os.waitpid(child, 0)
print(json.dumps([words, json.loads(os.read(read, 1 << 16))]))
"""


def shared_words(kind: str) -> set[int]:
    """Return the words that a parent and its forked child both used."""
    done = subprocess.run(
        [sys.executable, "-c", FORK, kind], capture_output=True, check=True, timeout=240
    )
    parent, child = json.loads(done.stdout)
    assert len(parent) == len(child) == 40
    return set(parent) & set(child)


def constant(byte: int) -> Source:
    return lambda size: bytes([byte]) * size


def replayed(*blocks: bytes) -> Source:
    left = list(blocks)
    return lambda _size: left.pop(0)


def numbered(first: int, size: int = READ) -> bytes:
    """Return a read's bytes in which no two words are equal."""
    return words(*range(first, first + size // WORD_BYTES))


def drained(draw: Callable[[int], int]) -> tuple[list[int], EntropyError]:
    """Return the words drawn until the source fails, and its error."""
    used: list[int] = []
    while True:
        try:
            used.append(draw(1 << 64))
        except EntropyError as exc:
            return used, exc


# Fork, threads, generators


@pytest.mark.parametrize("kind", ["system", "report"])
def test_parent_and_forked_child_share_no_word_PRV_06(kind: str) -> None:
    assert shared_words(kind) == set()


def test_the_fork_test_finds_a_buffer_that_is_kept() -> None:
    assert len(shared_words("naive")) >= 15


def test_each_draw_has_words_of_its_own() -> None:
    one, other = system_draw(), system_draw()
    assert {one(1 << 64) for _ in range(40)}.isdisjoint(other(1 << 64) for _ in range(40))


def test_threads_that_draw_at_once_share_no_word() -> None:
    found: list[int] = []

    def work() -> None:
        for _ in range(125):
            draw = ReportDraw().below
            found.extend(draw(1 << 64) for _ in range(4))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == len(found) == 4000


def test_no_seeded_generator_is_touched_PRV_07(monkeypatch: pytest.MonkeyPatch) -> None:
    """PRV_07: every generator of the standard library and of NumPy is a trap."""

    def trap(*_args: object, **_options: object) -> NoReturn:
        pytest.fail("a generator was used")

    for name in ("random", "randrange", "randint", "getrandbits", "randbytes", "seed", "Random"):
        monkeypatch.setattr(random, name, trap)
    for name in ("random", "rand", "randint", "bytes", "seed", "default_rng", "RandomState"):
        monkeypatch.setattr(np.random, name, trap)
    monkeypatch.setattr(secrets, "randbelow", trap)
    read: list[int] = []
    genuine = os.urandom

    def counted(size: int) -> bytes:
        read.append(size)
        return genuine(size)

    monkeypatch.setattr(os, "urandom", counted)
    m = Hybrid(epsilon=1, low=0, high=100)
    m.perturb(5, draw=system_draw())
    assert len(read) == 1
    m.perturb(5)
    assert len(read) > 1
    before = sum(read)
    perturb_many(m, [5] * 100)
    assert sum(read) >= before + 100 * 24


# The law of a report's own draw


def test_a_reports_words_come_four_at_a_time_and_are_folded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Words at or above the largest multiple of n are drawn again; the guards serve nothing."""
    reads = [words(1, WORD_RANGE - 1, WORD_RANGE - 6, 25, 7, 2), words(1, 9, 8, 6, 5, 2)]
    asked: list[int] = []

    def entropy(size: int) -> bytes:
        asked.append(size)
        return reads.pop(0)

    monkeypatch.setattr(os, "urandom", entropy)
    draw = ReportDraw().below
    assert asked == [48]
    assert draw(10) == 5  # of 25: the two words before it are refused
    assert draw(1) == 0  # a draw of one takes a word too
    assert asked == [48]
    assert draw(10) == 9
    assert asked == [48, 48]


@pytest.mark.parametrize("n", [0, -1, WORD_RANGE + 1])
def test_a_range_that_one_word_cannot_serve_is_refused(n: int) -> None:
    with pytest.raises(ParameterError):
        ReportDraw().below(n)


def test_numbers_of_the_system_stay_in_their_range_and_reach_all_of_it() -> None:
    """False alarm: a face in 800 throws missing, 6·(5/6)^800 < 1e-62."""
    draw = ReportDraw().below
    assert set(Counter(draw(6) for _ in range(800))) == set(range(6))
    assert 0 <= draw(WORD_RANGE) < WORD_RANGE


# Sources that fail (AGT_11)


def broken(_size: int) -> NoReturn:
    raise OSError("no entropy")


def test_a_failing_source_gives_no_report_AGT_11(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing falls back to another generator."""
    monkeypatch.setattr(os, "urandom", broken)
    m = Hybrid(epsilon=1, low=0, high=100)
    with pytest.raises(EntropyError, match="no randomness"):
        m.perturb(5)
    with pytest.raises(EntropyError, match="no randomness"):
        m.perturb(5, draw=system_draw())


def raising(exc: Exception) -> Source:
    def source(_size: int) -> NoReturn:
        raise exc

    return source


def giving(what: object) -> Any:
    return lambda _size: what


FAILING = [
    *map(raising, (OSError(), NotImplementedError(), MemoryError(), RuntimeError(), TypeError())),
    *map(giving, (None, "", b"", bytes(READ - 1), bytes(READ + 1), [7] * READ)),
]


@pytest.mark.parametrize("source", FAILING)
def test_many_reports_at_once_fail_as_one_does_AGT_11(source: Source) -> None:
    """Whatever a source does instead of giving bytes is the one error that is waited for."""
    with pytest.raises(EntropyError):
        perturb_many(Hybrid(epsilon=1, low=0, high=100), [1, 2, 3], entropy=source)
    with pytest.raises(EntropyError):
        perturb_oracle_many(Hrr(epsilon=1, size=4), [1, 2, 3], entropy=source)


def test_categories_at_once_are_not_drawn_from_a_stuck_source_AGT_11(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "urandom", constant(7))
    with pytest.raises(StuckEntropyError):
        perturb_oracle_many(Hrr(epsilon=1, size=4), [1, 2, 3])


@pytest.mark.parametrize("source", FAILING)
def test_a_source_that_fails_once_may_work_again_AGT_11(source: Source) -> None:
    calls = [source, os.urandom]

    def next_one(size: int) -> bytes:
        return calls.pop(0)(size)

    draw = system_draw(next_one)
    with pytest.raises(EntropyError) as raised:
        draw(10)
    assert not isinstance(raised.value, StuckEntropyError)
    assert 0 <= draw(10) < 10


def test_a_source_that_fails_in_mid_report_leaves_nothing_in_the_block_AGT_11() -> None:
    calls = [os.urandom, broken]

    def next_one(size: int) -> bytes:
        return calls.pop(0)(size)

    draw = system_draw(next_one)
    draw(1 << 64)
    assert any(words_in(draw))
    used, error = drained(draw)
    assert len(used) >= 15
    assert not isinstance(error, StuckEntropyError)
    assert not any(words_in(draw))


@pytest.mark.parametrize("byte", [0, 1, 0x55, 0xFF])
def test_constant_bytes_trip_the_health_test_before_one_is_used_AGT_11(
    monkeypatch: pytest.MonkeyPatch, byte: int
) -> None:
    monkeypatch.setattr(os, "urandom", constant(byte))
    for draw in (system_draw(), lambda n: ReportDraw().below(n), system_draw(constant(byte))):
        with pytest.raises(StuckEntropyError, match="repeats itself"):
            draw(1 << 63)
    with pytest.raises(StuckEntropyError):
        Hybrid(epsilon=1, low=0, high=100).perturb(5)


@pytest.mark.parametrize("at", [0, READ - 16])
def test_a_read_with_two_equal_guards_is_refused(at: int) -> None:
    fresh = bytearray(numbered(1))
    fresh[at + 8 : at + 16] = fresh[at : at + 8]
    with pytest.raises(StuckEntropyError):
        Checked(lambda _size: bytes(fresh))(BLOCK)


@pytest.mark.parametrize("whence", [0, 8, READ - 16, READ - 8])
@pytest.mark.parametrize("where", [0, 8, READ - 16, READ - 8])
def test_a_guard_of_the_read_before_is_refused_wherever_it_stands(whence: int, where: int) -> None:
    first, second = numbered(1), bytearray(numbered(100))
    second[where : where + 8] = first[whence : whence + 8]
    source = Checked(replayed(first, bytes(second)))
    assert source(BLOCK) == first[16:-16]
    with pytest.raises(StuckEntropyError):
        source(BLOCK)


def test_a_block_that_comes_again_is_refused_the_second_time() -> None:
    used, error = drained(system_draw(lambda size: numbered(1, size)))
    assert used == list(range(3, 3 + len(used)))
    assert isinstance(error, StuckEntropyError)


def test_a_source_that_was_stuck_once_is_never_used_again() -> None:
    source = Checked(replayed(bytes(READ), numbered(1), numbered(100)))
    for _ in range(3):
        with pytest.raises(StuckEntropyError):
            source(BLOCK)


@given(st.lists(st.binary(min_size=READ, max_size=READ), min_size=1, max_size=3))
def test_what_is_handed_out_does_not_depend_on_the_words_that_are_tested(
    blocks: list[bytes],
) -> None:
    """The words used keep their exact law: whether they are used is decided by guards alone."""
    other = [block[:16] + bytes(BLOCK) + block[-16:] for block in blocks]

    def verdicts(given_blocks: list[bytes]) -> list[bool]:
        source = Checked(replayed(*given_blocks))
        found = []
        for block in given_blocks:
            try:
                assert source(BLOCK) == block[16:-16]
                found.append(True)
            except StuckEntropyError:
                found.append(False)
        return found

    assert verdicts(blocks) == verdicts(other)


def test_equal_words_among_those_used_are_no_fault() -> None:
    """They come by chance as often as any other pair; refusing them would bend the law."""
    fresh = numbered(1)[:16] + words(*[7] * 16) + numbered(90)[-16:]
    assert Checked(replayed(fresh))(BLOCK) == words(*[7] * 16)


def test_no_word_that_was_used_is_remembered_by_the_health_test() -> None:
    source = Checked(os.urandom)
    used = source(BLOCK)
    kept = [one for one in reached(source) if isinstance(one, bytes)]
    assert kept
    assert not [at for at in range(0, BLOCK, 8) if any(used[at : at + 8] in one for one in kept)]


def test_the_rate_of_false_alarms_is_what_is_stated() -> None:
    """Four guards a block: six pairs among them, sixteen with those before."""
    assert FALSE_ALARM_A_BLOCK == (4 * 3 / 2 + 4 * 4) / 2**64
    assert FALSE_ALARM_A_BLOCK * 20 * 365.25 * 96 < 8.4e-13


def test_the_systems_own_bytes_never_trip_it() -> None:
    """False alarm: 2000 blocks, below 1e-14."""
    source = Checked(os.urandom)
    assert {len(source(BLOCK)) for _ in range(2000)} == {BLOCK}
