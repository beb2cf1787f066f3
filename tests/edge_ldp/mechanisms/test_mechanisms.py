"""Exact laws of the mechanisms, and the figures published about them."""

from decimal import Decimal
from fractions import Fraction
from math import exp, nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_ldp import (
    GeneralWave,
    Hybrid,
    Mechanism,
    ParameterError,
    Piecewise,
    SquareWave,
    StochasticRounding,
)
from edge_ldp.device.channel import wave
from edge_ldp.device.lattice import bucket_edge, to_bucket
from edge_ldp.mechanisms import from_plan
from edge_ldp.mechanisms.waved import square_wave_width
from tests.edge_ldp.laws import (
    ALL,
    BUCKETED,
    HYBRIDS,
    LATTICED,
    draw_from,
    inside_and_out,
    law_of,
    outcomes,
    small,
    words,
)
from tests.tables import each

SIZED = [
    SquareWave(epsilon=1, low=0, high=5000),
    StochasticRounding(epsilon=1, low=-200, high=1657),
    Piecewise(epsilon=1, low=0, high=1000),
    Hybrid(epsilon=1, low=0, high=1000),
    Hybrid(epsilon="0.5", low=-50, high=50),
    Piecewise(epsilon=4, low=0, high=1 << 40, size=1024),
    SquareWave(epsilon="0.01", low=-7, high=90, size=64),
    GeneralWave(epsilon=1, low=0, high=5000, size=256),
    GeneralWave(epsilon="0.2", low=-40, high=900, size=100, top="0.4"),
]


@pytest.mark.parametrize("m", ALL, ids=repr)
def test_the_law_of_all_draws_is_the_law_that_is_stated(m: Mechanism) -> None:
    for value in inside_and_out(m):
        stated = m.probabilities(value)
        law = law_of(m, value)
        assert len(stated) == m.code_count
        assert sum(stated) == 1
        assert [law.get(code, 0) for code in range(m.code_count)] == stated
        assert law.keys() <= set(range(m.code_count))


@pytest.mark.parametrize("m", ALL, ids=repr)
def test_no_code_is_more_than_the_ratio_likelier_and_some_code_is_just_that(m: Mechanism) -> None:
    laws = [law_of(m, value) for value in inside_and_out(m)]
    for law in laws[1:]:
        assert law.keys() == laws[0].keys()
    odds = [
        max(column) / min(column) for column in ([law[code] for law in laws] for code in laws[0])
    ]
    served = [channel for coin, _, channel in m.branches if coin]
    assert max(odds) == max(Fraction(*channel.ratio()) for channel in served)
    assert max(odds) <= m.max_ratio


@pytest.mark.parametrize("m", LATTICED, ids=repr)
def test_the_mean_of_a_decoded_stream_report_is_the_clamped_value_exactly(m: Mechanism) -> None:
    for value in inside_and_out(m):
        mean = sum(share * m.decode_exact(code) for code, share in law_of(m, value).items())
        assert mean == min(max(value, m.low), m.high)


@pytest.mark.parametrize("m", BUCKETED, ids=repr)
def test_the_mean_of_a_decoded_survey_report_is_the_centre_of_its_bucket(m: Mechanism) -> None:
    width = Fraction(m.high - m.low + 1, m.size)
    for value in inside_and_out(m):
        bucket = to_bucket(value, m.low, m.high, m.size)
        mean = sum(share * m.decode_exact(code) for code, share in law_of(m, value).items())
        assert mean == m.low - Fraction(1, 2) + (bucket + Fraction(1, 2)) * width
        if width.denominator == 1:
            first, last = (bucket_edge(b, m.low, m.high, m.size) for b in (bucket, bucket + 1))
            assert mean == Fraction(first + last - 1, 2)


@pytest.mark.parametrize("m", ALL, ids=repr)
def test_the_variance_of_every_value_is_that_of_its_law(m: Mechanism) -> None:
    for value in inside_and_out(m):
        law = law_of(m, value)
        mean = sum(share * m.decode_exact(code) for code, share in law.items())
        square = sum(share * m.decode_exact(code) ** 2 for code, share in law.items())
        assert m.variance(value) == pytest.approx(float(square - mean * mean), rel=1e-12)


