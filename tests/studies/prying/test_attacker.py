"""The adaptive attacker: what he may send, what he finds, and what the docs say of it (PLN-14)."""

import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from edge_ldp import Hybrid, SquareWave
from edge_ldp.protocol.plan_bounds import PlanBounds, information
from studies.prying import figures
from studies.prying.attacker import CEILING, RATIO, Load, Menu, admitted, attacked, thresholds

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "results" / "prying.md").read_text()
STILL = Load()


def rows(load: str) -> dict[int, list[str]]:
    """Return the cells of the table's rows of a load, by days."""
    lines = [line for line in PAGE.splitlines() if line.startswith(f"| {load} |")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {int(row[1].replace(",", "")): row for row in cells}


def watts(cell: str) -> float:
    return float(cell.removesuffix(" W").replace(",", ""))


def test_no_plan_on_the_attackers_menu_tells_more_than_is_admitted_PLN_14() -> None:
    most = 1 / PlanBounds().least_square(CEILING, RATIO)
    plans = admitted(PlanBounds())
    sums = [plan for plan in plans if not isinstance(plan, SquareWave)]
    assert len(sums) > 100
    assert len(plans) - len(sums) > 20
    assert all(information(plan) <= most for plan in sums)
    assert max(information(plan) for plan in sums) > most * 99 / 100  # he goes to the edge


@pytest.mark.slow
def test_by_epsilon_alone_a_search_finds_constant_loads_within_a_month_PLN_14() -> None:
    """The attack that the shape of plans is bounded against; seeded, so no false alarm."""
    errors, _ = attacked(Menu(thresholds()[::4], STILL), [240], 1, STILL, homes=4)
    assert errors[240] < 5


def test_within_the_default_the_same_attacker_finds_no_more_than_twice_an_honest_plan_PLN_14() -> (
    None
):
    """On a short menu, so that it is quick; the whole menu: docs/results/prying.md. Seeded."""
    few = admitted(PlanBounds())[:40]
    honest = Hybrid(epsilon=1, low=0, high=3000, size=16)
    found, _ = attacked(Menu(few, STILL), [30], 8, STILL, homes=24)
    base, _ = attacked(Menu([honest], STILL), [30], 8, STILL, homes=24, fixed=True)
    assert base[30] / 2 < found[30] < 2 * base[30]


def test_the_privacy_page_says_what_the_full_table_does_PLN_14() -> None:
    page = re.sub(r"<!--.*?-->", "", (DOCS / "privacy.md").read_text()).splitlines()
    told = [line for load in figures.LOADS for line in page if line.startswith(f"| {load} |")]
    assert len(told) == 6
    assert set(told) <= set(PAGE.splitlines())


def test_the_limit_of_every_attacker_is_the_documented_one() -> None:
    for day, row in rows("never changes").items():
        assert watts(row[-1]) == round(figures.limit(day * figures.A_DAY, PlanBounds()), 1)
        assert watts(row[4]) > watts(row[-1])


@pytest.mark.parametrize("load", figures.LOADS)
def test_after_a_year_the_best_attacker_errs_half_as_much_as_against_an_honest_plan(
    load: str,
) -> None:
    table = rows(load)
    assert list(table) == list(figures.DAYS)
    assert watts(table[365][4]) >= watts(table[365][5]) / 2 * 4 / 5  # good to a fifth


def test_information_adds_up_so_the_limit_falls_as_the_root_of_reports() -> None:
    coarse = PlanBounds(survey_buckets=2)
    far = [figures.limit(n, coarse) for n in (10**4, 4 * 10**4)]
    assert far[0] / far[1] == pytest.approx(2, rel=0.01)


def test_a_menu_knows_its_plans_information_exactly() -> None:
    """A plan of two codes, one of which says nothing about the rest: nats by hand."""
    menu = Menu(thresholds()[:1], STILL)
    belief = np.zeros((1, 3001))
    belief[0, [0, 3000]] = 0.5
    p = RATIO.num / (RATIO.num + RATIO.den)
    by_hand = np.log(2) + p * np.log(p) + (1 - p) * np.log(1 - p)
    assert menu.information(belief)[0, 0] == pytest.approx(by_hand)


def test_the_honest_plan_errs_as_documented_for_a_year_PLN_14() -> None:
    """Seeded: one column of the table again, by the code that the command runs."""
    name = "never changes"
    days = [day for day in figures.DAYS if day <= figures.YEAR]
    menu = Menu([figures.HONEST], STILL)
    found, _ = attacked(menu, days, figures.A_DAY, STILL, homes=figures.HOMES, fixed=True)
    assert {day: round(error, 1) for day, error in found.items()} == {
        day: watts(rows(name)[day][5]) for day in days
    }


def test_what_the_attacker_gains_on_plans_that_are_chosen_is_said_PLN_14() -> None:
    """Each cell is the honest plan's error and the attacker's over it; below half for most."""
    told = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in PAGE.splitlines()
        if line.split(" |")[0].removeprefix("| ") in figures.CHOSEN
    ]
    assert [row[0] for row in told] == list(figures.CHOSEN)
    for row in told:
        theta, share = figures.CHOSEN[row[0]]
        assert row[1:3] == [f"{theta:,} W", f"{share:.0%}"]
        for load, cell in zip(figures.LOADS, row[3:], strict=True):
            error, ratio = cell.split(", ")
            attack = watts(rows(load)[figures.YEAR][4])
            assert attack / watts(error) == pytest.approx(float(ratio), abs=0.006)


def test_shapes_are_read_as_the_owner_writes_them() -> None:
    assert figures.shape_of("default") == PlanBounds()
    given = figures.shape_of("sharpness=30,survey_share=3/4")
    assert given == PlanBounds(sharpness=30, survey_share=Fraction(3, 4))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_attack_is_the_documented_one_PLN_14() -> None:
    """Seeded: the first week of the table's first rows again, on the whole menu."""
    name = "never changes"
    found, _ = attacked(
        Menu(admitted(PlanBounds()), STILL), [1, 7], figures.A_DAY, STILL, homes=figures.HOMES
    )
    for day, error in found.items():
        assert watts(rows(name)[day][4]) == round(error, 1)
