"""A curator whose running chunk is in memory only: `[device] keep = "run"`."""

from contextlib import closing
from pathlib import Path

from agent.claims.slots import SlotValues
from agent.curator.journal import CuratorJournal
from agent.curator.mode import curator_device
from agent.state.device import Device
from agent.state.journal import Journal
from tests.agent.curated import curator_config
from tests.agent.samples import SLOT_S, StillClock
from tests.agent.summed import in_memory


def opened(state: Path, clock: StillClock, keep: str = "run") -> tuple[Journal, Device]:
    config = curator_config(state, device=f'keep = "{keep}"')
    journal = Journal(state)
    device = curator_device(config, journal, clock)
    device.trust_clock()
    return journal, device


def publish(device: Device, clock: StillClock, slots: int) -> None:
    for _ in range(slots):
        clock.pass_s(SLOT_S)
        device.close_slot(SlotValues(device.slot - 1, (500,)), online=False)
        device.flush(online=False)


def series_of(journal: Journal) -> list[tuple[int, int]]:
    """Return each series' number of released values, and whether it is over; from rows alone."""
    with closing(Journal(journal.path, create=False)) as found:
        rows = CuratorJournal(found).series()
    return [(row.slot - row.series, row.is_ended) for row in rows]


def test_no_copy_of_the_disk_opens_a_chunk_that_is_in_memory_PRV_25(tmp_path: Path) -> None:
    clock = StillClock()
    with in_memory() as place:
        journal, device = opened(tmp_path / "s.db", clock)
        publish(device, clock, 4)
        assert {one.name.removeprefix("s.db") for one in tmp_path.iterdir()} == {
            *("", "-wal", "-shm", ".lock")
        }
        (running,) = place.iterdir()
        key = running.read_bytes()[16:48]
        assert any(key)
        assert all(key not in one.read_bytes() for one in tmp_path.iterdir())
        journal.close()
        journal, device = opened(tmp_path / "s.db", clock)
        publish(device, clock, 1)
        assert [ended for _, ended in series_of(journal)] == [0]
        journal.close()
        running.unlink()  # a reboot
        journal, device = opened(tmp_path / "s.db", clock)
        assert [ended for _, ended in series_of(journal)] == [1, 0]
        journal.close()


def test_a_chunk_that_was_on_the_disk_ends_and_is_wiped_there_PRV_25(tmp_path: Path) -> None:
    clock = StillClock()
    with in_memory():
        journal, device = opened(tmp_path / "s.db", clock, keep="disk")
        publish(device, clock, 3)
        assert (tmp_path / "s.db-running").exists()
        journal.close()
        journal, device = opened(tmp_path / "s.db", clock)
        assert not (tmp_path / "s.db-running").exists()
        assert [ended for _, ended in series_of(journal)] == [1, 0]
        publish(device, clock, 1)
        journal.close()
