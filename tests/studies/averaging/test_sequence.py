"""What averaging a constant gives away: exact figures, a limit for every attack, and the docs."""

import re
from fractions import Fraction
from functools import cache
from itertools import product
from math import inf, prod, sqrt
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_ldp import Hybrid, Mechanism, ParameterError, Piecewise, SquareWave, StochasticRounding
from edge_ldp.protocol.ledger import Window
from studies.averaging import figures
from studies.averaging.sequence import Attack, attack, chi_square, days_until, reports_in
from tests.edge_ldp.laws import ALL, LATTICED, ROUNDINGS, law_of

PAGE = Path(__file__).parents[3] / "docs" / "results" / "averaging.md"
DEFAULT, EVERY = Window(8, 97, 1), Window(1, 1, 1)
THETA_W, VALUE_W, SLOT_S = 3000, 300, 900
SHIPPED = Hybrid(epsilon=1, low=0, high=THETA_W)


@cache
def shipped() -> Attack:
    """Return what the tests about the default ask: computed once."""
    return attack(SHIPPED, VALUE_W)


# The figures, against what they are by definition


@pytest.mark.parametrize("m", ALL, ids=repr)
def test_the_distance_of_two_laws_is_that_of_their_enumerated_draws(m: Mechanism) -> None:
    for value, other in product(range(m.low, m.high + 1), repeat=2):
        p, q = law_of(m, value), law_of(m, other)
        exact = sum((q[code] - share) ** 2 / share for code, share in p.items())
        assert chi_square(m.probabilities(value), m.probabilities(other)) == exact


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("m", ROUNDINGS, ids=repr)
def test_averaging_errs_as_the_enumerated_mean_of_n_reports_does(m: Mechanism, n: int) -> None:
    for value in range(m.low, m.high + 1):
        law = [(m.decode_exact(code), share) for code, share in law_of(m, value).items()]
        square = Fraction(0)
        for drawn in product(law, repeat=n):
            mean = sum((decoded for decoded, _ in drawn), Fraction(0)) / n
            square += prod((share for _, share in drawn), start=Fraction(1)) * (mean - value) ** 2
        assert attack(m, value).averaging(n) == pytest.approx(sqrt(square), rel=1e-12)


@given(st.sampled_from(LATTICED), st.data(), st.integers(1, 60))
def test_no_unbiased_estimate_is_better_than_the_limit_averaging_included(
    m: Mechanism, data: st.DataObject, n: int
) -> None:
    found = attack(m, data.draw(st.integers(m.low, m.high)))
    assert 0 < found.limit(n) <= found.averaging(n) * (1 + 1e-12)
    assert found.limit(n + 1) <= found.limit(n)


def test_nothing_beats_averaging_two_codes() -> None:
    """Stochastic rounding's law is a line in the value: the mean uses all there is."""
    m = StochasticRounding(epsilon=1, low=0, high=THETA_W)
    for value in (0, 1, 300, 1500, 3000):
        found = attack(m, value)
        for n in (1, 10, 100):
            assert found.cramer_rao(n) == pytest.approx(found.averaging(n), rel=1e-9)
        assert found.limit(1) == pytest.approx(found.averaging(1), rel=1e-9)


@pytest.mark.parametrize("size", [4, 16, 256])
def test_a_waves_two_edges_hold_its_information(size: int) -> None:
    """In mid-cell two codes have (E+1)/2W each and change by (E−1)/W a lattice step."""
    m = Piecewise(epsilon=1, low=0, high=2000 * (size - 1), size=size)
    (channel,) = m.randomizer.channels
    ratio = m.max_ratio
    total = Fraction(channel.total) * ratio / channel.ratio()[0]  # in units of the lesser weight
    step = 2000
    exact = 4 * (ratio - 1) ** 2 / (total * (ratio + 1)) / step**2
    assert attack(m, 1000).information == pytest.approx(float(exact), rel=1e-6)


def test_the_shipped_lattice_tells_more_than_its_mean_does() -> None:
    """The finding behind docs/privacy.md: likelihoods reach a tenth of averaging's error."""
    found = shipped()
    assert found.averaging(2896) / found.cramer_rao(2896) == pytest.approx(11.3, abs=0.1)
    assert found.limit(2896) < found.averaging(2896) / 11


def test_inside_a_bucket_values_cannot_be_told_apart() -> None:
    found = attack(SquareWave(epsilon=1, low=0, high=999, size=10), 250)
    assert found.information == 0
    assert found.cramer_rao(10**6) == inf
    assert found.limit(8) > 50  # but buckets can


def test_many_reports_overflow_nothing() -> None:
    found = shipped()
    assert found.limit(10**12) == 0
    assert found.averaging(10**12) > 0


@pytest.mark.parametrize("value", [-1, 3001, 10**9])
def test_a_value_outside_the_range_is_refused_and_not_echoed(value: int) -> None:
    with pytest.raises(ParameterError) as refused:
        attack(SHIPPED, value)
    assert str(value) not in str(refused.value)


@pytest.mark.parametrize("value", [0, 3000])
def test_the_ends_of_the_range_have_neighbours_on_one_side_only(value: int) -> None:
    assert attack(SHIPPED, value).information > 0


