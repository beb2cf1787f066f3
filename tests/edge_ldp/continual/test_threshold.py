"""θ: the published score, exact laws, pure ε by enumeration."""

from collections import Counter
from fractions import Fraction
from functools import partial
from itertools import combinations_with_replacement, product
from math import exp

import numpy as np
import pytest
from numpy.typing import NDArray

from edge_ldp.continual import tops_design
from edge_ldp.continual.exact import discrete_laplace
from edge_ldp.continual.shape import Shape, best_pruning
from edge_ldp.continual.threshold import (
    GRID_BITS,
    MAX_THETA,
    Fixed,
    NoisyMax,
    Quantile,
    permute_and_flip,
)
from edge_ldp.ratio import exp_fraction
from tests.edge_ldp.continual.paths import bounded_law, flipped_law, noise_from
from tests.edge_ldp.laws import scripted
from tests.tables import each

F = Fraction
TREE = Shape("consistent", 16, 1 << 20)


def test_the_score_is_equation_6_with_h_5_and_values_above_theta() -> None:
    counts = Counter({3: 10, 7: 5, 30: 1})
    scores = NoisyMax(40, TREE, F(1, 10), F(1)).scores(counts)
    for theta, score in enumerate(scores, start=1):
        above = sum(n for value, n in counts.items() if value > theta)
        noise = 3 * 16 * theta / (60 * 2**20 * 0.1) * (2 * 15 * 5**3) ** 0.5
        assert score / 2**GRID_BITS == pytest.approx(-noise - above, abs=2**-GRID_BITS)


def test_a_heavy_tail_is_cut_where_its_noise_begins_to_cost_more() -> None:
    """10,000 readings whose tail halves every 4: the best θ by hand, from eq 6."""
    counts = Counter({value: round(10_000 * 0.84**value) for value in range(1, 60)})
    m = sum(counts.values())
    slope = 3 * m / (60 * 2**20 / 100) * (2 * 15 * 125) ** 0.5  # readings a unit of θ costs
    scores = NoisyMax(200, TREE, F(1, 100), F(1)).scores(counts)
    best = 1 + max(range(200), key=scores.__getitem__)
    assert counts[best] >= slope >= counts[best + 1]


def test_a_larger_tuning_constant_cuts_less() -> None:
    """c is a length in the readings' unit: watts of 1,000 and more need more than baskets' 60."""
    counts = Counter(dict.fromkeys(range(0, 4000, 50), 50))
    found = [
        tops_design(epsilon=1, ceiling=5000, readings=4000, chunk=1 << 16, tuning=c).optimiser
        for c in (60, 1500)
    ]
    few, many = (rule.choose(counts, noise_from(1)) for rule in found)
    assert few < many
    assert 3000 < many < 4500


def test_permute_and_flip_is_the_noisy_max_with_exponential_noise() -> None:
    """Its law against the closed form Σ over subsets (inclusion and exclusion), 3 candidates."""
    scores, e = [0, -1, -2], F(1, 2)
    law = flipped_law(lambda draw, flip: permute_and_flip(scores, e, draw, flip))
    p = [exp_fraction(-e * k) for k in range(3)]

    def chance(i: int) -> Fraction:  # ∫ over u of p_i Π (1 - p_j u)
        a, b = (p[j] for j in range(3) if j != i)
        return p[i] * (1 - (a + b) / 2 + a * b / 3)

    for i in range(3):
        assert abs(law[i] - chance(i)) < F(1, 2**140)


@pytest.mark.parametrize("epsilon", [F(1, 2), F(2)])
def test_the_noisy_max_is_epsilon_private_on_all_tiny_streams(epsilon: Fraction) -> None:
    """All streams of 3 readings up to 3, all neighbours, all θ; exact laws of permute-and-flip."""
    optimiser = NoisyMax(3, Shape("consistent", 2, 4), F(1), epsilon)
    laws: dict[tuple[int, ...], dict[int, Fraction]] = {}
    for readings in product(range(4), repeat=3):
        key = tuple(sorted(readings))
        if key not in laws:
            scores = optimiser.scores(Counter(readings))
            laws[key] = flipped_law(partial(permute_and_flip, scores, epsilon / (1 << GRID_BITS)))
            assert abs(sum(laws[key].values(), F(0)) - 1) < F(1, 2**100)
    limit = exp_fraction(epsilon) * (1 + F(1, 2**90))
    worst = F(0)
    for readings in product(range(4), repeat=3):
        for at, other in product(range(3), range(4)):
            near = (*readings[:at], other, *readings[at + 1 :])
            one, two = laws[tuple(sorted(readings))], laws[tuple(sorted(near))]
            worst = max(worst, *(one[i] / two[i] for i in one))
    assert 1 < worst <= limit


def test_both_variants_mostly_choose_where_the_score_is_high() -> None:
    counts = Counter({1: 500, 9: 1})
    optimiser = NoisyMax(10, TREE, F(1), F(3), "laplace")
    found = Counter(optimiser.choose(counts, noise_from(seed)) for seed in range(300))
    law = Counter(NoisyMax(10, TREE, F(1), F(3)).choose(counts, noise_from(s)) for s in range(300))
    assert set(found) | set(law) <= set(range(1, 11))
    assert min(found[9], found[10]) > max(found[t] for t in range(1, 9))
    assert min(law[9], law[10]) > max(law[t] for t in range(1, 9))


