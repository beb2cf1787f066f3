"""Change the code a little, run the tests that belong to it, and say which changes no test saw.

One change (a mutant) at a time, in a copy of the tree: a swapped comparison, a number one off,
+ for −, `and` for `or`, max for min, a dropped statement or condition, a negated `if`, a clause
less in SQL. A module's mutants stand in an order that the seed draws, so a larger sample holds the
smaller one. What was tried is kept in .mutants/ and tried again only when the module or its tests
changed. Survivors that change nothing that may be asked for stand in tools/mutants-allowed.txt,
each with its reason.
Exit code: 0 every mutant of the sample was killed or is allowed, 1 some survived, 2 wrong usage, or
tests that fail without a change.
"""

import argparse
import fnmatch
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from itertools import count
from pathlib import Path
from queue import SimpleQueue

from mutations import Mutant, mutants_of

ROOT = Path(__file__).parent.parent
BELONGS = {  # modules: the test files or folders that must notice a change
    "edge_ldp/device/*.py": "tests/edge_ldp/device tests/edge_ldp/test_golden_vectors.py",
    "edge_ldp/protocol/ledger.py": "tests/edge_ldp/protocol/test_ledger.py",
    "edge_ldp/protocol/plan.py": "tests/edge_ldp/protocol/test_plan.py",
    "agent/claims/batches.py": "tests/agent/claims/test_batches.py",
    "agent/claims/gauges.py": "tests/agent/claims/test_slots.py",
    "agent/claims/slots.py": "tests/agent/claims/test_slots.py",
    "agent/claims/spacing.py": "tests/agent/claims/test_spacing.py",
    "agent/meters/dsmr.py": "tests/agent/meters/test_dsmr.py tests/agent/meters/test_every_meter.py"
    " tests/agent/meters/test_dsmr_framer.py",
    "agent/meters/sml.py": "tests/agent/meters/test_sml.py",
    "agent/state/journal*.py": "tests/agent/state/test_journal.py"
    " tests/agent/state/test_journal_schema.py tests/agent/state/test_power_cut.py"
    " tests/agent/state/test_plan_log.py tests/agent/state/test_series.py",
    "aggregator/counting/refusals.py": "tests/aggregator/counting/test_refusals.py",
    "aggregator/counting/seen_batches.py": "tests/aggregator/counting/test_seen_batches.py",
    "aggregator/counting/settle.py": "tests/aggregator/counting/test_settle.py"
    " tests/aggregator/counting/test_settle_model.py",
    "edge_ldp/sums/*.py": "tests/edge_ldp/sums",
    "aggregator/counting/tally.py": "tests/aggregator/counting/test_tally.py"
    " tests/aggregator/counting/test_counts_by_mechanism.py",
}
ALLOWED = "tools/mutants-allowed.txt"
KEPT = ".mutants/results.jsonl"
EXIT_SURVIVED = 1
EXIT_USAGE = 2
SLACK = 5  # a mutant may take so many times as long as the tests do, and MORE_S
MORE_S = 20


@dataclass(frozen=True)
class Group:
    """A module, its text, its tests and a digest of all of it: what a result holds for."""

    module: str
    text: str
    tests: tuple[str, ...]
    digest: str


def groups(root: Path, patterns: list[str]) -> list[Group]:
    """Return the modules of the table that a pattern names, or all of them."""
    made = []
    for pattern, names in BELONGS.items():
        for path in sorted(root.glob(pattern)):
            module, text = path.relative_to(root).as_posix(), path.read_text()
            if path.name == "__init__.py" or not any(
                fnmatch.fnmatch(module, asked) or module.startswith(asked.rstrip("/") + "/")
                for asked in patterns or ["*"]
            ):
                continue
            tests = tuple(names.split())
            files = [file for test in tests for file in _files(root / test)]
            said = b"\0".join([text.encode(), *(file.read_bytes() for file in files)])
            made.append(Group(module, text, tests, sha256(said).hexdigest()[:16]))
    return made


def _files(path: Path) -> list[Path]:
    return sorted(path.rglob("*.py")) if path.is_dir() else [path]


