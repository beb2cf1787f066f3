"""A thief's look at a running curator's disk, at every write, and after every power cut.

A process publishes through a file layer that records what it writes and syncs; the files are made
again as they were at each step. Whoever has them has every key in them, too: PRV-24.
"""

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from struct import unpack_from

from agent.curator.journal import CuratorJournal
from agent.curator.running_file import AREA, SECTOR, RunningFile
from agent.state.journal import Journal
from edge_ldp.continual import parse_state
from tests.agent.curated import Bench
from tests.agent.state.test_power_cut import Disk, Step, read_record
from tests.integration.faulty import build, environment

SLOTS = 40
CHUNK = 16
TABLE = f'epsilon = 1\nmethod = "fixed"\ntheta = 4000\nchunk = {CHUNK}\nfanout = 4\npruned = 1\n'
RUNNING = "s.db-running"
WORK = """
import os, sys
from pathlib import Path
from tests.agent.curator.test_one_state import work

work(Path(sys.argv[1]), os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND))
os._exit(0)  # no tidying up: the write-ahead log stays
"""


def work(path: Path, record: int) -> None:
    """Publish slots, now and then packed; note each once it is committed."""
    bench = Bench(path, TABLE)
    with bench.journal.reading() as db:
        db.execute("PRAGMA wal_autocheckpoint = 24")  # so that the file itself is written too
    for slot in range(SLOTS):
        bench.push(1000 + 7 * slot, online=slot % 6 == 5)
        os.write(record, f"C {slot + 1}\n".encode())


def recorded(tmp_path: Path) -> list[Step]:
    home, record = tmp_path / "home", tmp_path / "record"
    home.mkdir(mode=0o700)
    record.touch()
    subprocess.run(
        [sys.executable, "-c", WORK, str(home / "s.db"), str(record)],
        check=True,
        timeout=240,
        env=environment(build(tmp_path), home / "s.db", record=record),
    )
    return read_record(record)


@dataclass(frozen=True)
class Sealed:
    """One state as it was sealed: what opens it, what it looks like closed, and what it says."""

    key: bytes
    closed: bytes
    secret: bytes

    def opens_in(self, image: bytes) -> bool:
        return self.key in image and self.closed in image


def sealed_states(steps: list[Step], place: Path) -> list[Sealed]:
    """Return every state that was ever sealed, opened while its key was there."""
    found, file = [], bytearray(SECTOR + 2 * AREA)
    place.mkdir()
    for kind, name, at, data in steps:
        if kind != "W" or name != RUNNING:
            continue
        file[at : at + len(data)] = data
        (place / RUNNING).write_bytes(file)
        record = RunningFile(place / RUNNING).read()
        if at == 0 and record is not None:
            _, area, size, key = unpack_from("<8sII32s", file)
            closed = bytes(file[SECTOR + area * AREA :][:size])
            (row,) = [row for row in json.loads(record)[1] if row[-1]][:1]
            found.append(Sealed(key, closed, bytes.fromhex(row[-1])))
    return found


def hidden_in(one: Sealed) -> Iterator[bytes]:
    """Yield what may stand nowhere in clear: the chunk's key, and the digest of what it saw."""
    chunk = parse_state(one.secret).chunk
    assert chunk is not None
    for secret in (chunk.key, chunk.seen):
        yield secret
        yield secret.hex().encode()


def images(steps: list[Step], *, cuts: int = 0) -> Iterator[tuple[int, dict[str, bytes]]]:
    """Yield (slots committed, files) after each step: killed there, or with the power cut.

    cuts: so many ways to lose what was not synced; 0: nothing is lost.
    """
    choose = random.Random(24)  # noqa: S311 (which sectors a test loses)
    disk, committed = Disk(), 0
    for kind, name, at, data in steps:
        if kind == "C":
            committed = int(name)
            continue
        disk.take(kind, name, at, data)
        if not cuts and kind != "U":
            disk.take("S", name, 0, b"")
        for _ in range(max(cuts, 1)):
            yield committed, disk.after_cut(choose)


def test_one_copy_of_the_disk_opens_one_state_at_any_step_PRV_24(tmp_path: Path) -> None:
    steps = recorded(tmp_path)
    states = sealed_states(steps, tmp_path / "opened")
    assert len({one.key for one in states}) == len(states) == SLOTS - SLOTS // CHUNK
    hidden = {secret for one in states for secret in hidden_in(one)}
    looks, opened = 0, set[int]()
    earlier: dict[str, bytes] = {}
    for _, files in images(steps):
        changed = {name for name in files if files[name] != earlier.get(name)}
        if RUNNING in changed or not looks:
            running = files.get(RUNNING, b"")
            found = [at for at, one in enumerate(states) if one.opens_in(running)]
            assert len(found) <= 1, f"states {found} open from one copy"
            opened |= set(found)
        journal = b"".join(files[name] for name in changed if name != RUNNING)
        assert not [one for one in states if one.key in journal]
        assert not [secret for secret in hidden if secret in journal]
        earlier, looks = files, looks + 1
    assert opened == set(range(len(states))), "the control: each opened while it was the newest"
    assert looks > 5 * SLOTS


def test_the_control_two_copies_open_two_states_and_tell_a_reading_PRV_24(tmp_path: Path) -> None:
    """What docs/curator.md says of two: their difference is what was used between them."""
    states = sealed_states(recorded(tmp_path), tmp_path / "opened")
    first, second = (parse_state(one.secret).chunk for one in states[1:3])
    assert first is not None
    assert second is not None
    assert second.open[0] - first.open[0] == 1000 + 7 * 2


def test_a_power_cut_at_any_step_loses_no_slot_and_no_chunk_AGT_08(tmp_path: Path) -> None:
    place, points = tmp_path / "cut", 0
    place.mkdir(mode=0o700)
    for committed, files in images(recorded(tmp_path), cuts=1):
        points += 1
        if committed == 0 or points % 2:
            continue
        look(place, files, committed)
    assert points > 5 * SLOTS


def look(place: Path, files: Mapping[str, bytes], committed: int) -> None:
    """Open what a cut left: every returned slot is there, and the chunk goes on."""
    for path in place.iterdir():
        path.unlink()
    for name, body in files.items():
        (place / name).write_bytes(body)
    with closing(Journal(place / "s.db")) as journal:
        assert journal.set_aside is None
        (row,) = CuratorJournal(journal).series()
        (account,) = journal.status()
    state = parse_state(row.secret or row.state)
    assert committed <= state.released == account.created <= committed + 1
    assert (row.secret is None) == (state.released % CHUNK == 0)
