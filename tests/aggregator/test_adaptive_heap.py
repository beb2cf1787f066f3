"""A heap at the ceiling: found where reports tell it, nowhere else, and θ goes by it."""

import numpy as np
import pytest
from numpy.typing import NDArray

from aggregator.adaptive import heap
from aggregator.adaptive.design import next_survey
from aggregator.adaptive.fit import Fit, Target, fit
from aggregator.adaptive.heap import SPREAD, USUAL, Heap, heap_in
from aggregator.adaptive.likelihood import reports_of
from aggregator.adaptive.posterior import Posterior, infer
from aggregator.adaptive.regret import Aim, costs_on
from aggregator.adaptive.shape import Prior, Shape
from aggregator.estimate.joint import Evidence, cells, view_of
from edge_ldp import SquareWave

Floats = NDArray[np.float64]
CEILING, MEAN, SHARE = 9999, 60.0, 0.004
EDGES, UNITS = cells(0, CEILING), np.arange(CEILING + 2)
PRIOR = Prior(EDGES, MEAN, {0.5: 40.0, 0.97: 210.0})
STIFF, LOOSE = Shape(0.5, 0.97, 15.0, 0.3, 0.0), Shape(0.5, 0.97, 15.0, 10.0, 0.0)
AIM = Aim(4.289, 2**20)


def law(share: float) -> Floats:
    masses = -np.diff(np.exp(-UNITS / MEAN))
    masses *= (1 - share) / masses.sum()
    masses[CEILING] += share
    return np.asarray(masses)


def wave(low: int, high: int, epsilon: float = 1.6) -> SquareWave:
    return SquareWave(epsilon=epsilon, low=low, high=high, size=256)


def expected(share: float, high: int, epsilon: float) -> Evidence:
    mechanism = wave(0, high, epsilon)
    return Evidence(mechanism, 65_536 * view_of(mechanism, UNITS).apply(law(share)))


