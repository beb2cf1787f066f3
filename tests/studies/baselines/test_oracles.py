"""Real reports of the library's oracles, decoded by arrays: the oracles' own exact estimates."""

from collections.abc import Sequence

import numpy as np
import pytest

from edge_ldp.device.oracle import PRIME as DEVICE_PRIME
from edge_ldp.estimate.pure import PRIME, olh_counts, supports
from edge_ldp.oracles import Grr, HaarHrr, Olh, Oracle, Oue
from studies.baselines.haar import haar_frequencies

N, SIZE = 200, 11


def reports_of(oracle: Oracle, seed: int) -> list[Sequence[int]]:
    rng = np.random.default_rng(seed)

    def draw(n: int) -> int:
        return int(rng.integers(n))

    return [oracle.perturb(int(rng.integers(oracle.size)), draw=draw) for _ in range(N)]


@pytest.mark.parametrize("oracle", [Grr(epsilon=1, size=SIZE), Oue(epsilon=1, size=SIZE)], ids=repr)
def test_supports_of_grr_and_oue(oracle: Grr | Oue) -> None:
    reports = reports_of(oracle, 0)
    n, counts = oracle.tally(reports)
    given = supports(counts, n, own=oracle.own, other=oracle.other)
    np.testing.assert_allclose(N * given.frequencies(), oracle.estimate(reports), atol=1e-9)
    assert given.variance * N == pytest.approx(float(oracle.variance(0, 1)))


def test_supports_of_olh() -> None:
    oracle = Olh(epsilon=1, size=SIZE)
    assert PRIME == DEVICE_PRIME
    reports = reports_of(oracle, 1)
    counts = olh_counts(reports, SIZE, oracle.client.channel.d)
    given = supports(counts, N, own=oracle.own, other=oracle.other)
    np.testing.assert_allclose(N * given.frequencies(), oracle.estimate(reports), atol=1e-9)


def test_coefficients_of_haar_hrr() -> None:
    """16 categories, so that none is known to be empty; as many reports on every level."""
    oracle = HaarHrr(epsilon=1, size=16)
    kept: list[list[Sequence[int]]] = [[] for _ in oracle.nodes]
    for report in reports_of(oracle, 3):
        kept[report[0]].append(report)
    each = min(len(level) for level in kept)
    reports = [report for level in kept for report in level[:each]]
    counts = [np.zeros((nodes, 2), int) for nodes in oracle.nodes]
    for level, row, bit in reports:
        counts[level][row, bit] += 1
    channel = oracle.client.channel
    found, n = haar_frequencies(counts, 16, own=channel.r_num / channel.total)
    assert n == len(reports)
    np.testing.assert_allclose(n * found, oracle.estimate(reports), atol=1e-9)