@pytest.mark.parametrize("m", ALL, ids=repr)
def test_the_worst_variance_is_reached_and_never_passed(m: Mechanism) -> None:
    fine = 97
    wide = from_plan(m.to_plan() | {"low": m.low * fine, "high": m.high * fine})
    variances = [wide.variance(value) for value in range(wide.low, wide.high + 1)]
    assert max(variances) <= wide.worst_variance * (1 + 1e-12)
    assert max(variances) >= wide.worst_variance * (1 - 1e-4)
    assert max(map(m.variance, inside_and_out(m))) <= m.worst_variance * (1 + 1e-12)


def test_the_worst_variance_holds_for_a_mixture_of_any_two_lattices() -> None:
    m = small(Hybrid, 0, 6000, (3, 0, 36, 1), (4, 2, 43, 1), coin=(3, 4))
    variances = [m.variance(value) for value in range(0, 6001, 4)]
    assert max(variances) <= m.worst_variance * (1 + 1e-12)
    assert max(variances) >= m.worst_variance * (1 - 1e-4)


@pytest.mark.parametrize("m", ALL, ids=repr)
def test_number_and_order_of_draws_do_not_tell_the_value(m: Mechanism) -> None:
    def asked_of(value: int) -> set[tuple[int, ...]]:
        return {asked for asked, _ in outcomes(lambda draw: m.perturb(value, draw=draw))}

    branch_coin = (m.randomizer.coin[1],) if len(m.branches) > 1 else ()
    rounding = (m.high - m.low,) if m in LATTICED else ()
    wanted = {(*branch_coin, *rounding, wave.total) for coin, _, wave in m.branches if coin}
    for value in inside_and_out(m):
        assert asked_of(value) == wanted


