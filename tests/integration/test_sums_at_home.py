"""Homes' own sums from the agent's code over a real broker to an answer of a real aggregator."""

import io
import json
import signal
import time
from contextlib import redirect_stdout
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import numpy as np
import pytest

from aggregator.main import main
from edge_ldp.period_sums import PeriodLayout, scale_for
from edge_ldp.period_sums.law import forecast_total
from firmware_stubs.data import load_swiss
from tests.forked import Forked
from tests.integration.conftest import RealBroker

RATE = 172_800
START_S = 1_700_006_400 - 1_700_006_400 % (28 * 86_400)
START = datetime.fromtimestamp(START_S, UTC).isoformat()
CONFIG = f"""
fleet = "demo"
[broker]
host = "127.0.0.1"
port = {{port}}
[store]
path = "{{place}}/a.db"
[clock]
origin_s = {START_S}
started_s = {{started}}
rate = {RATE}
[intake]
resend_window_s = 31622400
[[streams]]
name = "power"
id = 1
unit = "W"
ceiling = 43470
epsilon = 1
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("days", "cells", "epsilon"), [(7, 1, 8), (28, 1, 8), (28, 24, 8), (28, 6, 8), (1, 1, 6)]
)
def test_a_months_sums_end_to_end_are_as_wide_as_forecast(
    broker: RealBroker, tmp_path: Path, days: int, cells: int, epsilon: int
) -> None:
    """The last: the shipped share of a window, beside reports of the same homes.

    From a border of periods on; sums need no plan, so it matters to none when a process begins.
    """
    homes, layout, started = 100, PeriodLayout(900, days, cells), str(time.time())
    file, log, printed = tmp_path / "a.toml", tmp_path / "homes", io.StringIO()
    file.write_text(CONFIG.format(port=broker.port, place=tmp_path, started=started))
    service = Forked(["aggregator", "run", "-c", str(file)], log=tmp_path / "log")
    words = [f"{days}/{cells}", "--sums-epsilon", str(epsilon)]
    clock = ["--start", START, "--origin", str(START_S), "--started", started, "--rate", str(RATE)]
    playing = ["simulate", "homes", "--json", "--homes", str(homes), "--days", "28", *clock]
    playing += ["--broker", f"127.0.0.1:{broker.port}", "--sums", *words]
    assert Forked(playing, log=log).wait(580) == 0, log.read_text()
    service.send_signal(signal.SIGTERM)
    assert service.wait(300) == 0
    assert json.loads(log.read_text().splitlines()[-1])["sums"] == 28 // days
    with redirect_stdout(printed):
        assert main(["query", "-c", str(file), "--json", "--no-density", "--mode", "sums"]) == 0
    found = json.loads(printed.getvalue())["sums"]
    scale = scale_for(layout, 97, 43_470, epsilon)
    used = np.clip(load_swiss()[:homes, : 28 * 96].astype(np.int64), 0, 43_470)
    asked = {"homes": homes, "periods": 28 // days, "cell_sum": used.mean() * layout.slots_in_cell}
    for rows in ([found["whole"]], *[found["parts"]] * (cells > 1)):
        each = used.reshape(homes, 28, len(rows), -1).mean(axis=(0, 1, 3)).tolist()
        halves = [(one["high"] - one["low"]) / 2 for one in rows]
        wanted = forecast_total(layout, scale, cells=cells // len(rows), **asked)
        wanted /= used.size / len(rows)
        off = [one["mean"] - true for one, true in zip(rows, each, strict=True)]
        held = sum(low <= half for low, half in zip(map(abs, off), halves, strict=True))
        words.append(f"± {median(halves):.1f} W, forecast {wanted:.1f}, {held} of {len(rows)} held")
        words += [f"{off[0]:+.1f} of {each[0]:.1f}"] * (len(rows) == 1)
        assert median(halves) == pytest.approx(wanted, rel=0.15)
        assert all(abs(one) < 8 * half for one, half in zip(off, halves, strict=True))
    print(*words)  # noqa: T201
    assert (found["whole"]["slots"], found["whole"]["coverage"]) == (used.size, 1.0)
