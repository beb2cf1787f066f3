"""AGG-14: a million devices in one window: memory, state, and a start after a crash."""

import asyncio
import json
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.integration.aggregator_bench import Aggregator, until
from tests.integration.conftest import RealBroker
from tests.integration.million import REPORTS

DEVICES = 1_000_000
CAP_KIB, STATE_BYTES, START_S = 512 * 1024, 1024, 60.0


def rss_kib(pid: int) -> int:
    """Return the most memory that a process ever had."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def stored_bytes(path: Path, tables: tuple[str, ...]) -> int:
    with closing(sqlite3.connect(path)) as db:
        query = "SELECT sum(pgsize) FROM dbstat WHERE name = ?"
        return sum(db.execute(query, (table,)).fetchone()[0] or 0 for table in tables)


@pytest.mark.slow
@pytest.mark.timeout(3000)
async def test_a_million_devices_in_one_window_AGG_14(tmp_path: Path, broker: RealBroker) -> None:
    aggregator = Aggregator(tmp_path, broker, intake="max_devices = 1000000")
    aggregator.start()
    await until(lambda: aggregator.log.exists() and "epoch 1" in aggregator.log.read_text())
    assert aggregator.end(signal.SIGTERM) == 0
    program = [sys.executable, "-m", "tests.integration.million"]
    command = [*program, str(aggregator.config), str(DEVICES)]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    spent = json.loads(done.stdout)
    assert spent["peak_kib"] <= CAP_KIB
    begun = time.monotonic()
    aggregator.start()
    try:
        await until(lambda: aggregator.log.read_text().count("connected") == 2, START_S)
        started_s = time.monotonic() - begun
        peak_kib = rss_kib(aggregator.pid)
        assert peak_kib <= CAP_KIB
        assert aggregator.counted() == DEVICES * REPORTS
        each = stored_bytes(aggregator.store, ("records", "watched", "devices")) / DEVICES
        assert each <= STATE_BYTES
    finally:
        aggregator.kill()
    sys.stdout.write(
        f"{DEVICES} devices: {spent['cpu_s']:.0f} s of CPU, {spent['peak_kib'] // 1024} MiB, "
        f"{each:.0f} bytes each; started after the crash in {started_s:.1f} s, "
        f"{peak_kib // 1024} MiB\n"
    )