@pytest.mark.parametrize("m", SIZED, ids=repr)
def test_every_report_takes_the_same_number_of_words_PRV_09(m: Mechanism) -> None:
    """PRV_09: how much entropy is read depends on rejected words only, never on the value."""
    span = m.high - m.low
    for value in (m.low - 10**6, m.low, m.low + 1, m.low + span // 2, m.high, m.high + 10**9):
        draw, source = draw_from(words(*[1] * 9))
        m.perturb(value, draw=draw)
        assert len(source.asked) == len(m.branches) - 1 + (m.encoder != SquareWave.encoder) + 1


def test_a_lattice_of_two_values_still_takes_the_rounding_word() -> None:
    m = StochasticRounding(epsilon=1, low=0, high=1)
    draw, source = draw_from(words(5, 6))
    assert m.perturb(1, draw=draw) in (0, 1)
    assert source.left == b""  # draw(1) took a word too


@given(st.sampled_from(SIZED), st.integers(), st.lists(st.integers(0, 2**64 - 1), min_size=3))
def test_a_code_lies_in_range_whatever_the_value_and_the_words(
    m: Mechanism, value: int, drawn: list[int]
) -> None:
    left = list(drawn)
    code = m.perturb(value, draw=lambda n: left.pop() % n)
    assert 0 <= code < m.code_count
    assert m.probabilities(value)[code] > 0


@pytest.mark.parametrize("m", SIZED, ids=repr)
def test_the_extreme_words_give_codes_in_range(m: Mechanism) -> None:
    for value in (m.low, m.high):
        for share in (0, 1, 2, 3):
            code = m.perturb(value, draw=lambda n, share=share: (n - 1) * share // 3)  # type: ignore[misc]
            assert 0 <= code < m.code_count


@pytest.mark.parametrize("m", SIZED, ids=repr)
def test_a_plan_carries_a_mechanism_whole(m: Mechanism) -> None:
    again = from_plan(m.to_plan())
    assert again == m
    assert hash(again) == hash(m)
    assert type(again) is type(m)
    assert again.to_plan() == m.to_plan()
    assert again.decode(0) == m.decode(0)
    assert repr(again) == repr(m)


def test_mechanisms_of_other_numbers_or_names_are_not_equal() -> None:
    one = Piecewise(epsilon=1, low=0, high=10, size=4)
    assert one != Piecewise(epsilon=1, low=0, high=11, size=4)
    assert one != SquareWave(epsilon=1, low=0, high=10, size=4)
    assert one != "piecewise"


# Published figures: docs/methods.md, Optimal tables, Poisoned reports, [ToPS] Appendix E.2


@pytest.mark.parametrize(
    ("epsilon", "sr", "pm", "hm"),
    [
        ("0.5", 16.671, 21.223, 16.671),
        ("1", 4.683, 5.224, 4.289),
        ("2", 1.724, 1.228, 1.042),
        ("3", 1.221, 0.493, 0.432),
        ("4", 1.076, 0.241, 0.219),
    ],
)
def test_unit_variances_are_those_of_the_papers(
    epsilon: str, sr: float, pm: float, hm: float
) -> None:
    low, high = -5000, 5000
    assert round(StochasticRounding(epsilon=epsilon, low=low, high=high).unit_variance, 3) == sr
    for kind, published in ((Piecewise, pm), (Hybrid, hm)):
        made = kind(epsilon=epsilon, low=low, high=high)
        assert made.unit_variance == pytest.approx(published, rel=0.03)
        fine = kind(epsilon=epsilon, low=low, high=high, size=1024)
        assert fine.unit_variance == pytest.approx(published, rel=0.01)


def test_the_influence_of_one_liar_is_the_published_one() -> None:
    assert StochasticRounding(epsilon=1, low=0, high=9).influence == pytest.approx(2.16, abs=0.005)
    for kind in (Piecewise, Hybrid):
        assert kind(epsilon=1, low=0, high=1000).influence == pytest.approx(4.08, rel=0.03)
        made = kind(epsilon=1, low=0, high=1000, size=4096)
        assert made.influence == pytest.approx(4.08, abs=0.01)


def test_a_branch_that_never_serves_gives_no_influence() -> None:
    hybrid = Hybrid(epsilon="0.5", low=0, high=100)
    rounding = StochasticRounding(epsilon="0.5", low=0, high=100)
    assert hybrid.influence == rounding.influence
    assert hybrid.unit_variance == pytest.approx(rounding.unit_variance, rel=1e-12)


def test_influence_is_the_largest_decoded_value_on_the_unit_range() -> None:
    for m in ALL:
        half = Fraction(m.high - m.low, 2)
        served = [
            code
            for coin, first, wave in m.branches
            if coin
            for code in range(first, first + wave.code_count)
        ]
        largest = max(abs((m.decode_exact(code) - m.low) / half - 1) for code in served)
        assert m.influence == float(largest)


@pytest.mark.parametrize("epsilon", ["0.001", "0.3", "0.61", "0.6100001", "1", "4"])
def test_the_hybrids_coin_is_the_papers_rounded_down_and_0_up_to_epsilon_0_61(epsilon: str) -> None:
    share = 1 - (-Decimal(epsilon) / 2).exp() if Decimal(epsilon) > Decimal("0.61") else 0
    hybrid = Hybrid(epsilon=epsilon, low=0, high=1000)
    assert hybrid.randomizer.coin == (int(share * (1 << 16)), 1 << 16)


@pytest.mark.parametrize("epsilon", [0.5, 1, 2, 4])
def test_stochastic_rounding_decodes_to_the_papers_two_outputs(epsilon: float) -> None:
    m = StochasticRounding(epsilon=epsilon, low=-1000, high=1000)
    e = exp(epsilon)
    assert m.decode(1) == pytest.approx(1000 * (e + 1) / (e - 1), rel=1e-4)
    assert m.decode(0) == -m.decode(1)


@pytest.mark.parametrize("epsilon", ["0.0001", "0.01", "0.5", "1", "2", "8", "32"])
def test_the_width_of_the_square_wave_is_the_papers_also_where_it_cancels(epsilon: str) -> None:
    eps = Decimal(epsilon)
    e = eps.exp()  # 28 digits; 8 of them cancel at 1e-4
    closed = (eps * e - e + 1) / (2 * e * (e - 1 - eps))
    assert float(square_wave_width(epsilon)) == pytest.approx(float(closed), rel=1e-10)


def test_the_square_wave_has_the_width_of_its_epsilon() -> None:
    m = SquareWave(epsilon=1, low=0, high=5000, size=1024)
    assert m.randomizer.channels == (wave(1024, int(1024 * square_wave_width(1)), 178145, 65536),)
    assert m.size == 1024
    assert (m.low, m.high) == (0, 5000)
    tiny = SquareWave(epsilon="0.0001", low=0, high=5000, size=1000)
    assert tiny.waves[0].c == 499  # b tends to 1/2


def test_the_piecewise_wave_has_the_papers_width() -> None:
    pm = Piecewise(epsilon=1, low=0, high=1000, size=256).waves[0]
    assert pm.c == round(256 * exp(-0.5) / 2)
    hybrid = Hybrid(epsilon=1, low=0, high=1000, size=256)
    assert hybrid.randomizer.channels == (pm, wave(2, 0, 178145, 65536))
    assert hybrid.code_count == pm.code_count + 2


@pytest.mark.parametrize("m", SIZED, ids=repr)
def test_epsilon_is_the_log_of_the_ratio(m: Mechanism) -> None:
    assert exp(m.epsilon) == pytest.approx(float(m.max_ratio), rel=1e-12)


# Misuse


@pytest.mark.parametrize("m", HYBRIDS[:1] + BUCKETED[:1], ids=repr)
def test_a_code_that_does_not_exist_is_not_decoded(m: Mechanism) -> None:
    for code in (-1, m.code_count):
        with pytest.raises(ParameterError):
            m.decode(code)


def test_a_randomizer_of_another_encoder_is_refused() -> None:
    with pytest.raises(ParameterError):
        Mechanism.__init__(
            Piecewise.__new__(Piecewise), SquareWave(epsilon=1, low=0, high=4000).randomizer
        )


@pytest.mark.parametrize(
    ("field", "value"),
    each(
        ("mechanism", "laplace", None),
        ("low", "0", 0.0),
        ("high", True),
        ("coin", [1], [1, 0], [0, 0], [2, 1], "11"),
        ("waves", [], [[2, 0, 3, 1], [2, 0, 3, 1]], [[2, 0, 3]], [2], [[2, 0, 3, 1.0]]),
        ("waves", [[2, 0, 3, 3]], [[2, -1, 3, 1]], [[1, 0, 3, 1]], [[2, 0, 1 << 64, 1]]),
    ),
)
def test_a_damaged_plan_gives_no_mechanism(field: str, value: object) -> None:
    table = StochasticRounding(epsilon=1, low=0, high=9).to_plan()
    with pytest.raises(ParameterError):
        from_plan(table | {field: value})


def test_without_a_draw_the_operating_system_is_asked() -> None:
    m = SquareWave(epsilon=1, low=0, high=4000)
    assert len({m.perturb(7) for _ in range(40)}) > 10  # all equal: below 10^-50


@pytest.mark.parametrize("kind", [np.int8, np.uint16, np.int32, np.int64, np.uint64])
def test_numpys_integers_are_taken_for_what_they_are(kind: type[np.integer[Any]]) -> None:
    """They would wrap around in the exact arithmetic of laws and decoders."""
    wide: Any = Hybrid(epsilon=1, low=0, high=1 << 47)
    for ask, number in ((wide.probabilities, 5), (wide.variance, 5), (wide.decode, 100)):
        assert ask(kind(number)) == ask(number)
    m = Hybrid(epsilon=1, low=0, high=9_000)
    for value in (0, 100, 127):
        for share in range(32):  # of each draw's range
            codes = [m.perturb(one, draw=lambda n: n * share // 32) for one in (value, kind(value))]  # noqa: B023
            assert codes[0] == codes[1]
            assert type(codes[1]) is int


@pytest.mark.parametrize("given_value", [1.0, None, "1", nan, True, Decimal(1), np.float64(1)])
def test_what_is_no_integer_has_no_law_and_is_neither_randomised_nor_decoded(
    given_value: Any,
) -> None:
    m = Hybrid(epsilon=1, low=0, high=9)
    for ask in (m.perturb, m.probabilities, m.variance, m.decode):
        with pytest.raises(ParameterError) as refused:
            ask(given_value)
        assert refused.value.name == ("code" if ask == m.decode else "value")