def sample(of: list[Mutant], seed: int, size: int) -> list[Mutant]:
    """Return so many mutants; a larger sample of the same seed holds a smaller one."""
    rank = {mutant: sha256(f"{seed} {mutant.name}".encode()).digest() for mutant in of}
    return sorted(sorted(of, key=rank.__getitem__)[:size], key=lambda one: (one.module, one.start))


def allowed(root: Path) -> dict[str, str]:
    """Return the reasons of the mutants that may survive, by module and name."""
    path = root / ALLOWED
    if not path.exists():
        return {}
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    parts = [line.split(maxsplit=2) for line in lines]
    if any(len(part) < 3 for part in parts):  # noqa: PLR2004 (module, name, reason)
        raise SystemExit(f"{ALLOWED}: expected `module name reason` in each line")
    return {f"{module} {name}": reason for module, name, reason in parts}


class Trees:
    """Copies of the tree, one a job; `run` changes one of them and puts it back."""

    def __init__(self, root: Path, directory: Path, jobs: int) -> None:
        self._free: SimpleQueue[Path] = SimpleQueue()
        self._times = count(1_000_000_000)  # a new time for each writing: bytecode goes by it
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(listed, cwd=root, check=True, capture_output=True).stdout  # noqa: S603 (git's own words)
        for job in range(jobs):
            tree = directory / str(job)
            for name in names.decode().split("\0"):
                if name and (root / name).is_file():
                    (tree / name).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(root / name, tree / name)
            self._free.put(tree)

    def run(
        self, group: Group, mutant: Mutant | None, timeout_s: float | None
    ) -> tuple[str, str, float]:
        """Return "killed", "timeout" or "survived", who killed it, and how long the tests took."""
        tree = self._free.get()
        path = tree / group.module
        try:
            self._write(path, mutant.apply(group.text) if mutant else group.text)
            started = time.monotonic()
            outcome, said = _tested(tree, group.tests, timeout_s)
            self._write(path, group.text)
        finally:
            self._free.put(tree)
        return outcome, said, time.monotonic() - started

    def _write(self, path: Path, text: str) -> None:
        path.write_text(text)
        os.utime(path, (now := next(self._times), now))


