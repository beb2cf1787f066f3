"""Every mechanism is proved at every ε, and the figures proved are the exact ones."""

from fractions import Fraction

import pytest

from edge_ldp import Hybrid, Mechanism, SquareWave, StochasticRounding
from edge_ldp.certify import certify
from edge_ldp.certify.build import KINDS, build
from edge_ldp.device.errors import ParameterError
from edge_ldp.mechanisms import GeneralWave, Tuned
from tests.edge_ldp.laws import ALL, LATTICED, small

# the ends and what is used; those between with the slow tests: exact fractions take their time
FAST = ("1e-3", "0.5", "1", "8")
LARGE = {("olh", "8"), ("hh", "8")}  # thousands of inputs
CASES = [
    pytest.param(
        name,
        epsilon,
        marks=[] if epsilon in FAST and (name, epsilon) not in LARGE else [pytest.mark.slow],
    )
    for name in KINDS
    for epsilon in (*FAST, "0.01", "0.1", "2", "4")
]


@pytest.mark.parametrize(("name", "epsilon"), CASES)
def test_every_mechanism_is_proved_at_every_epsilon(name: str, epsilon: str) -> None:
    options = {"size": 256} if name == "grr" else {}
    proved = certify(build(name, epsilon, options), Fraction(epsilon))
    assert [claim for claim in proved.claims if not claim.holds] == []
    assert proved.holds
    assert 0 <= Fraction(proved.figures["margin"] or 0) < Fraction(1, 10**4)


@pytest.mark.parametrize("epsilon", ["0.0000153", "16", "32"])
@pytest.mark.parametrize("name", sorted(KINDS.keys() - {"tuned", "olh", "hh"}))
def test_the_ends_of_what_integers_carry_are_proved_too(name: str, epsilon: str) -> None:
    options = {"size": 64} if "size" in KINDS[name].options else {}
    assert certify(build(name, epsilon, options), Fraction(epsilon)).holds


@pytest.mark.parametrize(
    ("mechanism", "codes"),
    [
        (SquareWave(epsilon="0.01", low=0, high=65_535, size=4096), 8_000),
        pytest.param(
            SquareWave(epsilon="0.01", low=0, high=65_535, size=32_768),
            60_000,
            marks=pytest.mark.slow,
        ),
        pytest.param(
            Hybrid(epsilon=1, low=0, high=10**9, size=40_000), 60_000, marks=pytest.mark.slow
        ),
    ],
    ids=repr,
)
def test_codes_up_to_the_limit_are_proved_from_the_structure(
    mechanism: Mechanism, codes: int
) -> None:
    assert mechanism.code_count > codes
    proved = certify(mechanism)
    assert proved.holds
    assert proved.channels[0]["method"] == "structure"
    assert proved.channels[0]["rows"] == 8


@pytest.mark.parametrize("m", ALL, ids=repr)
def test_small_mechanisms_are_proved_and_their_ratio_is_that_of_their_laws(m: Mechanism) -> None:
    proved = certify(m)
    assert proved.holds
    laws = [m.probabilities(value) for value in range(m.low, m.high + 1)]
    serving = [column for column in zip(*laws, strict=True) if max(column)]
    assert max(max(column) / min(column) for column in serving) <= proved.ratio


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("m", LATTICED, ids=repr)
def test_the_variance_proved_is_no_less_than_any_values_and_reached(
    m: Mechanism, step: int
) -> None:
    wide = type(m).from_plan({**m.to_plan(), "low": 0, "high": 1260})
    proved = Fraction(certify(wide).figures["worst_variance"] or 0)
    variances = [Fraction(wide.variance(value)) for value in range(0, 1261, step)]
    assert max(variances) <= proved * (1 + Fraction(1, 10**12))
    assert max(variances) >= proved * (1 - Fraction(1, 10**3))


def test_the_variance_of_a_mixture_of_any_two_lattices_is_proved() -> None:
    mixed = small(Hybrid, 0, 5040, (6, 1, 5, 2), (4, 0, 7, 3), coin=(2, 5))
    proved = certify(mixed)
    assert proved.holds
    assert float(proved.figures["worst_variance"] or 0) == pytest.approx(mixed.worst_variance)


def test_figures_of_stochastic_rounding_are_the_closed_forms() -> None:
    proved = certify(StochasticRounding(epsilon=1, low=0, high=4), Fraction(1))
    gain = Fraction(178_145 + 65_536, 178_145 - 65_536)
    assert proved.ratio == Fraction(178_145, 65_536)
    assert proved.figures["influence"] == gain
    worst = Fraction(proved.figures["unit_variance"] or 0)
    assert gain**2 <= worst < gain**2 + Fraction(1, 10**15)
    assert proved.figures["worst_variance"] == 4 * worst
    assert (proved.figures["codes"], proved.figures["bits"], proved.figures["bias"]) == (2, 1, 0)


def test_the_exact_ratio_of_a_wide_wave_may_be_below_the_devices_bound() -> None:
    wide = GeneralWave(epsilon=2, low=0, high=9, size=3, b=2)
    proved = certify(wide)
    assert proved.holds
    assert proved.ratio < wide.max_ratio


def test_a_tuned_table_is_read_whole_and_its_bias_is_told() -> None:
    proved = certify(Tuned(epsilon=1, low=0, high=1000), Fraction(1))
    channel = proved.channels[0]
    assert channel["method"] == "enumeration"
    assert channel["weights"] == int(channel["inputs"]) * 16
    assert Fraction(proved.figures["bias"] or 0) <= Fraction(1, 1 << 30)


def test_a_certificate_is_the_same_on_every_machine() -> None:
    assert certify(Hybrid(epsilon=1, low=0, high=65_536), Fraction(1)).digest == (
        "59ee9ad9f7db2bc6fe0c06aa21c320c7"
    )
    assert certify(SquareWave(epsilon=1, low=0, high=65_536)).digest == (
        "53867bd261b05f458e3dbc235e7a1d9b"
    )


def test_a_certificate_holds_no_float() -> None:
    text = certify(Hybrid(epsilon="0.5", low=0, high=100, size=8), Fraction(1, 2)).to_json()
    assert b"." not in text


@pytest.mark.parametrize(
    ("name", "options", "field"),
    [
        ("fancy", {}, "mechanism"),
        ("hybrid", {"bits": 3}, "bits"),
        ("grr", {"low": 0}, "low"),
        ("tuned", {"bits": 5}, "bits"),
        ("square-wave", {"size": 1}, "size"),
        ("square-wave", {"size": 100, "low": 0, "high": 5}, "size"),
        ("hybrid", {"low": 5, "high": 5}, "high"),
        ("hh", {"fanout": 1}, "fanout"),
        ("hrr", {"size": 1 << 21}, "size"),
    ],
)
def test_what_cannot_be_built_names_its_option(
    name: str, options: dict[str, int | str], field: str
) -> None:
    with pytest.raises(ParameterError) as refused:
        certify(build(name, 1, options))
    assert refused.value.name == field
