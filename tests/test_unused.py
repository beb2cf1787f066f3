"""What nothing uses is not kept: `vulture` in make check, and the list of what is meant."""

import re
import sys
from pathlib import Path

from tests.processes import run_told

ROOT = Path(__file__).parents[1]
ALLOWED = ROOT / "tools" / "unused-allowed.txt"
SHIPPED = ("agent", "aggregator", "edge_ldp", "firmware_stubs", "studies")


def unused(*paths: str | Path) -> set[str]:
    done = run_told(
        [sys.executable, "-m", "vulture", *map(str, paths), "--min-confidence", "60"], cwd=ROOT
    )
    assert not done.stderr
    return set(re.findall(r"unused [a-z ]+ '(\w+)'", done.stdout))


def planted(place: Path) -> Path:
    (place / "planted.py").write_text("def nobody_calls_this() -> None: ...\n")
    return place


def test_the_list_names_just_what_is_unused_and_what_nobody_calls_is_found(tmp_path: Path) -> None:
    allowed = re.findall(r"^(?:_\.)?(\w+)", ALLOWED.read_text(), re.MULTILINE)
    assert unused(*SHIPPED, planted(tmp_path)) == {*allowed, "nobody_calls_this"}
    assert len(allowed) == len(set(allowed))


def test_the_control_the_list_hides_nothing_else(tmp_path: Path) -> None:
    assert unused(planted(tmp_path), ALLOWED) == {"nobody_calls_this"}
