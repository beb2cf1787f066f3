"""What an operator is shown of a distribution, and that its bands do not lean on it."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from aggregator.answers.curves import (
    FEW_REPORTS,
    Curve,
    CurveQuestion,
    ShownDensity,
    curve_of,
    even_ranges,
)
from edge_ldp import Hybrid, Mechanism, SquareWave
from edge_ldp.errors import CountsError, NoReportsError
from edge_ldp.estimate import Density, auto
from edge_ldp.estimate.joint import view_of

HIGH = 2047
WIDE = SquareWave(epsilon=1, low=0, high=HIGH, size=256)
OTHER = SquareWave(epsilon=2, low=0, high=HIGH, size=128)
NARROW = SquareWave(epsilon=1, low=0, high=511, size=256)
STREAM = Hybrid(epsilon=1, low=0, high=600, size=64)
HEAPED = np.zeros(HIGH + 1)
HEAPED[[40, 300, 301, 1500]] = 0.4, 0.3, 0.2, 0.1
SMOOTH = np.exp(-np.arange(HIGH + 1) / 200)
SMOOTH /= SMOOTH.sum()
ASKED = CurveQuestion(shares=(0.25, 0.5, 0.95), ranges=((0, 300), (400, 3000), (5, 5)))


def counts(
    law: NDArray[np.float64], n: int, *kinds: Mechanism
) -> dict[Mechanism, NDArray[np.int64]]:
    found = {}
    for seed, kind in enumerate(kinds):
        codes = np.maximum(view_of(kind, np.arange(HIGH + 2)).apply(law), 0)
        found[kind] = np.random.default_rng(seed).multinomial(n, codes / codes.sum())
    return found


def curve(given: dict[Mechanism, NDArray[np.int64]], seed: int = 0) -> Curve:
    counts = {mechanism: [found] for mechanism, found in given.items()}
    return curve_of(counts, rng=np.random.default_rng(seed), asked=ASKED)


def density(given: dict[Mechanism, NDArray[np.int64]]) -> ShownDensity:
    shown = curve(given).density
    assert shown is not None
    return shown


@pytest.mark.parametrize("law", [HEAPED, SMOOTH], ids=["heaped", "smooth"])
def test_one_kind_of_surveys_shows_the_choosers_density(law: NDArray[np.float64]) -> None:
    given = counts(law, 40_000, WIDE)
    chosen = auto(WIDE, given[WIDE], rng=np.random.default_rng(0))
    found = density(given)
    assert found.probabilities == chosen.density.probabilities.tolist()
    assert f"strength {chosen.strength:g};" in found.method


def test_heaps_are_smoothed_less_than_what_is_smooth() -> None:
    methods = [density(counts(law, 40_000, WIDE)).method for law in (HEAPED, SMOOTH)]
    heaped, smooth = (float(text.partition("strength ")[2].partition(";")[0]) for text in methods)
    assert heaped < 0.1 < smooth


@pytest.mark.parametrize("law", [HEAPED, SMOOTH], ids=["heaped", "smooth"])
@pytest.mark.parametrize(
    "kinds", [[WIDE], [WIDE, OTHER], [WIDE, NARROW, STREAM]], ids=["one", "two", "ranges"]
)
def test_what_is_shown_lies_within_bands_that_hold(
    law: NDArray[np.float64], kinds: list[Mechanism]
) -> None:
    """One seeded draw a case: seven bands of at least 95 %, of which one may miss."""
    found = curve(counts(law, 40_000, *kinds))
    below = np.concatenate([[0], np.cumsum(law)])
    quantiles = np.searchsorted(below[1:], ASKED.shares)
    shares = [below[min(int(b), HIGH + 1)] - below[int(a)] for a, b in ASKED.ranges]
    shown = found.density
    assert shown is not None
    bands = [
        *zip(shown.low, shown.probabilities, shown.high, strict=True),
        *((row.low, row.value, row.high) for row in found.quantiles),
        *((row.share_low, row.share, row.share_high) for row in found.ranges),
    ]
    assert all(low <= at <= high for low, at, high in bands)
    missed = 0
    for asked, value in zip(found.quantiles, quantiles.tolist(), strict=True):
        missed += not asked.low <= value <= asked.high
    for row, share in zip(found.ranges, shares, strict=True):
        missed += not row.share_low - 1e-12 <= share <= row.share_high + 1e-12
    assert missed <= 1


def unbiased(found: Curve) -> list[tuple[float, float]]:
    return [(row.low, row.high) for row in found.quantiles]


def test_the_bands_do_not_lean_on_stream_reports_nor_on_the_generator() -> None:
    given = counts(SMOOTH, 40_000, WIDE, STREAM)
    one = unbiased(curve(given))
    assert one == unbiased(curve({WIDE: given[WIDE]}, seed=1))


def test_a_kind_that_was_never_reported_is_no_kind() -> None:
    given = counts(SMOOTH, 40_000, WIDE)
    none = np.zeros(OTHER.code_count, np.int64)
    assert density({**given, OTHER: none}).method == density(given).method


def test_few_reports_are_warned_of_and_one_is_enough() -> None:
    found = curve(counts(SMOOTH, 1, WIDE))
    assert found.density is not None
    assert FEW_REPORTS in found.density.warnings
    assert unbiased(found) == [(0, HIGH)] * 3


def test_no_surveys_and_damaged_counts_are_told_apart() -> None:
    given = counts(SMOOTH, 1000, WIDE, STREAM)
    for kept, times in (((), 1), ((STREAM,), 1), ((WIDE,), 0)):
        with pytest.raises(NoReportsError):
            curve({kind: times * given[kind] for kind in kept})
    with pytest.raises(CountsError):
        curve({WIDE: given[WIDE][1:]})
    with pytest.raises(CountsError):
        curve({WIDE: given[WIDE] - 10**6, OTHER: np.ones(OTHER.code_count, np.int64)})
    negative = {**given, WIDE: given[WIDE] - 10**6}
    with pytest.raises(CountsError, match="counts: not finite numbers of at least 0"):
        curve(negative)


@pytest.mark.parametrize(
    ("mass", "count", "ends"),
    [  # of the cells from 0, 100, 200, 300, 400 on
        ((0.25, 0.25, 0.25, 0.25), 4, (0, 100, 200, 300, 400)),
        ((0.5, 0.3, 0.1, 0.1), 4, (0, 50, 100, 180, 400)),
        ((0.97, 0.01, 0.01, 0.01), 8, (0, 12, 26, 38, 52, 64, 76, 90, 400)),
        ((1, 0, 0, 0), 2, (0, 50, 400)),
        ((0, 0, 0, 1), 2, (0, 350, 400)),
    ],
)
def test_ranges_of_about_equal_shares_have_round_ends(
    mass: tuple[float, ...], count: int, ends: tuple[int, ...]
) -> None:
    edges = np.arange(0.0, 500, 100)
    density = Density(edges=edges, probabilities=np.array(mass), n=9, iterations=0, warnings=())
    found = even_ranges(density, count)
    assert [*(low for low, _ in found), found[-1][1]] == list(ends)
    assert even_ranges(density, 0) == []


def test_values_that_heap_are_in_one_range_and_every_share_is_a_bands() -> None:
    asked = replace(ASKED, bins=5)
    given = {mechanism: [found] for mechanism, found in counts(HEAPED, 40_000, WIDE).items()}
    found = curve_of(given, rng=np.random.default_rng(0), asked=asked)
    own, bins = found.ranges[:3], found.ranges[3:]
    assert tuple((row.low, row.high) for row in own) == ASKED.ranges
    assert [row.low for row in bins[1:]] == [row.high for row in bins[:-1]]
    assert sum(row.share for row in bins) == pytest.approx(1)
    assert all(row.share_low <= row.share <= row.share_high for row in found.ranges)