# Reports and days


@pytest.mark.parametrize(
    ("window", "days", "slot_seconds", "reports"),
    [
        (DEFAULT, 1, 900, 8),
        (DEFAULT, 2, 900, 16),
        (DEFAULT, 30, 900, 240),
        (DEFAULT, 365, 900, 2896),
        (EVERY, 365, 900, 35_040),
        (EVERY, 1, 1000, 87),
        (Window(1, 4, 3), 1, 86_400, 1),
        (Window(5, 5, 1), 0, 900, 0),
    ],
)
def test_reports_of_days_are_the_most_that_the_window_allows(
    window: Window, days: int, slot_seconds: int, reports: int
) -> None:
    assert reports_in(window, days, slot_seconds) == reports


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 500))
def test_the_day_found_is_the_first_one(reports: int, extra: int, goal: int) -> None:
    window = Window(reports, reports + extra, 1)
    found = Attack(variance=250_000.0, information=1.0, rivals=())
    days = days_until(found.averaging, goal, window, SLOT_S)
    assert days is not None
    assert found.averaging(reports_in(window, days, SLOT_S)) <= goal
    assert days == 1 or found.averaging(reports_in(window, days - 1, SLOT_S)) > goal


def test_an_error_that_never_falls_so_far_has_no_day() -> None:
    assert days_until(lambda _reports: 7.0, 6.9, DEFAULT, SLOT_S) is None


# What docs/results/averaging.md says


def rows_of(first: str) -> list[list[str]]:
    """Return the cells of the table in docs/results/averaging.md by the beginning of its head."""
    lines = iter(PAGE.read_text().splitlines())
    for line in lines:
        if line.startswith(f"| {first} |"):
            break
    next(lines)
    found = []
    for line in lines:
        if not line.startswith("|"):
            break
        found.append([cell.strip() for cell in line.strip("|").split("|")])
    return found


def watts(cell: str) -> float:
    return float(cell.partition(" W")[0].replace(",", ""))


def percent(cell: str) -> float:
    return float(re.findall(r"([0-9.]+) %", cell)[-1])


def test_the_table_over_time_says_what_is_computed_PRV_11() -> None:
    windows = {"8 in any 97 slots": DEFAULT, "every slot": EVERY}
    found = shipped()
    rows = rows_of("setting | days")
    assert [(row[0], row[1]) for row in rows] == [
        (name, str(days)) for name in windows for days in (1, 30, 365, 3650)
    ]
    for name, days, reports, epsilon, averaging, likelihoods, limit in rows:
        n = reports_in(windows[name], int(days), SLOT_S)
        assert int(reports.replace(",", "")) == n
        assert int(epsilon.replace(",", "")) == round(n * SHIPPED.epsilon)
        for cell, error in ((averaging, found.averaging(n)), (limit, found.limit(n))):
            assert watts(cell) == round(error, 1)
            assert percent(cell) == float(f"{100 * error / THETA_W:.2g}")
        assert watts(likelihoods) < watts(averaging)


def test_the_table_of_days_says_what_is_computed_PRV_11() -> None:
    found = shipped()
    rows = rows_of("averaging errs by at most")
    assert len(rows) == 4
    for goal, *days in rows:
        for cell, window in zip(days, (DEFAULT, EVERY), strict=True):
            first = days_until(found.averaging, percent(goal) / 100 * THETA_W, window, SLOT_S)
            assert cell == f"{first:,} days"


def test_the_table_of_mechanisms_says_what_is_computed() -> None:
    mechanisms: dict[str, Mechanism] = figures.mechanisms()
    rows = rows_of("mechanism | noise of a report")
    assert [row[0] for row in rows] == list(mechanisms)
    for name, noise, averaging, _, limit in rows:
        found = attack(mechanisms[name], VALUE_W)
        assert percent(noise) == round(50 * sqrt(mechanisms[name].unit_variance), 1)
        assert percent(averaging) == float(f"{found.averaging(2896) / 30:.2g}")
        assert percent(limit) == float(f"{found.limit(2896) / 30:.2g}")


@pytest.mark.parametrize("m", ["hybrid, 16 points", "tuned, 8 codes", "stochastic rounding"])
def test_the_simulated_attacker_knows_the_exact_laws(m: str) -> None:
    mechanism = figures.mechanisms()[m]
    found = figures.laws(mechanism)
    for value in (0, 1, 299, 1500, 2999, 3000):
        assert found[value].tolist() == pytest.approx(
            [float(share) for share in mechanism.probabilities(value)], rel=1e-9, abs=1e-15
        )


@pytest.mark.slow
def test_the_simulated_attacks_are_the_documented_ones_PRV_11() -> None:
    """Seeded: the same bytes give the same figures, so there is no false alarm."""
    found = {
        name: figures.simulate(SHIPPED, figures.marks(w)) for name, w in figures.SETTINGS.items()
    }
    text = PAGE.read_text()
    for line in (
        *figures.over_time(attack(SHIPPED, VALUE_W), SHIPPED.epsilon, found),
        *figures.until(attack(SHIPPED, VALUE_W)),
        *figures.by_mechanism(),
    ):
        assert line in text
