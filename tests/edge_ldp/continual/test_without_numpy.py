"""The names that users may rely on, and that a device needs nothing but Python for them."""

import sys

from tests.processes import run_told

ALONE = """
import sys
sys.modules["numpy"] = None
from edge_ldp.continual import Tops
tops = Tops(epsilon=1, ceiling=50, readings=8, chunk=256)
print([tops.push(7).value is None for _ in range(10)].count(True))
from edge_ldp.continual import Curator, tops_design
early = Curator(tops_design(epsilon=1, ceiling=50, theta=9, chunk=256, memory="numpy"))
try:
    early.push(3)
except ImportError:
    print(early.state().slot)
print(*sorted({name.partition(".")[0] for name in sys.modules} - sys.stdlib_module_names))
"""


def test_a_stream_is_released_without_numpy() -> None:
    done = run_told([sys.executable, "-S", "-c", ALONE], check=True)
    count, slot, *loaded = done.stdout.split()
    assert (count, slot) == ("8", "-1")  # arrays that are missing take no slot
    assert {"edge_ldp", "numpy"} >= set(loaded) - {"__main__", "_virtualenv"}
