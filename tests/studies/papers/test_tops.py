"""The published code's behaviour, and the tables that must come out on the nose."""

from fractions import Fraction

import numpy as np
import pytest

from studies.evaluate.metrics import query_pairs
from studies.evaluate.study import StudyRow, Task
from studies.evaluate.tops import published
from studies.evaluate.tops.layout import CHUNK, READINGS
from studies.evaluate.tops.systems import noisy_max, structure
from studies.papers import tops, tops_runs
from studies.papers.tops_runs import THETA, exact_constant, first_readings, simulated_constant


@pytest.mark.parametrize("data", sorted(tops_runs.SCORE_THETA))
@pytest.mark.parametrize("at", range(4))
def test_theta_of_the_score_without_noise_is_the_references(data: str, at: int) -> None:
    """h = 5 and values above θ, on the authors' first 65,536 readings."""
    counts = first_readings(data)
    assert counts.total() == READINGS
    epsilon = Fraction(repr(tops_runs.EPSILONS[at]))
    scores = noisy_max(20_000, CHUNK, epsilon, epsilon).scores(counts)
    assert 1 + max(range(len(scores)), key=scores.__getitem__) == tops_runs.SCORE_THETA[data][at]


@pytest.mark.parametrize(("epsilon", "leaves"), tops_runs.LEAVES.items())
def test_leaf_sizes_are_the_references_by_both_rules(
    epsilon: float, leaves: tuple[int, int]
) -> None:
    code, argmin = leaves
    assert 16 ** published.pruning(CHUNK, epsilon) == code
    assert structure("Ĥ16c", CHUNK, Fraction(repr(epsilon))).block == argmin


def test_the_constants_are_within_five_per_cent_of_the_exact_oracle() -> None:
    pairs = query_pairs(CHUNK, rng=np.random.default_rng(1), count=600)
    for name, known in tops_runs.K_EXACT.items():
        exact = exact_constant(structure(name, CHUNK, Fraction(1)), pairs)
        assert exact == pytest.approx(known, rel=0.05)


@pytest.mark.slow
def test_simulated_constants_agree_with_exact_ones() -> None:
    """Noise really drawn, r = 4,096, 60 times 2 to 20 trees: ± 5 %, 2 standard errors or more."""
    pairs = query_pairs(4096, rng=np.random.default_rng(1), count=300)
    for name in ("H2", "H16c", "Ĥ16c, s=1", "Ĥ16c, s=2"):
        shape = structure(name, 4096, Fraction(1))
        found = [
            simulated_constant(shape, pairs, np.random.default_rng(seed)) for seed in range(60)
        ]
        assert np.mean(found) == pytest.approx(exact_constant(shape, pairs), rel=0.05)


def test_the_published_noisy_max_counts_one_level_too_many_and_may_choose_zero() -> None:
    """The score is best at 42 where h = 5 gives 46; at ε = 0.01 noise moves it a little."""
    counts = first_readings("pos")
    readings = np.repeat(list(counts), list(counts.values()))
    rng = np.random.default_rng(3)
    found = [published.published_noisy_max(readings, 1638, 0.01, CHUNK, rng) for _ in range(40)]
    assert 36 <= np.mean(found) <= 48
    nothing = np.zeros(READINGS, np.int64)
    assert 0 in [published.published_noisy_max(nothing, 50, 5.0, CHUNK, rng) for _ in range(40)]


def test_the_published_trees_have_the_exact_constants_too() -> None:
    """Float noise, zeros as the stream: within 15 % of K at r = 4,096, in 30 trees each."""
    zeros = np.zeros(4096, np.int64)
    pairs = query_pairs(4096, rng=np.random.default_rng(2), count=300)
    pairs = pairs[pairs[:, 0] >= 256]
    rng = np.random.default_rng(4)
    for name, sums in (("H2", published.binary_sums), ("Ĥ16c", published.consistent_sums)):
        squares = []
        for _ in range(30):
            released = sums(zeros, pairs, THETA, 0.5, rng)
            squares.append(np.mean(released**2))
        s = published.pruning(4096, 0.5)
        shape = structure(f"Ĥ16c, s={s}" if name == "Ĥ16c" else name, 4096, Fraction(1, 2))
        theirs = np.mean(squares) * 0.5**2 / THETA**2
        assert theirs == pytest.approx(exact_constant(shape, pairs), rel=0.15)


def test_tables_of_the_papers_scale_stand_beside_the_reference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def row(figure: str, series: str, x: float, **measures: float) -> StudyRow:
        return StudyRow(Task(figure, "pos", series, x, 0), measures)

    monkeypatch.setattr(tops, "_constants", str)  # drawing noise of 2^20 takes minutes
    text = tops.tables(
        [
            row("3", "ToPS", 0.05, mse=3.0e8),
            row("3", "ToPS, s=3", 0.05, mse=1.8e8),
            row("3", "ToPS, published code", 0.05, mse=1.5e8),
            row("5", "H2", 0.01, mse=6.13e10),
        ]
    )
    assert "| pos | 0.05 | 60 | 59 | 59 |" in text
    assert "| 0.05 | 256 | 256 | 4096 | 4096 |" in text
    assert "| pos | ToPS | 0.05 | 3.00e+08 | 1.50e+08 | 2.00 | 1.20 | 1.00 |" in text
    assert "| pos | H2 | 0.01 | 6.13e+10 | 6.13e+10 | 1.00 |" in text
