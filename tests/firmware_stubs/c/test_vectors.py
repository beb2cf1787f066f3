"""The same bytes give the same codes and frames in C, wherever it runs."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.edge_ldp.golden import VECTORS
from tests.firmware_stubs.c.builds import Runner
from tests.firmware_stubs.c.vectors import SCRIPTS

READ_NOWHERE = {"sums/v1/malformed"}  # a device writes its sums, and reads none
NAMES = sorted(
    name
    for path in VECTORS.glob("*/v*/*.json")
    if (name := str(path.relative_to(VECTORS).with_suffix(""))) not in READ_NOWHERE
)
FILES = [VECTORS / f"{name}.json" for name in NAMES]


def table_of(path: Path) -> dict[str, Any]:
    table: dict[str, Any] = json.loads(path.read_text())
    return table


def test_there_are_vectors_of_every_kind_known_today() -> None:
    assert {"report/v1/hybrid", "report/v1/reporter", "sums/v1/valid"} <= set(NAMES)
    assert {f"frame/v{n}/{kind}" for n in (1, 2) for kind in ("valid", "malformed")} <= set(NAMES)
    assert {table_of(path)["format"] for path in FILES} <= set(SCRIPTS)


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_the_c_kernel_gives_what_is_recorded(run: Runner, path: Path) -> None:
    table = table_of(path)
    script = SCRIPTS[table["format"]](table)
    assert len(script.commands) > 5
    assert run.differences(script) == []


def spoilt(table: dict[str, Any]) -> dict[str, Any]:
    """Return a vector file with one number of its last row changed."""
    if table["format"] == "frame":
        row = table["frames"][-1]
        row.update({"offset": row["offset"] + 1} if "offset" in row else {"batch": 5})
    elif table["format"] == "sums":
        table["releases"][-1]["y"][-1] += 1
    elif table["format"] == "report":
        table["cases"][-1]["codes"][-1] ^= 1
    else:
        table["cases"][-1]["reports"][-1][-1] ^= 1
    return table


@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_a_wrong_vector_is_noticed(run: Runner, path: Path) -> None:
    table = spoilt(table_of(path))
    assert run.differences(SCRIPTS[table["format"]](table))


def test_a_vector_with_other_entropy_is_noticed(host: Runner) -> None:
    table = table_of(VECTORS / "report" / "v1" / "hybrid.json")
    case = table["cases"][0]
    case["entropy"] = case["entropy"][16:]  # a word less: all codes change, and the last is none
    found = [printed for _, printed, _ in host.differences(SCRIPTS["report"](table))]
    assert len(found) > 5
    assert "entropy" in found
