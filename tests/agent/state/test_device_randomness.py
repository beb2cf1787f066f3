"""Where randomness fails, repeats itself or blocks nothing is claimed; no word outlives a claim."""

import logging
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from edge_ldp.entropy import StuckEntropyError
from tests.agent.samples import SLOT, make_config, make_plan
from tests.agent.state.device_bench import Bench, Source, planned
from tests.reached import words_in


class Tap:
    """The operating system's randomness, until it is told to fail in some way."""

    def __init__(self) -> None:
        self.fault: Source | None = None
        self.asked = 0

    def __call__(self, size: int) -> bytes:
        self.asked += 1
        return os.urandom(size) if self.fault is None else self.fault(size)


def no_entropy(_size: int) -> bytes:
    raise OSError("no entropy")


def constant(size: int) -> bytes:
    return b"\x2a" * size


@pytest.fixture
def tap() -> Tap:
    return Tap()


@pytest.fixture
def tapped(tmp_path: Path, tap: Tap) -> Iterator[Bench]:
    """Give a device that is at work, on a source of randomness that can be made to fail."""
    made = Bench(tmp_path / "s.db", entropy=tap)
    made.pass_slots(2)
    assert made.device.accept_plan("power", make_plan().to_json()) is None
    made.live(2)
    yield made
    made.journal.close()


def no_room(_size: int) -> bytes:
    raise MemoryError


def no_such_call(_size: int) -> bytes:
    raise AttributeError("getrandom")


@pytest.mark.parametrize(
    "fault", [no_entropy, no_room, no_such_call, lambda size: bytes(size - 1), lambda _size: b""]
)
def test_without_randomness_slots_are_given_up_and_the_device_goes_on_AGT_11(
    tapped: Bench, tap: Tap, fault: Source, caplog: pytest.LogCaptureFixture
) -> None:
    before = tapped.made
    with caplog.at_level(logging.INFO):
        tap.fault = fault
        tapped.live(3)
        assert tapped.made == before
        assert tapped.status.ledger["reports"] == len(before)
        tap.fault = None
        tapped.live(2)
    assert tapped.made == [*before, (SLOT + 7, 1), (SLOT + 8, 1)]
    warned, relieved = [record.getMessage() for record in caplog.records]
    assert "given up" in warned
    assert relieved == "there is randomness again"


def test_a_slot_given_up_for_want_of_randomness_costs_nothing_and_stays_below_the_window_AGT_11(
    tmp_path: Path, tap: Tap
) -> None:
    """S4: what could not be drawn is not made up for later."""
    bench = planned(tmp_path / "s.db", window=(3, 7), entropy=tap)
    for slot in range(140):
        tap.fault = no_entropy if slot % 5 in (1, 2) else None
        bench.live(1)
        if slot % 17 == 0:
            bench.restart()
    made = sorted(slot for slot, _ in bench.made)
    assert 0 < len(made) == bench.status.ledger["reports"]
    for start in range(SLOT, made[-1]):
        assert sum(start <= slot < start + 7 for slot in made) <= 3


def test_a_ledger_that_cannot_be_drawn_is_opened_as_soon_as_there_is_randomness_AGT_11(
    tmp_path: Path, tap: Tap, caplog: pytest.LogCaptureFixture
) -> None:
    tap.fault = no_entropy
    with caplog.at_level(logging.INFO):
        bench = planned(tmp_path / "s.db", window=(10, 10), entropy=tap)
        bench.live(30)
        assert bench.journal.ledger() is None
        assert [r.levelname for r in caplog.records].count("WARNING") == 1
        tap.fault = None
        bench.live(30)
    first = SLOT + 31 + 10  # the window counts as spent from then, not from the start
    assert [slot for slot, _ in bench.made] == list(range(first, SLOT + 60))


def test_a_changed_window_that_cannot_be_drawn_keeps_the_device_silent_AGT_11(
    tapped: Bench, tap: Tap
) -> None:
    before = tapped.made
    stored = tapped.journal.ledger()
    tap.fault = no_entropy
    tapped.restart(window=(1, 2))
    tapped.live(5)
    assert tapped.made == before
    assert tapped.journal.ledger() == stored
    tap.fault = None
    tapped.live(1)
    assert tapped.status.ledger["window_slots"] == 2


def test_a_window_tightened_without_randomness_is_silent_no_longer_than_its_slots_AGT_11(
    tapped: Bench, tap: Tap
) -> None:
    """However long it ran before: what it closed then says nothing of how time goes on."""
    tapped.live(200)
    tap.fault = no_entropy
    tapped.device.reconfigure(make_config(tapped.state, window=(2, 4)), None)
    tap.fault = None
    before = len(tapped.made)
    tapped.live(4 + 8)
    assert len(tapped.made) - before >= 2


def test_a_source_that_repeats_itself_ends_the_device_and_nothing_is_randomised_AGT_11(
    tapped: Bench, tap: Tap
) -> None:
    before, ledger = tapped.made, tapped.journal.ledger()
    tap.fault = constant
    tapped.pass_slots()
    for _ in range(3):
        with pytest.raises(StuckEntropyError, match="repeats itself"):
            tapped.close()
    tap.fault = None  # a source that was stuck once is not trusted again
    with pytest.raises(StuckEntropyError):
        tapped.close()
    assert (tapped.made, tapped.journal.ledger()) == (before, ledger)
    tapped.restart()  # its state was saved: another run on a sound source goes on
    tapped.live(1)
    assert len(tapped.made) == len(before) + 1


def test_while_the_source_blocks_nothing_is_claimed_or_stored_AGT_11(
    tapped: Bench, tap: Tap
) -> None:
    """Another process looks at the disk while the device waits for bytes."""
    before = len(tapped.made)
    go_on = threading.Event()
    seen: list[int] = []

    def blocked(size: int) -> bytes:
        assert go_on.wait(300)
        return os.urandom(size)

    def look() -> None:
        with closing(sqlite3.connect(f"file:{tapped.state}?mode=ro", uri=True)) as other:
            query = "SELECT sum(created) FROM streams"
            seen.extend(other.execute(query).fetchone()[0] for _ in range(5))
        go_on.set()

    tap.fault = blocked
    watcher = threading.Thread(target=look)
    watcher.start()
    tapped.live(1)
    watcher.join()
    assert seen == [before] * 5
    assert len(tapped.made) == before + 1


def test_no_word_outlives_a_claim_or_the_opening_of_a_ledger_PRV_06(
    tmp_path: Path, tap: Tap
) -> None:
    """A restored snapshot, or a copy of the memory, holds no noise of any report."""
    bench = Bench(tmp_path / "s.db", entropy=tap)
    draw = bench.device.core.draw
    assert len(words_in(draw)) >= 8
    assert not any(words_in(draw))
    bench.device.accept_plan("power", make_plan().to_json())
    bench.pass_slots(2)
    for _ in range(5):
        asked = tap.asked
        bench.live(1)
        assert tap.asked == asked + 1  # the report was drawn from a block of its own
        assert not any(words_in(draw))


def test_the_block_is_not_empty_while_a_report_is_drawn(tmp_path: Path) -> None:
    """The control: the same look, before the words are forgotten."""
    bench = Bench(tmp_path / "s.db")
    bench.device.core.draw(1 << 64)
    assert any(words_in(bench.device.core.draw))
