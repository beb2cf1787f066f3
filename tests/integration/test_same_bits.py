"""10⁵ reports through real brokers, with kills: the same bits on every store and engine."""

import json
from pathlib import Path

import pytest

from benchmarks.same_bits import main

SMALL = ["--devices", "100", "--rounds", "20", "--clock", "200000", "--every", "3", "--lead", "1"]
KILLS = ["--kills", "2"]  # then it may recover: a busy machine takes seconds to start a service


@pytest.mark.slow
def test_a_bad_fleet_is_counted_to_the_same_bits_by_sqlite_postgresql_and_duckdb_AGG_01_AGG_02(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stores = ["--stores", "sqlite", "postgres:1", "--engines", "duckdb"]
    code = main([*SMALL, *KILLS, *stores, "--place", str(tmp_path / "runs")])
    *rows, last = map(json.loads, capsys.readouterr().out.splitlines())
    assert (code, last) == (0, {"same": True, "right": True}), rows
    assert len(rows) == 4
    assert sum(sum(row.get("kills", {}).values()) for row in rows) >= 1
    assert {row["counted"] for row in rows} == {rows[0]["expected"]}
    assert rows[0]["expected"] > 95_000
    assert rows[0]["created"] == rows[0]["counted"] + rows[0]["rejected"]


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_so_is_a_larger_one_by_three_workers_and_spark(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    big = ["--devices", "1000", "--rounds", "20", "--clock", "40000", "--every", "15"]
    assert main([*big, "--place", str(tmp_path / "runs")]) == 0, capsys.readouterr().out
