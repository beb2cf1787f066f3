"""Settings for all tests: properties are not timed, and CI tries the same examples every time."""

import os

from hypothesis import settings

# As the command does (edge_ldp/cli.py), before anything loads NumPy.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
settings.register_profile("house", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("house")
