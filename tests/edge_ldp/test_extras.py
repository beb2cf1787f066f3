"""What is told to be installed can be: by name where it was published, and from a clone."""

import re
import sys
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from aggregator.config import ConfigError
from aggregator.console.answering import Reply
from aggregator.console.server import as_table
from aggregator.plans.signing import read_seal
from aggregator.store.opening import database
from edge_ldp.extras import IN_A_CLONE, pip_install
from tests.aggregator.fakes import make_config

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("needed", "told"),
    [
        ("edge-ldp", "pip install edge-ldp (from a clone: pip install .)"),
        ("edge-ldp[sign]", "pip install 'edge-ldp[sign]' (from a clone: pip install '.[sign]')"),
        ("edge-ldp-agent", "pip install edge-ldp-agent (from a clone: pip install . ./agent)"),
        (
            "edge-ldp-aggregator[postgres]",
            (
                "pip install 'edge-ldp-aggregator[postgres]'"
                " (from a clone: pip install . './aggregator[postgres]')"
            ),
        ),
    ],
)
def test_both_ways_are_told(needed: str, told: str) -> None:
    assert pip_install(needed) == told


def test_every_folder_of_a_clone_is_the_distribution_that_it_stands_for() -> None:
    for part, folders in IN_A_CLONE.items():
        project = tomllib.loads((ROOT / folders.split()[-1] / "pyproject.toml").read_text())
        assert project["project"]["name"] == part.partition("[")[0]


def test_no_message_names_what_a_clone_cannot_install() -> None:
    told = re.compile(r"pip install '?edge-ldp")
    rooms = ("agent", "aggregator", "edge_ldp", "firmware_stubs")
    files = [file for room in rooms for file in sorted((ROOT / room).rglob("*.py"))]
    assert [file.name for file in files if told.search(file.read_text())] == []


def refused(ask: Callable[[], object]) -> str:
    with pytest.raises(ConfigError) as fault:
        ask()
    return str(fault.value)


def test_without_an_extra_each_message_tells_both_ways(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("psycopg", "aggregator.plans.keys", "pyarrow"):
        monkeypatch.setitem(sys.modules, module, None)
    config = make_config(tmp_path / "a.db")
    signing = replace(config, plans=replace(config.plans, signing_key_file="plan.key"))
    assert refused(lambda: read_seal(signing, "f")) == (
        f"f: plans.signing_key_file: expected the extra `sign` beside it: "
        f"{pip_install('edge-ldp[sign]')}"
    )
    url = replace(config, store=replace(config.store, path=None, url="postgresql://x/y"))
    assert refused(lambda: database(url, "f")) == (
        f"f: store.url: expected the PostgreSQL driver: "
        f"{pip_install('edge-ldp-aggregator[postgres]')}"
    )
    table = as_table(Reply(0, b'{"rows": []}', ""), ("rows",), "arrow")
    told = f"format: arrow needs {pip_install('edge-ldp-aggregator[archive]')}"
    assert (table.status_code, bytes(table.body).decode()) == (400, f'{{"error":"{told}"}}')
