"""The estimators written out with explicit matrices: the oracle of the O(d) ones."""

import numpy as np
from numpy.typing import NDArray

from edge_ldp import Mechanism
from edge_ldp.device.channel import Wave
from edge_ldp.device.lattice import bucket_edge
from edge_ldp.device.randomizer import BUCKETS

Floats = NDArray[np.float64]


def exact_matrix(mechanism: Mechanism) -> Floats:
    """Column i: the exact law under input i (a lattice point must be an integer value)."""
    m = mechanism
    if m.encoder == BUCKETS:
        values = [bucket_edge(i, m.low, m.high, m.size) for i in range(m.size)]
    else:
        step, rest = divmod(m.high - m.low, m.size - 1)
        assert rest == 0
        values = [m.low + i * step for i in range(m.size)]
    return np.array([[float(p) for p in m.probabilities(value)] for value in values]).T


def wave_matrix(wave: Wave) -> Floats:
    """P(code | input), from the kernel's definition."""
    code = np.arange(wave.code_count)[:, None]
    index = np.arange(wave.d)[None, :]
    near = (index <= code) & (code <= index + 2 * wave.c)
    return np.where(near, wave.r_num, wave.r_den) / wave.total


def smoothing_matrix(size: int, strength: float = 0.5) -> Floats:
    """Rows (l/2, 1 − l, l/2), cut off and scaled at the ends: (¼, ½, ¼) and (⅔, ⅓), (⅓, ⅔)."""
    side = strength / 2
    rows = np.eye(size) * (1 - strength) + (np.eye(size, k=1) + np.eye(size, k=-1)) * side
    rows[[0, -1]] /= 1 - side
    return rows


def iterate(matrix: Floats, counts: Floats, iterations: int, rows: Floats | None = None) -> Floats:
    """Run so many iterations of EM (of EMS with smoothing rows) from the uniform density."""
    x = np.full(matrix.shape[1], 1 / matrix.shape[1])
    for _ in range(iterations):
        x = x * (matrix.T @ (counts / (matrix @ x)))
        x = x if rows is None else rows @ x
        x = x / x.sum()
    return x
