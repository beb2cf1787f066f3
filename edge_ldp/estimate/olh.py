"""OLH's supports: for each item, the reports whose hash of it is their code.

That is n·d hashes. They are followed item by item, by adding a modulo the prime instead of
multiplying, in blocks of reports that stay in the processor's cache. Source: [SW] §2.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edge_ldp.checks import SIZE, array, integer_in, taking
from edge_ldp.device.errors import ParameterError
from edge_ldp.errors import CountsError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Ints = NDArray[np.int64]

PRIME = 2**31 - 1
_BLOCK = 1 << 13
_FIELDS = 3


@taking(size=SIZE, g=integer_in(2, PRIME))
def olh_counts(reports: ArrayLike, size: int, g: int) -> Ints:
    """Return for each item 0..size−1 how many reports (a, b, code) support it.

    Shape: reports is (n, 3), integers: 1 ≤ a < p, 0 ≤ b < p = 2^31 − 1, 0 ≤ code < g. Item x is
    supported if ((a·x + b) mod p) mod g is the code. Cost: n·size steps of about 2 ns; memory
    O(size) beside the reports. Raises CountsError for what is no report, ParameterError.
    """
    if not 0 < size <= PRIME or not 2 <= g <= PRIME:  # noqa: PLR2004
        raise ParameterError("size, g", "1 <= size, 2 <= g, at most 2**31 - 1")
    try:
        given = array("reports", reports)
    except ParameterError as exc:
        raise CountsError("not reports of three integers") from exc
    if given.dtype.kind not in "iu" or given.ndim != 2 or given.shape[1] != _FIELDS:  # noqa: PLR2004
        raise CountsError("not reports of three integers")
    if len(given) and ((given < (1, 0, 0)) | (given >= (PRIME, PRIME, g))).any():
        raise CountsError("reports with a field out of its range")
    counts = np.zeros(size, np.int64)
    for at in range(0, len(given), _BLOCK):
        a, b, code = given[at : at + _BLOCK].T.astype(np.uint32)
        _add(counts, a, b, code, np.uint32(g))
    return counts


def _add(
    counts: Ints,
    a: NDArray[np.uint32],
    b: NDArray[np.uint32],
    code: NDArray[np.uint32],
    g: np.uint32,
) -> None:
    """Add one block's supports. Sums stay below 2^32, and taking p from less than p wraps high."""
    value = b.copy()
    other = np.empty_like(value)
    prime = np.uint32(PRIME)
    for item in range(len(counts)):
        np.floor_divide(value, g, out=other)
        other *= g
        np.subtract(value, other, out=other)
        counts[item] += np.count_nonzero(other == code)
        value += a
        np.subtract(value, prime, out=other)
        np.minimum(value, other, out=value)
