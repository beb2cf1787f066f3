"""Settings for all tests: properties are not timed, and CI tries the same examples every time."""

import os
import signal

import pytest
from hypothesis import settings

# As the command does (edge_ldp/cli.py), before anything loads NumPy.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
settings.register_profile("house", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("house")
# what these find wrong is told in full, as in a test's own file
pytest.register_assert_rewrite("tests.integration.agent_bench", "tests.integration.home_bench")
# Started in the background by a script, a process is born deaf to Ctrl-C, and so would be the
# commands that the tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