def surveys(share: float, epsilon: float = 2) -> list[Evidence]:
    return [expected(share, high, epsilon) for high in (CEILING, 511, CEILING // 2)]


def fits(evidence: list[Evidence], prior: Prior = PRIOR) -> list[Fit]:
    start = np.log(-np.diff(np.exp(-prior.edges / MEAN)) + 1e-12) - prior.log_width
    reports = reports_of(evidence, prior.edges)
    found = [fit(Target(reports, prior, shape), start) for shape in (STIFF, LOOSE)]
    return sorted(found, key=lambda each: -each.evidence)


def heap_of(share: float, epsilon: float = 2) -> Heap | None:
    evidence = surveys(share, epsilon)
    return heap_in(evidence, fits(evidence))


def test_a_heap_is_found_with_its_share_in_a_cell_of_its_own() -> None:
    found = heap_of(SHARE)
    assert found is not None
    assert found.probability > 0.9
    best = found.fits[0].target
    assert best.priors.edges[-2:].tolist() == [CEILING, CEILING + 1]
    assert best.priors.atoms.tolist() == [CEILING]
    assert best.masses(found.fits[0].psi)[-1] == pytest.approx(SHARE, rel=0.1)
    evidences = [each.evidence for each in found.fits]
    assert evidences == sorted(evidences, reverse=True)


def test_where_nothing_heaps_up_there_is_none() -> None:
    assert heap_of(0.0) is None


def test_a_heap_that_reports_would_not_tell_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert heap_of(SHARE, epsilon=0.4) is None
    monkeypatch.setattr(heap, "STANDS_OUT", 0.0)
    monkeypatch.setattr(heap, "LIKELY", 0.0)
    assert heap_of(SHARE, epsilon=0.4) is not None  # the test can fail


def test_an_atom_at_the_ceiling_is_no_heap_besides() -> None:
    evidence, edges = surveys(SHARE), np.unique(np.append(EDGES, CEILING))
    prior = PRIOR.cut(edges, np.array([CEILING]), np.log(USUAL))
    assert heap_in(evidence, fits(evidence, prior)) is None


def test_a_heap_leaves_the_atoms_before_it_what_they_are() -> None:
    edges = np.unique(np.append(EDGES, [300, 301, CEILING]))
    one = PRIOR.cut(edges, np.array([300]), -4.0)
    both = one.cut(edges, np.array([CEILING]), np.log(USUAL), SPREAD)
    assert both.atoms.tolist() == [300, CEILING]
    at = int(np.searchsorted(edges, 300))
    before, after = one.of(STIFF), both.of(STIFF)
    assert before.mean[at] == after.mean[at] == -4.0
    assert after.mean[-1] == np.log(USUAL)
    inverse = np.linalg.inv(after.precision)
    assert inverse[-1, -1] == pytest.approx(SPREAD**2, rel=0.01)
    assert inverse[at, at] == pytest.approx(np.linalg.inv(before.precision)[at, at], rel=0.01)
    assert after.log_determinant == pytest.approx(np.linalg.slogdet(after.precision)[1])


def test_what_a_heap_adds_to_the_evidence_is_its_masses_average_over_the_prior() -> None:
    """Against a sum over a fine grid of the mass's logarithm."""
    evidence = surveys(SHARE)
    column = reports_of(evidence, np.unique(np.append(EDGES, CEILING))).expected[:, -1:]
    for found in fits(evidence):
        (pull,), (told,) = found.scores(column)
        away = np.linspace(-6, 6, 20_001)
        mass = USUAL * np.exp(SPREAD * away)
        weight = np.exp(-(away**2) / 2)
        sure = float(np.average(np.exp(pull * mass - told * mass**2 / 2), weights=weight))
        assert heap._gain(found, column) == pytest.approx(np.log(sure), abs=0.1)


def test_what_a_guess_promises_is_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def promised(*_: object) -> float:
        return 20.0

    monkeypatch.setattr(heap, "_gain", promised)
    assert heap_of(0.0) is None
    monkeypatch.setattr(heap, "NEGLIGIBLE", -np.inf)  # so that one is fitted only
    found = heap_of(0.0)
    assert found is not None
    assert found.probability > 0.9


@pytest.mark.parametrize(
    ("probability", "believed", "looked_for"),
    [(0.1, 0, 7), (0.25, 0, 21), (0.6, 0, 64), (0.75, 48, 0), (1.0, 64, 0)],
)
def test_a_likely_heap_is_looked_for_and_a_sure_one_believed(
    probability: float, believed: int, looked_for: int
) -> None:
    """Draws of 64; those looked for are beside 64 without, as the odds are."""
    found = Heap(probability, [])
    assert found.believed(64) == believed
    assert found.looked_for(64) == looked_for


def test_a_likely_heap_is_where_the_next_survey_looks_and_theta_takes_no_notice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    evidence = surveys(SHARE, epsilon=1.6)[:2]

    def look() -> tuple[Posterior, int, int]:
        found = infer(evidence, EDGES, rng=np.random.default_rng(0))
        np.testing.assert_allclose(found.explored.sum(axis=0), 1)
        costs = costs_on(found.edges, AIM)
        survey = next_survey(found, costs, wave, 65_536)
        return found, costs.choose(found.samples)[0], survey.high

    found, theta, high = look()
    assert found.edges[-2] == CEILING
    assert found.samples[-1].max() < 1e-4
    assert found.explored[-1].max() > SHARE / 3
    monkeypatch.setattr(heap, "STANDS_OUT", np.inf)
    without, same, low = look()
    np.testing.assert_array_equal(without.edges, EDGES)
    np.testing.assert_array_equal(without.explored, without.samples)
    assert abs(np.log(theta / same)) < 0.05
    assert low < high


@pytest.mark.timeout(600)
def test_theta_goes_by_a_sure_heap(monkeypatch: pytest.MonkeyPatch) -> None:
    units, truth, evidence = costs_on(UNITS, AIM), law(SHARE), surveys(SHARE, epsilon=1.6)

    def cost() -> float:
        found = infer(evidence, EDGES, rng=np.random.default_rng(0))
        np.testing.assert_allclose(found.samples.sum(axis=0), 1)
        theta = costs_on(found.edges, AIM).choose(found.samples)[0]
        return float(np.interp(theta, units.thetas, units.of(truth)) / units.of(truth).min())

    assert cost() > 4
    monkeypatch.setattr(heap, "BELIEF", 0.5)
    assert cost() < 1.05
