"""Bad input to every estimator and to what comes after: a typed error, or an answer that warns.

Never a NaN: filterwarnings = error makes a division by zero or a bad cast fail these tests too.
"""

from collections.abc import Callable, Sequence
from functools import partial
from math import inf, isfinite, nan

import numpy as np
import pytest

from edge_ldp import GeneralWave, Hybrid, SquareWave, Tuned
from edge_ldp.device.channel import wave
from edge_ldp.device.errors import EdgeLdpError, ParameterError
from edge_ldp.errors import CountsError, NoReportsError
from edge_ldp.estimate import Density, ahead, auto, em, ems, held_out, hh_admm
from edge_ldp.estimate.hierarchy import hh
from edge_ldp.estimate.joint import Evidence, cells, joint
from edge_ldp.estimate.pure import olh_counts, supports
from edge_ldp.gateway.ems import ONE_CODE
from studies.baselines.continuous import continuous_wave
from studies.baselines.grr import cfo, grr
from studies.baselines.haar import haar_hrr
from tests.tables import each

SIZE = 16
WAVE = SquareWave(epsilon=1, low=0, high=999, size=SIZE)
GENERAL = GeneralWave(epsilon=1, low=0, high=999, size=SIZE)
HYBRID = Hybrid(epsilon=1, low=0, high=999, size=SIZE)
TUNED = Tuned(epsilon=1, low=0, high=999)
EDGES = cells(0, 999)

Estimate = Callable[[Sequence[float]], Density]


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


