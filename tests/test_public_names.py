"""The names that users of the library may rely on, and what importing them costs."""

import subprocess
import sys

import edge_ldp

LOADED = """
import sys
before = set(sys.modules)
import edge_ldp, edge_ldp.ledger, edge_ldp.messages, edge_ldp.plan
loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
print(*sorted(loaded - sys.stdlib_module_names))
"""


def test_the_public_names_are_these() -> None:
    assert edge_ldp.__all__ == [
        "EdgeLdpError",
        "EntropyError",
        "GeneralWave",
        "Hybrid",
        "Mechanism",
        "ParameterError",
        "Piecewise",
        "SquareWave",
        "StochasticRounding",
        "Tuned",
        "WireError",
        "from_plan",
    ]
    assert all(hasattr(edge_ldp, name) for name in edge_ldp.__all__)


def test_the_library_imports_nothing_that_is_not_python() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, check=True, text=True, timeout=60
    )
    assert done.stdout.split() == ["edge_ldp"]
