"""A curator whose running chunk is in memory only: `[device] keep = "run"`."""

from pathlib import Path

from tests.agent.curated import Bench
from tests.agent.summed import in_memory


def ended(bench: Bench) -> list[int]:
    return [row.is_ended for row in bench.curated.series()]


def test_no_copy_of_the_disk_opens_a_chunk_that_is_in_memory_PRV_25(tmp_path: Path) -> None:
    with in_memory() as place:
        bench = Bench(tmp_path / "s.db", device='keep = "run"')
        bench.push(*[500] * 4)
        beside = {one.name.removeprefix("s.db") for one in tmp_path.iterdir()}
        assert beside == {"", "-wal", "-shm", ".lock"}
        (running,) = place.iterdir()
        key = running.read_bytes()[16:48]
        assert any(key)
        assert all(key not in one.read_bytes() for one in tmp_path.iterdir())
        bench.restart()
        bench.push(500)
        assert ended(bench) == [0]
        bench.journal.close()
        running.unlink()  # a reboot
        bench.start()
        assert ended(bench) == [1, 0]
        bench.journal.close()


def test_a_chunk_that_was_on_the_disk_ends_and_is_wiped_there_PRV_25(tmp_path: Path) -> None:
    with in_memory():
        bench = Bench(tmp_path / "s.db", device='keep = "disk"')
        bench.push(*[500] * 3)
        assert (tmp_path / "s.db-running").exists()
        bench.changes["device"] = 'keep = "run"'
        bench.restart()
        assert not (tmp_path / "s.db-running").exists()
        assert ended(bench) == [1, 0]
        bench.push(500)
        bench.journal.close()