# every estimator that takes counts of codes, with the number of its codes
BY_CODES: dict[str, tuple[int, Estimate]] = {
    "em": (WAVE.code_count, partial(em, WAVE)),
    "ems": (WAVE.code_count, partial(ems, WAVE)),
    "ems, leaps": (WAVE.code_count, partial(ems, WAVE, accelerate=True)),
    "ems, early": (WAVE.code_count, partial(ems, WAVE, accelerate=True, early=True)),
    "ems, general wave": (GENERAL.code_count, partial(ems, GENERAL)),
    "ems, hybrid": (HYBRID.code_count, partial(ems, HYBRID)),
    "ems, table": (TUNED.code_count, partial(ems, TUNED)),
    "ems, R-B": (SIZE, partial(ems, continuous_wave(1).model(SIZE))),
    "held out": (WAVE.code_count, lambda c: held_out(WAVE, c, rng=rng()).density),
    "auto": (WAVE.code_count, lambda c: auto(WAVE, c, rng=rng()).density),
    "joint": (WAVE.code_count, lambda c: joint([Evidence(WAVE, c)], EDGES)),
    "joint, stream": (HYBRID.code_count, lambda c: joint([Evidence(HYBRID, c)], EDGES)),
    "grr": (SIZE, partial(grr, wave(SIZE, 0, 3, 1))),
}
BAD: dict[str, Callable[[int], object]] = {
    "empty": lambda _: [],
    "none": lambda _: None,
    "one too few": lambda k: [1] * (k - 1),
    "of another mechanism": lambda k: [1] * (k + 7),
    "two axes": lambda k: [[1]] * k,
    "ragged": lambda k: [[1], [1, 2]] * k,
    "negative": lambda k: [-1, *[1] * (k - 1)],
    "nan": lambda k: [nan, *[1] * (k - 1)],
    "infinite": lambda k: [inf, *[1] * (k - 1)],
    "complex": lambda k: [1j] * k,
    "truth values": lambda k: [True] * k,
    "words": lambda k: ["1"] * k,
    "objects": lambda k: [None] * k,
    "above 2^53 in all": lambda k: [2**52] * k,
    "above 2^53 by one": lambda k: [2.0**53 + 2, *[0] * (k - 1)],
    "above 2^63": lambda k: [2**70, *[0] * (k - 1)],
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("name", BY_CODES)
def test_AGG_12_counts_that_are_none_are_refused(name: str, case: str) -> None:
    codes, estimate = BY_CODES[name]
    with pytest.raises(CountsError):
        estimate(BAD[case](codes))  # type: ignore[arg-type] # what it must survive


@pytest.mark.parametrize("name", BY_CODES)
def test_AGG_11_no_reports_are_no_result(name: str) -> None:
    codes, estimate = BY_CODES[name]
    with pytest.raises(NoReportsError):
        estimate([0] * codes)


@pytest.mark.parametrize("n", [1, 65_536, 2**53])
@pytest.mark.parametrize("at", [0, -1])
@pytest.mark.parametrize("name", BY_CODES)
def test_AGG_11_all_reports_of_one_code_are_a_density_with_a_warning(
    name: str, at: int, n: int
) -> None:
    codes, estimate = BY_CODES[name]
    counts = [0] * codes
    counts[at] = n
    found = estimate(counts)
    is_a_density(found)
    assert found.n == n
    assert ONE_CODE in found.warnings
    assert found.probabilities[len(found.probabilities) // 2 :].sum() > 0.3 or at == 0


@pytest.mark.parametrize("name", [name for name in BY_CODES if name not in ("grr", "held out")])
def test_reports_that_are_hardly_any_are_none(name: str) -> None:
    """Expected counts may be fractions, but 10⁻³⁰⁰ reports are no evidence of anything."""
    codes, estimate = BY_CODES[name]
    with pytest.raises(EdgeLdpError):
        estimate([1e-300] * codes)


def test_the_cap_is_told_by_the_joint_estimate_too() -> None:
    counts = np.arange(WAVE.code_count)
    found = joint([Evidence(WAVE, counts)], EDGES, tolerance=0, max_iterations=3)
    assert any("cap" in warning for warning in found.warnings)
    assert not joint([Evidence(WAVE, counts)], EDGES).warnings
    for edges in ([0], [0, 0, 5], [5, 0]):
        with pytest.raises(ParameterError, match="edges"):
            joint([Evidence(WAVE, counts)], np.array(edges))


# every estimator from supports: all of them sit behind `supports`, which refuses what is none


@pytest.mark.parametrize(
    ("n", "counts"),
    each(
        (0, []),
        (1, [[1, 0]], [nan, 0], [-1, 1], [0.5, 0.5], [1j, 0], ["1", "0"], [True, False]),
        (1, [2**70, 0]),
        (4, [5, 0]),
    ),
)
def test_AGG_12_supports_that_are_none_are_refused(counts: list[float], n: int) -> None:
    with pytest.raises(CountsError):
        supports(counts, n, own=0.5, other=0.25)


# (supports of a node's two children, reports): one report, all alike, none supported, the most
EXTREME = [([1, 0], 1), ([1, 1], 1), ([0, 0], 1), ([9, 0], 9), ([0, 0], 9), ([2**53, 0], 2**53)]


@pytest.mark.parametrize(("pair", "n"), EXTREME)
def test_AGG_11_extreme_supports_are_densities(pair: list[int], n: int) -> None:
    leaves = [*pair, 0, 0]
    tree = [supports(x, n, own=0.5, other=0.25) for x in (pair, leaves)]
    is_a_density(cfo(tree[0]))
    is_a_density(hh(tree, 4, fanout=2))
    is_a_density(hh_admm(tree, 4, fanout=2))
    is_a_density(ahead(4).grown(tree[0]).density())
    with pytest.raises(NoReportsError):
        supports([0, 0], 0, own=0.5, other=0.25)


def test_AGG_12_trees_of_other_shapes_are_refused() -> None:
    tree = [supports([1] * nodes, 2, own=0.5, other=0.25) for nodes in (2, 4)]
    for estimate in (hh, hh_admm):
        for levels in ([], tree[:1], tree[::-1], [*tree, tree[0]]):
            with pytest.raises(CountsError):
                estimate(levels, 4, fanout=2)
    with pytest.raises(CountsError):
        ahead(4).grown(tree[1])
    with pytest.raises(NoReportsError):
        ahead(4).density()


def test_AGG_12_haar_and_hadamard_counts_that_are_none_are_refused() -> None:
    good = [np.full((rows, 2), 3) for rows in (2, 1)]
    assert haar_hrr(good, 4, own=0.7).n == 18
    for levels in ([], good[:1], good[::-1], [good[0] * nan, good[1]], [-good[0], good[1]]):
        with pytest.raises(CountsError):
            haar_hrr(levels, 4, own=0.7)
    with pytest.raises(CountsError):
        haar_hrr([good[0] * 2**52, good[1]], 4, own=0.7)
    with pytest.raises(NoReportsError):
        haar_hrr([x * 0 for x in good], 4, own=0.7)
    one = [np.array([[1, 0], [0, 0]]), np.zeros((1, 2), int)]
    is_a_density(haar_hrr(one, 4, own=0.7))


def test_AGG_12_hashed_and_real_reports_that_are_none_are_refused() -> None:
    assert not olh_counts(np.zeros((0, 3), int), 4, 3).any()
    for reports in ([], [[nan, 0, 0]], [[0, 0, 0]], [[1, 0, 3]], [[1, 0]]):
        with pytest.raises(CountsError):
            olh_counts(reports, 4, 3)
    for report in (nan, inf, 9.0):
        with pytest.raises(CountsError):
            continuous_wave(1).count([report], 8)


def is_a_density(found: Density) -> None:
    assert np.isfinite(found.probabilities).all()
    assert found.probabilities.min() >= 0
    assert found.probabilities.sum() == pytest.approx(1)
    assert isfinite(found.mean())
    assert isfinite(found.variance())
