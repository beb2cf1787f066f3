"""Power cuts: what was written after a file's last sync is lost, torn or out of order.

A process works on a state file through a file layer that records every write and sync. For each
cut point the files are made again from the record: all that was synced, and of the rest any
sectors. AGT-08.
"""

import os
import random
import subprocess
import sys
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from agent.state.journal import Journal
from tests.agent.state.test_journal import PLAN, commit_claim, content, fresh_ledger
from tests.integration.faulty import build, environment

SECTOR = 512
Step = tuple[str, str, int, bytes]
WORK = """
import os, sys
from pathlib import Path
from tests.agent.state.test_power_cut import work

work(Path(sys.argv[1]), int(sys.argv[2]), os.open(sys.argv[3], os.O_WRONLY | os.O_APPEND))
os._exit(0)  # no tidying up: the write-ahead log stays
"""


def digest(journal: Journal) -> str:
    """Return what tells two states of a journal apart."""
    return sha256(repr(content(journal)).encode()).hexdigest()[:16]


def work(path: Path, commits: int, record: int) -> None:
    """Store reports, batches, plans and settlements; note each commit once it has returned."""
    journal = Journal(path)
    with journal.reading() as db:
        db.execute("PRAGMA wal_autocheckpoint = 24")  # so that the file itself is written too

    def note() -> None:
        os.write(record, f"C {digest(journal)}\n".encode())

    note()
    ledger = fresh_ledger()
    journal.save_ledger(ledger)
    note()
    for done in range(commits):
        ledger = commit_claim(journal, ledger, packed=done % 3 != 0)
        note()
        if done % 4 == 3:
            journal.settle(sorted(journal.keys())[:2])
            note()
        if done % 7 == 0:
            journal.save_plan(PLAN._replace(epoch=done + 1))
            note()


def recorded(tmp_path: Path, commits: int) -> list[Step]:
    """Do the work in a process of its own, and return what it wrote and synced, in order."""
    home, record = tmp_path / "home", tmp_path / "record"
    home.mkdir()
    record.touch()
    subprocess.run(
        [sys.executable, "-c", WORK, str(home / "s.db"), str(commits), str(record)],
        check=True,
        timeout=240,
        env=environment(build(tmp_path), home / "s.db", record=record),
    )
    return read_record(record)


@dataclass
class Disk:
    """Files as a disk holds them: what is synced, and what may or may not have reached it."""

    durable: dict[str, bytearray] = field(default_factory=dict)
    pending: dict[str, list[tuple[str, int, bytes]]] = field(default_factory=dict)

    def take(self, kind: str, name: str, at: int, data: bytes) -> None:
        """Take one step of the record."""
        if kind == "U":  # the directory is synced then (synchronous = EXTRA)
            self.durable.pop(name, None)
            self.pending.pop(name, None)
        elif kind == "S":
            for step in self.pending.pop(name, []):
                _apply(self.durable.setdefault(name, bytearray()), *step)
        else:
            self.pending.setdefault(name, []).append((kind, at, data))

    def after_cut(self, choose: random.Random) -> dict[str, bytes]:
        """Return the files as they may be found: of what was not synced, any sectors."""
        found = {}
        for name in sorted({*self.durable, *self.pending}):  # the same choices in every run
            body = bytearray(self.durable.get(name, b""))
            share = choose.choice((0.0, 0.5, 0.9, 1.0))
            steps = list(self.pending.get(name, []))
            if choose.random() < 0.5:
                choose.shuffle(steps)
            for kind, at, data in steps:
                if kind == "T":
                    if choose.random() < share:
                        _apply(body, kind, at, data)
                    continue
                for start in range(0, len(data), SECTOR):
                    if choose.random() < share:
                        _apply(body, kind, at + start, data[start : start + SECTOR])
            if name in self.durable or body:
                found[name] = bytes(body)
        return found


def _apply(body: bytearray, kind: str, at: int, data: bytes) -> None:
    if kind == "T":
        del body[at:]
        body.extend(bytes(at - len(body)))
        return
    body.extend(bytes(max(0, at + len(data) - len(body))))
    body[at : at + len(data)] = data