@pytest.mark.parametrize("epsilon", [F(1, 3), F(2)])
def test_the_published_variant_adds_laplace_noise_of_one_over_epsilon(epsilon: Fraction) -> None:
    """On the scores' grid of 2^-10 the scale is 2^10/ε; the same tape gives the same noise."""
    optimiser = NoisyMax(9, TREE, F(1), epsilon, "laplace")
    counts = Counter({1: 5, 4: 3, 9: 1})
    for seed in range(50):
        draw = noise_from(seed)
        scores = optimiser.scores(counts)
        noisy = [score + discrete_laplace((1 << GRID_BITS) / epsilon, draw) for score in scores]
        assert optimiser.choose(counts, noise_from(seed)) == 1 + noisy.index(max(noisy))


def noisy_max_law(scores: list[int], q: float, reach: int) -> list[float]:
    """P(argmax) of integers plus discrete Laplace noise, the least index winning ties."""
    n = np.arange(-reach, reach + 1)
    mass = (1 - q) / (1 + q) * q ** np.abs(n)
    below = np.concatenate([[0.0], np.cumsum(mass)])  # P(noise < n)

    def less(x: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.asarray(below[np.clip(x + reach, 0, 2 * reach + 1)])

    found = []
    for i, score in enumerate(scores):
        chance = mass.copy()
        for j, other in enumerate(scores):
            if j != i:  # an earlier one must be less, a later one may be equal
                chance *= less(n + score - other + (j > i))
        found.append(float(chance.sum()))
    return found


@pytest.mark.parametrize("epsilon", [F(1, 2), F(2)])
def test_the_published_noisy_max_is_epsilon_private_on_all_tiny_streams(epsilon: Fraction) -> None:
    """All streams of 3 readings up to 3, all neighbours: laws summed to 1 within 10⁻⁹."""
    optimiser = NoisyMax(3, Shape("consistent", 2, 4), F(1), epsilon, "laplace")
    q = exp(-float(epsilon) / (1 << GRID_BITS))
    reach = int(40 * (1 << GRID_BITS) / epsilon)
    laws: dict[tuple[int, ...], list[float]] = {
        key: noisy_max_law(optimiser.scores(Counter(key)), q, reach)
        for key in combinations_with_replacement(range(4), 3)
    }
    assert all(abs(sum(law) - 1) < 1e-9 for law in laws.values())
    worst = 0.0
    for key, one in laws.items():
        for at, other in product(range(3), range(4)):
            two = laws[tuple(sorted((*key[:at], other, *key[at + 1 :])))]
            worst = max(worst, *(a / b for a, b in zip(one, two, strict=True)))
    assert 1.05 < worst <= exp(epsilon) * (1 + 1e-9)


def test_the_quantile_needs_no_bound_and_stops_near_its_share() -> None:
    counts = Counter(dict.fromkeys(range(1000), 10))
    found = [Quantile(F(1), F(9, 10)).choose(counts, noise_from(seed)) for seed in range(20)]
    assert all(850 <= theta <= 960 for theta in found)
    beyond = Counter({MAX_THETA * 2: 1000})
    assert Quantile(F(1), F(9, 10)).choose(beyond, noise_from(1)) == MAX_THETA


@pytest.mark.parametrize("epsilon", [F(1), F(2)])
def test_the_quantile_is_epsilon_private_on_tiny_streams(epsilon: Fraction) -> None:
    """Its law in closed form from the counts it compares: Σ over the threshold's noise.

    P(stop at i) = Σ_k g(k)·Π_{j<i} P(c_j + μ < T + k)·P(c_i + μ ≥ T + k), g geometric,
    q = e^(-ε/2); the sum is cut where what is left weighs less than 10⁻⁹.
    """
    q = exp(-epsilon / 2)

    def law(readings: tuple[int, ...]) -> list[float]:
        below = [sum(r <= c for r in readings) for c in range(4)]
        found = [0.0] * 4
        for k in range(int(45 / epsilon) + 20):
            alive = (1 - q) * q**k
            for i, c in enumerate(below):
                passes = q ** max(0, 2 + k - c)
                found[i] += alive * passes
                alive *= 1 - passes
        return found

    for readings in product(range(5), repeat=3):
        for at, other in product(range(3), range(5)):
            near = (*readings[:at], other, *readings[at + 1 :])
            for one, two in zip(law(readings), law(near), strict=True):
                assert one <= exp(epsilon) * two + 1e-9


def test_the_quantile_stops_with_the_law_that_was_enumerated() -> None:
    """Its own paths, bounded, against the closed form: one reading, ε = 2 so that q = e^-1."""
    optimiser = Quantile(F(2), F(1, 2), F(21, 20))
    law, cut = bounded_law(lambda draw: optimiser.choose(Counter({1: 1}), draw), F(1, 3000))
    q = exp(-1)
    stop_0 = sum((1 - q) * q**k * q ** (1 + k) for k in range(50))  # count 0, target 1
    stop_1 = sum((1 - q) * q**k * (1 - q ** (1 + k)) * q**k for k in range(50))
    assert float(law[1]) <= stop_0 + stop_1 <= float(law[1] + cut)
    assert float(cut) < 0.5


@pytest.mark.parametrize(
    ("s", "epsilon"),
    each((3, "1/100", "2/100", "3/100"), (2, "4/100", "5/100", "1/10", "1/5", "1/2"), (1, "1")),
)
def test_pruning_is_the_integer_argmin_of_equation_7(epsilon: str, s: int) -> None:
    e = float(F(epsilon))
    cost = [15 * (5 - k) ** 3 * 2 / e**2 + 16 ** (2 * k) / 36 for k in range(5)]
    assert best_pruning(16, 1 << 20, F(epsilon)) == cost.index(min(cost)) == s


def test_fixed_thresholds_are_plain() -> None:
    assert Fixed(7).choose(Counter([1, 2, 3]), scripted()) == 7
    assert (Quantile(F(1)).share, Quantile(F(1)).growth) == (F(995, 1000), F(21, 20))
