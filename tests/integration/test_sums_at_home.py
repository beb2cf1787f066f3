"""Homes' own sums from the agent's code over a real broker to an answer of a real aggregator."""

import io
import json
import signal
import time
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from aggregator.counting.period_totals import report_of
from aggregator.main import main
from aggregator.store.sqlite.reader import SqliteReader
from edge_ldp.device.sums_frame import decode_sums
from edge_ldp.period_sums.estimate import estimate_total
from edge_ldp.period_sums.law import reach
from edge_ldp.protocol.released import FIRST_SUMS_KEY
from firmware_stubs.data import load_swiss
from tests.forked import Forked
from tests.integration.conftest import RealBroker

HOMES, DAYS = 12, 5
START_S = 1_700_006_400 - 1_700_006_400 % 86_400
CONFIG = """
fleet = "demo"
[broker]
host = "127.0.0.1"
port = {port}
[store]
path = "{place}/a.db"
[archive]
path = "{place}/archive"
[clock]
origin_s = {start}
started_s = {started}
rate = 172800
[intake]
resend_window_s = 31622400
[[streams]]
name = "power"
id = 1
unit = "W"
ceiling = 43470
epsilon = 1
"""


def ask(file: Path, *words: str) -> Any:
    printed = io.StringIO()
    with redirect_stdout(printed):
        assert main([words[0], "-c", str(file), "--json", *words[1:]]) == 0, printed.getvalue()
    return json.loads(printed.getvalue())


def test_homes_release_daily_sums_and_the_answer_is_theirs_REP_15(
    broker: RealBroker, tmp_path: Path
) -> None:
    file = tmp_path / "aggregator.toml"
    text = CONFIG.format(port=broker.port, place=tmp_path, start=START_S, started=time.time())
    file.write_text(text)
    service = Forked(["aggregator", "run", "-c", str(file)], log=tmp_path / "log")
    words = ["simulate", "homes", "--of", str(file), "--json", "--sums", "1/24/0/4"]
    homes = Forked([*words, "--homes", str(HOMES), "--days", str(DAYS)], log=tmp_path / "homes")
    assert homes.wait(300) == 0, (tmp_path / "homes").read_text()
    service.send_signal(signal.SIGTERM)
    assert service.wait(300) == 0
    end = json.loads((tmp_path / "homes").read_text().splitlines()[-1])
    assert (end["sums"], end["pending"]) == (DAYS, 0)
    reader = SqliteReader.open(tmp_path / "a.db")
    kept = reader.period_sums("power", 0, 1 << 40)
    records = {key: one for key, one in reader.records() if key[1] == FIRST_SUMS_KEY}
    reader.close()
    assert len(kept) == HOMES * DAYS
    assert {(one.created, one.counted, one.pending) for one in records.values()} == {
        (DAYS, DAYS, 0)
    }
    reports = [report_of(decode_sums(one.payload)) for one in kept]
    known = estimate_total([[one] for one in reports])
    found = ask(file, "query", "--no-density", "--mode", "sums")
    whole = found["sums"]["whole"]
    assert whole["mean"] == pytest.approx(known.mean, rel=1e-9)
    assert whole["slots"] == HOMES * DAYS * 96
    assert whole["coverage"] == 1.0
    assert len(found["sums"]["periods"]) == DAYS
    truth = load_swiss()[:HOMES, : DAYS * 96].mean()
    beyond = reach(4) * reports[0].scale * 24 * len(reports)  # but for one in 2^40
    assert abs(whole["mean"] - truth) < beyond / whole["slots"]
