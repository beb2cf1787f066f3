"""What a device needs to hold, traced."""

import tracemalloc
from fractions import Fraction

from edge_ldp.continual import Curator, tops_design
from tests.edge_ldp.continual.paths import noise_from

F = Fraction


def test_a_device_needs_less_than_a_megabyte_for_a_chunk_of_a_million() -> None:
    """r = 2^20, s = 2, pure Python: everything from the key to the last release, traced."""
    design = tops_design(epsilon="1/10", ceiling=10_000, theta=5000)
    assert design.shape.pruned == 2
    tracemalloc.start()
    curator = Curator(design, draw=noise_from(1))
    for _ in range(3):
        curator.push(77)
    for reading in range(70_000):
        curator.push(reading % 9000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000


def test_little_memory_means_little_memory() -> None:
    """b·h: the lean tree of 2^14 blocks a top node holds less than 150 kB, the other 1 MB."""
    peaks: dict[str, int] = {}
    for memory in ("lean", "lean", "subtree"):  # what is loaded once is nothing of the tree's
        design = tops_design(
            epsilon=1, ceiling=100, theta=60, chunk=1 << 15, fanout=2, pruned=0, memory=memory
        )
        tracemalloc.start()
        curator = Curator(design, draw=noise_from(1))
        for _ in range(3):
            curator.push(1)
        peak = tracemalloc.get_traced_memory()[1]
        peaks[memory] = min(peaks.get(memory, peak), peak)
        tracemalloc.stop()
    assert peaks["lean"] < 150_000
    assert peaks["subtree"] > 1_000_000
