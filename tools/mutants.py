"""Change the code a little, run the tests that belong to it, and say which changes no test saw.

One change (a mutant) at a time, compiled in place of the module's file, which stays as it is: a
swapped comparison, a number one off, + for −, `and` for `or`, max for min, a dropped statement or
condition, a negated `if`, a clause less in SQL. The tests run in a process forked from this one;
what they start as another Python of its own does not see the change. The mutants stand in an order
that the seed draws, so a larger sample holds the smaller one. What was tried is kept in .mutants/
and tried again only when the module or its tests changed. Survivors that change nothing that may be
asked for stand in tools/mutants-allowed.txt, each with its reason.
Exit code: 0 every mutant of the sample was killed or is allowed, 1 some survived, 2 wrong usage, or
tests that fail without a change.
"""

import argparse
import fnmatch
import json
import os
import resource
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from importlib.machinery import SourceFileLoader
from itertools import islice
from pathlib import Path
from types import CodeType

from mutations import Mutant, candidates_of

ROOT = Path(__file__).parent.parent
BELONGS = {  # modules: tests that must notice a change, after those named as the module is
    "edge_ldp/device/*.py": "tests/edge_ldp/device tests/edge_ldp/test_golden_vectors.py"
    " tests/edge_ldp/protocol/test_frames.py",
    "edge_ldp/sums/*.py": "tests/edge_ldp/sums",
    "edge_ldp/protocol/ledger.py": "",
    "edge_ldp/protocol/plan.py": "",
    "agent/claims/*.py": "tests/agent/claims tests/agent/state/test_device_batches.py"
    " tests/agent/commands/test_ledger_view.py tests/agent/link/test_uplink.py",
    "agent/meters/obis/dsmr.py": "tests/agent/meters/test_every_meter.py"
    " tests/agent/meters/test_dsmr_framer.py tests/agent/meters/test_channels.py",
    "agent/meters/obis/sml.py": "",
    "agent/state/journal*.py": "tests/agent/state/test_journal.py"
    " tests/agent/state/test_journal_schema.py tests/agent/state/test_power_cut.py"
    " tests/agent/state/test_plan_log.py tests/agent/state/test_series.py",
    "aggregator/counting/*.py": "tests/aggregator/counting"
    " tests/aggregator/store/test_curated_store.py"
    " tests/aggregator/store/test_period_sums_store.py tests/aggregator/answers/test_sums_answer.py"
    " tests/aggregator/answers/test_completeness.py tests/aggregator/answers/test_classes.py",
}
HEAVY = "hypothesis.stateful matplotlib msgspec numpy psycopg pytest scipy.optimize scipy.stats"
ALLOWED = "tools/mutants-allowed.txt"
KEPT = ".mutants/results.jsonl"
EXIT_SURVIVED = 1
EXIT_USAGE = 2
SLACK = 3  # a mutant may take so many times the processor time that the tests do, and MORE_S
MORE_S = 10


@dataclass(frozen=True)
class Group:
    """A module and the tests that belong to it."""

    root: Path
    pattern: str
    module: str
    text: str
    own: list[str]  # tests named as it is: the first to run
    others: list[str]

    def digest(self, *tests: str) -> str:
        """Return what a result holds for: the module and these tests, or all of them."""
        files = {file for test in tests or (*self.own, *self.others) for file in self._files(test)}
        said = b"\0".join([self.text.encode(), *(file.read_bytes() for file in sorted(files))])
        return sha256(said).hexdigest()[:16]

    def _files(self, test: str) -> list[Path]:
        path = self.root / test
        return sorted(path.rglob("*.py")) if path.is_dir() else [path]


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
            found = root.glob(f"tests/{module.split('/')[0]}/**/test_{path.stem}.py")
            own = sorted(one.relative_to(root).as_posix() for one in found)
            others = [name for name in names.split() if (root / name).exists()]
            made.append(Group(root, pattern, module, text, own, others))
    return made


def drawn(of: list[Mutant], seed: int) -> list[Mutant]:
    """Return mutants in the seed's order: a run that is stopped has tried a smaller sample."""
    return sorted(of, key=lambda one: sha256(f"{seed} {one.name}".encode()).digest())


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


class Runs:
    """Tests in forked processes, so many at a time."""

    def __init__(self, root: Path, jobs: int) -> None:
        sys.path.insert(0, str(root))
        os.environ["CI"] = "1"  # the same examples every time
        os.chdir(root)
        for name in HEAVY.split():  # a fork has them already
            import_module(name)
        self._jobs = jobs
        self._at_work: dict[int, tuple[Mutant | None, int]] = {}

    def start(self, group: Group, mutant: Mutant | None, cpu_s: float) -> None:
        """Begin; only with a free place."""
        said = os.memfd_create("said")
        if not (pid := os.fork()):
            _run(group, mutant, int(cpu_s), said)
        self._at_work[pid] = (mutant, said)

    @property
    def is_full(self) -> bool:
        """Whether there is no free place."""
        return len(self._at_work) >= self._jobs

    def wait(self) -> tuple[Mutant | None, str, str, float] | None:
        """Return whose tests ended, how ("killed", "timeout" or "survived"), by which, CPU s."""
        if not self._at_work:
            return None
        pid, status, used = os.wait3(0)
        mutant, said = self._at_work.pop(pid)
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)  # what a test left behind
        with os.fdopen(said, errors="replace") as file:
            file.seek(0)
            text = file.read()
        code, took_s = os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime
        if not code:
            return mutant, "survived", "", took_s
        failed = [line for line in text.splitlines() if line.startswith(("FAILED", "ERROR"))]
        who = failed[0].split()[1] if failed else text[-500:]
        return mutant, "timeout" if code == -signal.SIGXCPU else "killed", who, took_s


