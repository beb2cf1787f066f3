"""What left is kept for the eye alone: over restarts, bounded, and never what a reading was."""

from pathlib import Path

import pytest

import agent.page.record as kept
from agent.claims.batches import Key
from agent.page.left import Left, items_of
from agent.page.record import DAYS, LeftRecord
from agent.state.place import forget_left, left_path
from tests.agent.page.at_home import PageBench, at_home
from tests.agent.samples import SLOT_S
from tests.agent.state.device_bench import DAY_S


def known(bench: PageBench) -> list[tuple[int, bool]]:
    rows = bench.record.rows()
    return [(item.from_s // SLOT_S, one.came) for one in rows for item in items_of(one)]


def test_what_left_is_known_after_its_receipt_and_a_restart(tmp_path: Path) -> None:
    bench = at_home(tmp_path / "s.db")
    bench.report(2)
    bench.report(1, confirmed=False)
    assert [came for _, came in known(bench)] == [True, True, False]
    assert len({slot for slot, _ in known(bench)}) == 3
    before = known(bench)
    bench.restart()
    assert known(bench) == before
    assert left_path(bench.state).stat().st_mode & 0o777 == 0o600


def test_what_was_made_before_there_was_a_page_is_taken_in(tmp_path: Path) -> None:
    bench = at_home(tmp_path / "s.db")
    bench.report(3, confirmed=False)
    forget_left(bench.state)
    bench.restart()
    assert [came for _, came in known(bench)] == [False] * 3
    bench.report(1)
    assert [came for _, came in known(bench)] == [True] * 4


@pytest.mark.parametrize(
    "damage",
    [b"", b"\xff" * 100, b"made 1 x 900 AAAA\nmade\ncame 1 99\nother 1 2 3 4\n", b"made 1 1 900 !"],
)
def test_a_damaged_record_is_passed_over(tmp_path: Path, damage: bytes) -> None:
    bench = at_home(tmp_path / "s.db")
    left_path(bench.state).write_bytes(damage + b"\n")
    bench.report(2)
    assert [came for _, came in known(bench)] == [True, True]
    assert len(bench.household.facts().newest) == 2


def test_where_nothing_can_be_written_reports_go_on(tmp_path: Path) -> None:
    bench = at_home(tmp_path / "s.db")
    left_path(bench.state).unlink(missing_ok=True)
    left_path(bench.state).mkdir()
    bench.report(2)
    assert bench.household.facts().spans[-1][1:3] == (2, 2)


def test_days_beyond_the_last_ones_and_what_is_too_much_are_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = at_home(tmp_path / "s.db")
    bench.report(2)
    bench.clock.pass_s(DAYS * DAY_S + 10 * SLOT_S)
    bench.report(2)
    assert len(known(bench)) == 2
    bench.report(10)
    size = left_path(bench.state).stat().st_size
    monkeypatch.setattr(kept, "MOST_BYTES", size // 2)
    bench.report(1)
    assert left_path(bench.state).stat().st_size <= size // 4 + 20  # and the last one's receipt
    assert known(bench)[-1][1]


def test_a_file_of_another_version_of_frames_is_no_item(tmp_path: Path) -> None:
    bench = at_home(tmp_path / "s.db")
    for stream in (1, 256, 512):
        line = f"made {stream} 1 900 QUJD\n"
        left_path(bench.state).write_text(line)
        assert list(items_of(Left(Key(stream, 1), SLOT_S, b"ABC"))) == []
        assert LeftRecord(bench.journal, SLOT_S, bench.clock.now).rows() == []
