"""Two published histograms that differ by one device: what their difference tells (PRV-16)."""

from fractions import Fraction

import pytest

from edge_ldp.mechanisms import Hybrid, Mechanism, SquareWave

MECHANISMS = [
    Hybrid(epsilon=1, low=0, high=3000, size=16),
    SquareWave(epsilon=1, low=0, high=4000, size=32),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: m.name)
def test_the_difference_of_two_crowds_is_one_report_and_tells_no_more_PRV_16(
    mechanism: Mechanism,
) -> None:
    """Counts are sums of codes, so the difference is the left-out device's code: ε, whatever n is.

    Exact, over every code and values all over the range.
    """
    others = [7, 0, 3]  # codes of the rest of the crowd
    span = range(mechanism.low, mechanism.high + 1, max(1, (mechanism.high - mechanism.low) // 40))
    laws = []
    for value in span:
        law: dict[tuple[int, ...], Fraction] = {}
        for code, chance in enumerate(mechanism.probabilities(value)):
            with_it, without = [0] * mechanism.code_count, [0] * mechanism.code_count
            for other in others:
                with_it[other] += 1
                without[other] += 1
            with_it[code] += 1
            told = tuple(a - b for a, b in zip(with_it, without, strict=True))
            law[told] = law.get(told, Fraction(0)) + chance
        laws.append(law)
    for told in laws[0]:
        chances = [law[told] for law in laws]
        assert max(chances) <= mechanism.max_ratio * min(chances)