def _run(group: Group, mutant: Mutant | None, cpu_s: int, said: int) -> None:
    """Run the tests in this process, with the change, and end it."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 5))
    os.dup2(said, 1)
    os.dup2(said, 2)
    changed = group.module.removesuffix(".py").replace("/", ".")
    usual = SourceFileLoader.get_code

    def get_code(self: SourceFileLoader, fullname: str) -> CodeType | None:
        if mutant is None or fullname != changed:
            return usual(self, fullname)
        return compile(mutant.apply(group.text), self.path, "exec", dont_inherit=True)

    SourceFileLoader.get_code = get_code  # type: ignore[assignment, method-assign]
    words = ["-q", "-x", "--no-header", "--assert=plain", "-p", "no:cacheprovider"]
    code = 0
    for tests in filter(None, (group.own, group.others)):
        if not code:
            asked = [*words, "--timeout=120", "-m", "not slow", *tests]
            code = import_module("pytest").main(asked)
    sys.stdout.flush()
    os._exit(int(code))


class Results:
    """What was tried, a line each: it holds while the module, and who killed it or all, do."""

    def __init__(self, path: Path) -> None:
        self._path = path
        lines = path.read_text().splitlines() if path.exists() else []
        self._known = {(row["module"], row["name"]): row for row in map(json.loads, lines)}

    def get(self, group: Group, mutant: Mutant) -> str | None:
        """Return the outcome, or None where this was not tried yet."""
        row = self._known.get((mutant.module, mutant.name))
        if row is None or row["of"] != group.digest(*row["by"]):
            return None
        outcome: str = row["outcome"]
        return outcome

    def put(self, group: Group, mutant: Mutant, outcome: str, who: str) -> None:
        """Keep an outcome."""
        by = [who.split("::", maxsplit=1)[0]] if "::" in who else []
        row = {"module": mutant.module, "name": mutant.name, "outcome": outcome, "by": by}
        row["of"] = group.digest(*by)
        self._known[mutant.module, mutant.name] = row
        self._path.parent.mkdir(exist_ok=True)
        with self._path.open("a") as file:
            file.write(json.dumps(row) + "\n")


def main() -> int:
    """Run the command and return its exit code."""
    args = _parser().parse_args()
    root: Path = args.root.resolve()
    by_module = {group.module: group for group in groups(root, args.modules)}
    if not by_module:
        print("no module of the table is named so", file=sys.stderr)
        return EXIT_USAGE
    every = [one for group in by_module.values() for one in candidates_of(group.module, group.text)]
    excused = allowed(root)
    if gone := stale(excused, every, by_module):
        print(f"{ALLOWED}: no such mutant: {', '.join(gone)}", file=sys.stderr)
        return EXIT_USAGE
    real = (one for one in drawn(every, args.seed) if one.is_real(by_module[one.module].text))
    chosen = list(islice(real, args.sample))
    results = Results(root / KEPT)
    left = [one for one in chosen if results.get(by_module[one.module], one) is None]
    if left and not _try_all(Runs(root, args.jobs), left, by_module, results):
        return EXIT_USAGE
    return _report(chosen, by_module, results, excused, as_json=args.json, of=len(every))


def stale(excused: dict[str, str], every: list[Mutant], by_module: dict[str, Group]) -> list[str]:
    """Return which allowed mutants of these modules there are no more."""
    there = {f"{one.module} {one.name}" for one in every}
    return [key for key in excused if key.split()[0] in by_module and key not in there]


def _try_all(runs: Runs, left: list[Mutant], by_module: dict[str, Group], results: Results) -> bool:
    """Try what is left; return False where the tests fail without any change."""
    limits: dict[str, float] = {}
    done = 0

    def take() -> bool:
        nonlocal done
        if (ended := runs.wait()) is None:
            return False
        one, outcome, who, _ = ended
        assert one is not None  # noqa: S101 (those without a change are awaited at once)
        done += 1
        results.put(by_module[one.module], one, outcome, who)
        print(f"{done}/{len(left)} {outcome:<8} {_said(one)}  {who}", file=sys.stderr)
        return True

    for one in left:
        group = by_module[one.module]
        if group.pattern not in limits:
            while take():
                pass
            runs.start(group, None, 3600)
            ended = runs.wait()
            if ended is None or ended[1] != "survived":
                print(f"{ended and ended[2]}: fails without any change", file=sys.stderr)
                return False
            limits[group.pattern] = SLACK * ended[3] + MORE_S
        elif runs.is_full:
            take()
        runs.start(group, one, limits[group.pattern])
    while take():
        pass
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
        for module, (tried, killed, excuses) in sorted(table.items()):
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
