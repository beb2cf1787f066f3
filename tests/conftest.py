"""Settings for all tests: properties are not timed, and CI tries the same examples every time."""

import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import suppress
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.disk import place

TOLD = 4000  # bytes of a log
# rooms whose tests start processes, wait for them, and take most of the time
LONG = ("integration", "emulated", "hil", "packaging", "firmware_stubs", "aggregator/console")
# As the command does (edge_ldp/cli.py), before anything loads NumPy.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# argparse asks for translations of each of its words: half of what making a command's parser costs
os.environ["LANGUAGE"] = "C"
# What people are shown goes by this machine's zone.
os.environ["TZ"] = "UTC"
time.tzset()
for name in ("PYTEST_DEBUG_TEMPROOT", "TMPDIR"):
    os.environ.setdefault(name, str(place()))
settings.register_profile(
    "house",
    deadline=None,
    max_examples=50,  # half of what is usual: what needs more of them says so
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow],  # it looks at the clock, not at the strategy
)
# --hypothesis-profile=few: where a step takes many times as long, as on an emulated processor
settings.register_profile("few", settings.get_profile("house"), max_examples=10)
settings.load_profile("house")
# what these find wrong is told in full, as in a test's own file
pytest.register_assert_rewrite("tests.integration.agent_bench", "tests.integration.home_bench")
# What is collected lives to the end: looking through it again and again takes a tenth of the time
# of collection.
gc.disable()
# Started in the background by a script, a process is born deaf to Ctrl-C, and so would be the
# commands that the tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    """Install the studies where a clone's environment is older than they are, as make would."""
    root = Path(__file__).parents[1]
    try:
        distribution("edge-ldp-studies")
    except PackageNotFoundError:
        if Path(sys.prefix).parent == root and not hasattr(config, "workerinput"):
            install = ("install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index")
            command = [sys.executable, "-m", "pip", *install, "-e", str(root / "studies")]
            subprocess.run(command, check=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Function, call: pytest.CallInfo[None]
) -> Generator[None, Any, Any]:
    """Tell with a failure what the processes said: the end of every log that the test left."""
    report = yield
    if call.when == "call" and report.failed and "tmp_path" in item.funcargs:
        for log in sorted(Path(str(item.funcargs["tmp_path"])).rglob("*.log")):
            told = log.read_bytes()[-TOLD:].decode(errors="replace")
            report.sections.append((f"{log.parent.name}/{log.name}", told))
    return report


def pytest_collection(session: pytest.Session) -> None:
    """Let every worker of pytest-xdist import another part of the tests first.

    What one has rewritten (pytest's `assert`, half of what collection takes) the others then find.
    """
    if (worker := os.environ.get("PYTEST_XDIST_WORKER")) is None:
        return
    places = [Path(one.partition("::")[0]).absolute() for one in session.config.args]
    found = [place.rglob("test_*.py") if place.is_dir() else [place] for place in places]
    files = sorted(set(chain.from_iterable(found)))
    at = len(files) * int(worker[2:]) // int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
    for file in files[at:] + files[:at]:
        with suppress(Exception, pytest.skip.Exception):  # collection tells what is wrong with it
            import_module(".".join(file.relative_to(session.config.rootpath).with_suffix("").parts))


def pytest_collection_finish() -> None:
    """Look for cycles from now on, but not among what was collected."""
    gc.freeze()
    gc.enable()


def pytest_unconfigure() -> None:
    """Let them be found at the end: else libraries tell of leaks."""
    gc.unfreeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let all workers of pytest-xdist but one begin with long files: none comes at last, alone.

    These wait for processes most of their time; the last worker's tests compute meanwhile. A worker
    is first given as many tests as any other, in this order, and later takes from the end of what
    others have before them (`--dist worksteal`). Files stay together.
    """
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if workers == 1:
        return
    here, by_file = len(f"{Path(__file__).parent}/"), dict[str, list[pytest.Item]]()
    for item in items:
        by_file.setdefault(str(item.path)[here:], []).append(item)
    files = [file for file in by_file if file.startswith(LONG)]
    rest = [*chain.from_iterable(by_file[file] for file in by_file if file not in files)]
    share, ordered = -(-len(items) // workers), []
    for worker in range(workers):
        mine = files[worker :: workers - 1] if worker < workers - 1 else []
        first = [*chain.from_iterable(by_file[file] for file in mine)]
        room = max(0, share - len(first))
        ordered += first + rest[:room]
        del rest[:room]
    items[:] = ordered + rest