def read_record(path: Path) -> list[Step]:
    """Return (kind, file or digest, offset, bytes) of each step."""
    body, at, steps = path.read_bytes(), 0, []
    while at < len(body):
        end = body.index(b"\n", at)
        words = body[at:end].decode().split(" ")
        at = end + 1
        size = int(words[2]) if words[0] == "W" else 0
        offset = int(words[1]) if words[0] in "WT" else 0
        steps.append((words[0], words[-1].rpartition("/")[2], offset, body[at : at + size]))
        at += size
    return steps


def cut(tmp_path: Path, commits: int, variants: int) -> int:
    """Cut recorded work at every step in so many ways, open what is left, return the number."""
    steps = recorded(tmp_path, commits)
    digests = [name for kind, name, _, _ in steps if kind == "C"]
    choose = random.Random(8)  # noqa: S311 (which sectors a test loses)
    disk, committed, points = Disk(), -1, 0
    place = tmp_path / "cut"
    place.mkdir()
    for kind, name, at, data in steps:
        if kind == "C":
            committed += 1
        else:
            disk.take(kind, name, at, data)
        for _ in range(variants):
            look(place, disk.after_cut(choose), digests, committed)
            points += 1
    rewritten = [at for at, step in enumerate(steps) if step[:2] == ("W", "s.db")]
    assert rewritten[-1] > len(steps) // 2, "the file itself was never written again"
    return points


def look(place: Path, files: dict[str, bytes], digests: list[str], committed: int) -> None:
    """Open what a cut left; nothing whose commit had returned may be missing from it."""
    for path in place.iterdir():
        path.unlink()
    for name, body in files.items():
        (place / name).write_bytes(body)
    journal = Journal(place / "s.db")
    found: Any = digest(journal)
    with journal.reading() as db:
        assert db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    journal.close()
    if committed >= 0:  # the file's own making had returned
        assert journal.set_aside is None
        assert found in digests[committed : committed + 2], f"after commit {committed}"


def test_after_a_power_cut_every_returned_commit_is_there_AGT_08(tmp_path: Path) -> None:
    assert cut(tmp_path, commits=9, variants=1) >= 50


def test_killed_at_any_write_it_goes_on_with_what_was_there_AGT_17(tmp_path: Path) -> None:
    """A kill loses nothing that was written: no file is damaged, the one being made neither."""
    disk, place = Disk(), tmp_path / "killed"
    place.mkdir()
    seen = set()
    for kind, name, at, data in recorded(tmp_path, 4):
        if kind == "C":
            continue
        disk.take(kind, name, at, data)
        if kind != "U":
            disk.take("S", name, 0, b"")
        for path in place.iterdir():
            path.unlink()
        for left, body in disk.durable.items():
            (place / left).write_bytes(body)
        seen.add(frozenset(disk.durable))
        journal = Journal(place / "s.db")
        journal.close()
        assert journal.set_aside is None, sorted(disk.durable)
        assert {path.name for path in place.iterdir()} <= {"s.db", "s.db.lock"}
    assert {"s.db-journal", "s.db.lock"} in seen, "no kill while the file was made"


@pytest.mark.slow
def test_after_a_thousand_power_cuts_every_returned_commit_is_there_AGT_08(tmp_path: Path) -> None:
    assert cut(tmp_path, commits=60, variants=3) >= 1000


def test_the_control_a_disk_that_forgets_what_was_synced_is_found_AGT_08(tmp_path: Path) -> None:
    steps = recorded(tmp_path, 4)
    digests = [name for kind, name, _, _ in steps if kind == "C"]
    choose = random.Random(8)  # noqa: S311 (which sectors a test loses)
    disk = Disk()
    for kind, name, at, data in steps:
        if kind in ("W", "T"):
            disk.take(kind, name, at, data)
    (tmp_path / "cut").mkdir()
    missed = 0
    for _ in range(20):
        try:
            look(tmp_path / "cut", disk.after_cut(choose), digests, len(digests) - 1)
        except AssertionError:
            continue
        missed += 1
    assert missed <= 5, "of 20: now and then everything happens to have reached the disk"
