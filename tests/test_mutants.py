"""The command `make mutants`: which changes it makes, and that it tells killed from survived."""

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.processes import run_told

TOOL = Path(__file__).parents[1] / "tools" / "mutants.py"


@pytest.fixture(autouse=True)
def beside_the_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(TOOL.parent)  # as Python does for a script


def tool() -> Any:
    return import_module("mutants")


def mutants_of(text: str) -> list[Any]:
    return [one for one in tool().candidates_of("m.py", text) if one.is_real(text)]


def test_what_is_allowed_to_survive_is_there_still() -> None:
    mutants, root = tool(), TOOL.parents[1]
    found = {group.module: group for group in mutants.groups(root, [])}
    every = [one for of in found.values() for one in mutants.candidates_of(of.module, of.text)]
    assert mutants.stale(mutants.allowed(root), every, found) == []


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        ("x = a < b", ["x = a <= b"]),
        ("x = a not in b", ["x = a in b"]),
        ("x = a + b", ["x = a - b"]),
        ("x = 7", ["x = 6", "x = 8"]),
        ("x = 0", ["x = (-1)", "x = 1"]),
        ("x = a[0]", ["x = a[1]"]),
        ("x = True", []),
        ("x = a and b", ["x = a", "x = a or b", "x = b"]),
        ("x = min(a)", ["x = max(a)"]),
        ("x = b if a else c", ["x = b if not (a) else c"]),
        ("a.b = c", ["pass"]),
        ("a(b)", ["pass"]),
        ("x: 'Literal[1]' = a", []),
        ("__slots__ = (1,)", []),
        ("é = 'é' + b", ["é = 'é' - b"]),
        (
            "x = 'SELECT a FROM b WHERE c < 1 GROUP BY d'",
            [
                "x = 'SELECT a FROM b GROUP BY d'",
                "x = 'SELECT a FROM b WHERE c < 1'",
                "x = 'SELECT a FROM b WHERE c <= 1 GROUP BY d'",
            ],
        ),
        ("x = f'SELECT {a} FROM b WHERE c AND d'", ["x = f'SELECT {a} FROM b WHERE c'"]),
    ],
)
def test_a_line_is_changed_in_these_ways_and_no_other(line: str, changed: list[str]) -> None:
    text = f'"""Of 1 module."""\n\n{line}  # a < b\n'
    made = mutants_of(text)
    assert sorted(one.apply(text).split("\n")[2] for one in made) == [
        f"{other}  # a < b" for other in changed
    ]
    assert len({one.name for one in made}) == len(made)
    assert all(one.line == 3 for one in made)


def test_a_mutant_keeps_its_name_while_its_line_moves() -> None:
    before, after = ("x = 1\nx = 1\n", "import a\n\nx = 1\ny = 2\nx = 1\n")
    names = [{one.name for one in mutants_of(text)} for text in (before, after)]
    assert len(names[0]) == 4
    assert names[0] < names[1]


def test_a_seed_draws_an_order_and_another_seed_another() -> None:
    mutants = tool()
    every = mutants_of("".join(f"x{at} = {at}\n" for at in range(50)))
    first, again, other = (mutants.drawn(every, seed) for seed in (1, 1, 2))
    assert first == again != other
    assert set(first) == set(other) == set(every)


CODE = "def is_small(a: int) -> bool:\n    return a < 9\n"
TEST = """
from agent.claims.batches import is_small

def test_it() -> None:
    assert [is_small(a) for a in ({})] == [{}]
"""


def tried(root: Path, *words: str) -> tuple[int, dict[str, str], str]:
    done = run_told([sys.executable, str(TOOL), "--root", str(root), "--json", *words], timeout=300)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    made = {row["diff"].split("\n+     return ")[1]: row["outcome"] for row in rows}
    return done.returncode, made, done.stderr


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_tree_with_a_hole_is_told_of_it_and_nothing_is_tried_twice(tmp_path: Path) -> None:
    code = tmp_path / "agent" / "claims" / "batches.py"
    test = tmp_path / "tests" / "agent" / "claims" / "test_batches.py"
    for path, text in (
        (code, CODE),
        (code.with_name("__init__.py"), ""),
        (code.parents[1] / "__init__.py", ""),
        (test, TEST.format("8, 20", "True, False")),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    status, made, said = tried(tmp_path, "--modules", "agent")
    assert status == 1, said
    assert made == {"a <= 9": "survived", "a < 8": "killed", "a < 10": "survived"}
    assert code.read_text() == CODE, "the tree itself is never changed"
    assert tried(tmp_path, "--modules", "agent") == (1, made, "")
    test.write_text(TEST.format("8, 9, 20", "True, False, False"))
    status, closed, said = tried(tmp_path)
    assert (status, closed) == (0, dict.fromkeys(made, "killed")), said
