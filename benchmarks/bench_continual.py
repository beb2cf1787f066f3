"""Streams under central DP: building a chunk's noise, values a second, memory.

CPU time. "Plain" is the published method as one would write it down: float Laplace noise node by
node, then the two passes family by family; r = 2^20, fan-out 16. Memory is measured in processes of
their own, above what the interpreter (with NumPy, where it is used) has before; the figures are
printed with `-s`.
"""

from __future__ import annotations

import subprocess
import sys
import time
from fractions import Fraction
from math import log
from typing import TYPE_CHECKING

import numpy as np
import pytest

from edge_ldp.continual import Curator, Shape, tops_design
from edge_ldp.continual.arrays import ArrayNoise
from edge_ldp.continual.consistency import subtree_noise
from edge_ldp.continual.noise import NodeNoise

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_benchmark.fixture import BenchmarkFixture

R = 1 << 20
THETA, EPSILON = 67, Fraction(1, 10)
KEY = bytes(range(32))
PROMISED_A_SECOND, PROMISED_TIMES = 200_000, 10
VALUES = [(k * 7919) % 90 for k in range(1 << 17)]
DESIGNS = {
    "ToPS, s = 3": {"pruned": 3},
    "ToPS, s = 2": {"pruned": 2},
    "ToPS, s = 1": {"pruned": 1},
    "no pruning, H16c": {"pruned": 0},
    "no pruning, NumPy": {"pruned": 0, "memory": "numpy"},
    "no pruning, little memory": {"pruned": 0, "memory": "lean"},
    "causal, s = 2": {"pruned": 2, "kind": "causal"},
    "causal": {"pruned": 0, "kind": "causal"},
    "H2, nodes": {"pruned": 0, "kind": "tree", "fanout": 2},
    "flat": {"pruned": 0, "kind": "flat"},
}

MEMORY = """
import re, sys
from fractions import Fraction
from edge_ldp.continual.consistency import subtree_noise
from edge_ldp.continual.noise import NodeNoise
from edge_ldp.continual.shape import Shape
way = sys.argv[1]
if way == "numpy":
    from edge_ldp.continual.arrays import ArrayNoise
peak = lambda: int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
before = peak()
shape = Shape("consistent", 16, 1 << 20, 0 if way == "numpy" else 2)
noise = NodeNoise(bytes(range(32)), shape.scale(67, Fraction(1, 10)))
if way == "numpy":
    made = ArrayNoise(noise, shape).chunk()
else:
    made = [one for top in range(shape.tops) for one in subtree_noise(noise, shape, top)]
assert len(made) == shape.blocks
print(peak() - before)
"""


def plain_chunk() -> list[float]:
    """Return consistent float noise of a whole chunk, level by level, node by node."""
    b, h = 16, 5
    scale = THETA * h / float(EPSILON)
    uniform = np.random.default_rng(0).random
    levels = []
    for level in range(h):
        nodes = []
        for _ in range(R // b**level):
            u = uniform() - 0.5
            nodes.append(-scale * log(1 - 2 * abs(u)) * (1 if u > 0 else -1))
        levels.append(nodes)
    for at in range(1, h):
        size, below = b ** (at + 1) - 1, b**at
        own, theirs = (size + 1 - below) / size, (below - 1) / size
        levels[at] = [
            own * node + theirs * sum(levels[at - 1][x * b : (x + 1) * b])
            for x, node in enumerate(levels[at])
        ]
    for at in range(h - 2, -1, -1):
        lower = levels[at]
        for x, parent in enumerate(levels[at + 1]):
            family = slice(x * b, (x + 1) * b)
            share = (parent - sum(lower[family])) / b
            lower[family] = [node + share for node in lower[family]]
    return levels[0]


def array_chunk(pruned: int = 0) -> int:
    """Return how many blocks were made, tables and guides included."""
    shape = Shape("consistent", 16, R, pruned)
    noise = NodeNoise(KEY, shape.scale(THETA, EPSILON))
    return len(ArrayNoise(noise, shape).chunk())


def device_chunk() -> int:
    """Return how many blocks were made in pure Python with s = 2, tables included."""
    shape = Shape("consistent", 16, R, 2)
    noise = NodeNoise(KEY, shape.scale(THETA, EPSILON))
    return sum(len(subtree_noise(noise, shape, top)) for top in range(shape.tops))


@pytest.mark.benchmark(group="noise of 2^20 leaves", timer=time.process_time)
def test_arrays(benchmark: BenchmarkFixture) -> None:
    assert benchmark.pedantic(array_chunk, rounds=10, warmup_rounds=1) == R  # type: ignore[no-untyped-call] # it has no annotations


@pytest.mark.benchmark(group="noise of 2^20 leaves", timer=time.process_time)
def test_plain(benchmark: BenchmarkFixture) -> None:
    made = benchmark.pedantic(plain_chunk, rounds=3)  # type: ignore[no-untyped-call] # it has no annotations
    assert len(made) == R


@pytest.mark.benchmark(group="noise of 2^20 values in blocks of 256", timer=time.process_time)
def test_device(benchmark: BenchmarkFixture) -> None:
    assert benchmark.pedantic(device_chunk, rounds=10, warmup_rounds=1) == R >> 8  # type: ignore[no-untyped-call] # it has no annotations


@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.benchmark(group="131,072 values after θ", timer=time.process_time)
def test_push(benchmark: BenchmarkFixture, name: str) -> None:
    """Noise included: the first half of a chunk's top nodes is built on the way."""
    design = tops_design(epsilon=EPSILON, ceiling=1638, theta=THETA, **DESIGNS[name])  # type: ignore[arg-type] # a table of options

    def run() -> int:
        push = Curator(design).push
        return sum(push(value).value is not None for value in VALUES)

    made = benchmark.pedantic(run, rounds=3)  # type: ignore[no-untyped-call] # it has no annotations
    assert made == len(VALUES)
    if name != "no pruning, little memory":  # which trades speed for memory
        assert benchmark.stats is not None
        assert made / benchmark.stats["min"] >= PROMISED_A_SECOND


def test_arrays_need_a_tenth_of_the_plain_cpu() -> None:
    """In one run, so that whatever else the machine does slows both."""

    def seconds(make: Callable[[], object]) -> float:
        start = time.process_time()
        make()
        return time.process_time() - start

    plain = min(seconds(plain_chunk) for _ in range(2))
    arrays = min(seconds(array_chunk) for _ in range(5))
    sys.stdout.write(f"\nplain {plain:.3f} s, arrays {arrays:.3f} s: {plain / arrays:.1f} times\n")
    assert plain / arrays >= PROMISED_TIMES


@pytest.mark.parametrize(("way", "limit_kb"), [("numpy", 24_000), ("device", 1000)])
def test_memory(way: str, limit_kb: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, way], capture_output=True, check=True, text=True, timeout=60
    )
    used_kb = int(done.stdout)
    sys.stdout.write(f"\n{way}: {used_kb} kB above the interpreter\n")
    assert used_kb <= limit_kb
