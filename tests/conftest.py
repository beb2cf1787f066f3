"""Settings for all tests: properties are not timed, and CI tries the same examples every time."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from tests.disk import place

if TYPE_CHECKING:
    from collections.abc import Generator

TOLD = 4000  # bytes of a log
# As the command does (edge_ldp/cli.py), before anything loads NumPy.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
for name in ("PYTEST_DEBUG_TEMPROOT", "TMPDIR"):
    os.environ.setdefault(name, str(place()))
settings.register_profile(
    "house",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow],  # it looks at the clock, not at the strategy
)
# --hypothesis-profile=few: where a step takes many times as long, as on an emulated processor
settings.register_profile("few", settings.get_profile("house"), max_examples=10)
settings.load_profile("house")
# what these find wrong is told in full, as in a test's own file
pytest.register_assert_rewrite("tests.integration.agent_bench", "tests.integration.home_bench")
# Started in the background by a script, a process is born deaf to Ctrl-C, and so would be the
# commands that the tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


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
