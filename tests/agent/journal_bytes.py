"""What a slot writes to the flash: `python -m tests.agent.journal_bytes` prints the table.

Bytes are those that the write-ahead log grows by, one synchronous commit a slot; "online": every
slot is packed, and receipts settle what was packed every fourth slot; "offline": reports wait.
Below it: what the kernel counts for this process (/proc/self/io, whole pages), and what the device
under TMPDIR was given, by whomever: a file system of its own shows ours alone.
"""

import os
import sys
import tempfile
from pathlib import Path
from statistics import mean

from agent.claims.batches import pack
from agent.claims.elapsed import Elapsed, Moment
from agent.claims.pipeline import Claim, Report
from agent.state.journal import Journal
from edge_ldp.protocol.ledger import Ledger, Window, charge
from edge_ldp.ratio import floor_ratio
from tests.agent.samples import SLOT, SLOT_S, begun, numbered

SLOTS = 200
RATIO = floor_ratio(1)
SETTLE_EVERY = 4


def bytes_a_slot(directory: Path, streams: int, *, online: bool, slots: int = SLOTS) -> float:
    """Return the mean bytes of a slot in which every stream reports; `directory` is empty."""
    journal = Journal(directory / "s.db")
    window = Window(8 * streams, 97, streams)
    ledger = Ledger(window, tuple(range(window.reports)), SLOT - 1, silent_until=0)
    elapsed = Elapsed(SLOT_S, 10**9, 10**9, 10**6, "new")
    journal.save_ledger(ledger, elapsed)
    log = directory / "s.db-wal"
    grown = []
    for at in range(slots):
        before = log.stat().st_size
        slot = ledger.floor + 1
        ledger = charge(ledger, slot, slot * SLOT_S // 86_400, [RATIO] * streams)
        reports = tuple(Report(stream, slot, 1, slot % 50) for stream in range(streams))
        known = journal.numbers()
        numbers = numbered(*range(streams)) | known
        batches = pack([*journal.waiting(), *reports], numbers) if online else []
        elapsed = elapsed.at(Moment(0, elapsed.boot_ms + 12_200 * SLOT_S))
        elapsed = elapsed.claimed(window, slot, streams)
        journal.commit(
            Claim(ledger, reports, elapsed), batches, [] if known else begun(*range(streams))
        )
        grown.append(log.stat().st_size - before)
        if online and at % SETTLE_EVERY == SETTLE_EVERY - 1:
            journal.settle(journal.keys())
    journal.close()
    kept = [size for size in grown if size > 0]  # 0 or less: the log was begun anew
    assert len(kept) > slots // 2
    return mean(kept)


def seen(directory: Path) -> tuple[int, int]:
    """Return bytes written ever: by this process, by the kernel; to the directory's device."""
    os.sync()
    device = directory.stat().st_dev
    block = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat")
    told = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(told["write_bytes"]), int(block.read_text().split()[6]) * 512


def main() -> int:
    """Print bytes a slot and a report, for one to eight streams, online and offline."""
    sys.stdout.write("streams  online: a slot, a report  offline: a slot, a report\n")
    for streams in (1, 2, 3, 4, 6, 8):
        cells = []
        for online in (True, False):
            with tempfile.TemporaryDirectory() as directory:
                found = bytes_a_slot(Path(directory), streams, online=online)
            cells.append(f"{found:7.0f} {found / streams:7.0f}")
        sys.stdout.write(f"{streams:7}  {cells[0]:>25}  {cells[1]:>26}\n")
    for online in (True, False):
        with tempfile.TemporaryDirectory() as directory:
            before = seen(Path(directory))
            bytes_a_slot(Path(directory), 1, online=online)
            after = seen(Path(directory))
        ours, theirs = ((new - old) / SLOTS for new, old in zip(after, before, strict=True))
        where = "online" if online else "offline"
        sys.stdout.write(f"one stream, {where}: {ours:.0f} by /proc, {theirs:.0f} by the device\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
