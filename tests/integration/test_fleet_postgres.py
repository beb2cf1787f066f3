"""The same bad traffic into SQLite and PostgreSQL: the same counts, and those that were sent."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.fleet_offline import run_offline
from studies.load.main import main
from tests.postgres import running_postgres
from tests.studies.load.test_load import BAD, CONFIG

RUN = ["--json", "--devices", "60", "--rounds", "12", "--reports", "20", *BAD]


def load(path: Path, text: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    path.write_text(text)
    assert main(["-c", str(path), *RUN], run_offline) == 0
    view: dict[str, Any] = json.loads(capsys.readouterr().out)
    return {name: view[name] for name in view if name not in ("seconds", "reports_per_s")}


def test_a_load_is_counted_alike_by_sqlite_and_postgresql(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = CONFIG.format(place=tmp_path)
    with running_postgres() as server:
        there = text.replace(f'path = "{tmp_path}/a.db"', f'url = "{server.new_database()}"')
        there = there.replace(f'[archive]\npath = "{tmp_path}/archive"', "")
        views = [load(tmp_path / name, one, capsys) for name, one in (("a", text), ("b", there))]
    assert views[0] == views[1]
    assert views[0]["counted"] > 20_000