def _tested(tree: Path, tests: tuple[str, ...], timeout_s: float | None) -> tuple[str, str]:
    words = [sys.executable, "-m", "pytest", "-q", "-x", "--no-header", "-m", "not slow", *tests]
    env = {**os.environ, "PYTHONPATH": str(tree), "CI": "1"}  # CI: the same examples every time
    with subprocess.Popen(  # noqa: S603 (our own words)
        words, cwd=tree, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors="replace", start_new_session=True,
    ) as process:  # fmt: skip
        try:
            said, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return "timeout", ""
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    if not process.returncode:
        return "survived", ""
    failed = [line for line in said.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return "killed", failed[0].split()[1] if failed else said[-500:]


class Results:
    """What was tried before, a line each; a result holds while module and tests are the same."""

    def __init__(self, path: Path) -> None:
        self._path = path
        lines = path.read_text().splitlines() if path.exists() else []
        self._known = {(row["name"], row["of"]): row["outcome"] for row in map(json.loads, lines)}

    def get(self, group: Group, mutant: Mutant) -> str | None:
        """Return the outcome, or None where this was not tried yet."""
        outcome: str | None = self._known.get((mutant.name, group.digest))
        return outcome

    def put(self, group: Group, mutant: Mutant, outcome: str) -> None:
        """Keep an outcome."""
        self._known[mutant.name, group.digest] = outcome
        self._path.parent.mkdir(exist_ok=True)
        with self._path.open("a") as file:
            row = {"name": mutant.name, "of": group.digest, "outcome": outcome}
            file.write(json.dumps(row) + "\n")


def main() -> int:
    """Run the command and return its exit code."""
    args = _parser().parse_args()
    root: Path = args.root.resolve()
    by_module = {group.module: group for group in groups(root, args.modules)}
    if not by_module:
        print("no module of the table is named so", file=sys.stderr)
        return EXIT_USAGE
    every = [one for group in by_module.values() for one in mutants_of(group.module, group.text)]
    excused = allowed(root)
    if stale := _stale(excused, every, by_module):
        print(f"{ALLOWED}: no such mutant: {', '.join(stale)}", file=sys.stderr)
        return EXIT_USAGE
    chosen = sample(every, args.seed, args.sample)
    results = Results(root / KEPT)
    left = [one for one in chosen if results.get(by_module[one.module], one) is None]
    with tempfile.TemporaryDirectory() as directory:
        if left and not _try_all(
            Trees(root, Path(directory), args.jobs), left, by_module, results, args.jobs
        ):
            return EXIT_USAGE
    return _report(chosen, by_module, results, excused, as_json=args.json, of=len(every))


def _stale(excused: dict[str, str], every: list[Mutant], by_module: dict[str, Group]) -> list[str]:
    there = {f"{one.module} {one.name}" for one in every}
    return [key for key in excused if key.split()[0] in by_module and key not in there]


def _try_all(
    trees: Trees, left: list[Mutant], by_module: dict[str, Group], results: Results, jobs: int
) -> bool:
    """Try what is left; return False where the tests fail without any change."""
    limits: dict[tuple[str, ...], float] = {}
    for group in by_module.values():
        if group.tests not in limits and any(by_module[one.module] is group for one in left):
            outcome, said, took_s = trees.run(group, None, None)
            if outcome != "survived":
                print(f"{said}: fails without any change", file=sys.stderr)
                return False
            limits[group.tests] = SLACK * took_s + MORE_S
    with ThreadPoolExecutor(jobs) as pool:
        runs = pool.map(
            lambda one: trees.run(by_module[one.module], one, limits[by_module[one.module].tests]),
            left,
        )
        for number, (one, (outcome, said, _)) in enumerate(zip(left, runs, strict=True), start=1):
            results.put(by_module[one.module], one, outcome)
            print(f"{number}/{len(left)} {outcome:<8} {_said(one)}  {said}", file=sys.stderr)
    return True


def _said(one: Mutant) -> str:
    what = " ".join(one.before.split())[:50]
    return f"{one.module}:{one.line}  {what} → {one.after[:50] or 'nothing'}"


def _report(  # noqa: PLR0913 (what there is to tell)
    chosen: list[Mutant],
    by_module: dict[str, Group],
    results: Results,
    excused: dict[str, str],
    *,
    as_json: bool,
    of: int,
) -> int:
    left = 0
    table: dict[str, list[int]] = {}
    for one in chosen:
        group = by_module[one.module]
        outcome = results.get(group, one) or "untried"
        reason = excused.get(f"{one.module} {one.name}")
        survived = outcome == "survived"
        left += survived and reason is None
        row = table.setdefault(one.module, [0, 0, 0])
        row[0] += 1
        row[1] += not survived
        row[2] += survived and reason is not None
        if as_json:
            fields = {"name": one.name, "file": one.module, "line": one.line, "outcome": outcome}
            print(json.dumps({**fields, "diff": one.diff(group.text), "allowed": reason}))
        elif survived and reason is None:
            print(f"survived {one.name} {one.module}:{one.line}\n{one.diff(group.text)}\n")
    if not as_json:
        for module, (tried, killed, excuses) in table.items():
            print(f"{module:<36} {killed:>4} of {tried:>4} killed, {excuses} allowed")
        killed, excuses = (sum(row[at] for row in table.values()) for at in (1, 2))
        print(f"{killed} of {len(chosen)} killed, {excuses} allowed, {left} survived; {of} in all")
    return EXIT_SURVIVED if left else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="draws the sample (default 1)")
    parser.add_argument("--sample", type=int, default=150, help="how many mutants (default 150)")
    parser.add_argument("--modules", nargs="*", default=[], help="files, folders or patterns")
    parser.add_argument("--jobs", type=int, default=1, help="at a time (default 1)")
    parser.add_argument("--json", action="store_true", help="a line of JSON for each mutant")
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
