"""The owner's limit of all reports ever."""

from dataclasses import replace

import pytest

from agent.claims.lifetime import Lifetime, days_left
from edge_ldp.protocol.ledger import Ledger, Window
from edge_ldp.ratio import floor_ratio

E1, E2 = floor_ratio(1), floor_ratio(2)
WINDOW = Window(8, 97, 1)
LEDGER = Ledger(WINDOW, tuple(range(8)), floor=1, silent_until=0, spent=((E1.num, E1.den, 10),))
BOTH = replace(LEDGER, spent=((E1.num, E1.den, 10), (E2.num, E2.den, 5)))


@pytest.mark.parametrize(
    ("limit", "ledger", "left"),
    [(Lifetime(reports=12), None, 12), (Lifetime(reports=12), LEDGER, 2),
     (Lifetime(reports=12), BOTH, 0), (Lifetime(epsilon=12), LEDGER, 2),
     (Lifetime(epsilon=20), BOTH, 0), (Lifetime(epsilon=21.5), BOTH, 1),
     (Lifetime(reports=100, epsilon=12), LEDGER, 2), (Lifetime(reports=11, epsilon=99), LEDGER, 1)],
)  # fmt: skip
def test_what_is_left_is_the_least_that_any_limit_leaves_AGT_27(
    limit: Lifetime, ledger: Ledger | None, left: int
) -> None:
    assert limit.left(ledger, E1) == left


def test_a_limit_of_epsilon_is_never_passed() -> None:
    """However often a report is made when one is left, the sum stays at most the limit."""
    for hundredths in range(1, 500, 7):
        limit = Lifetime(epsilon=hundredths / 100)
        ledger = replace(LEDGER, spent=((E1.num, E1.den, limit.left(None, E1)),))
        assert ledger.epsilon_spent <= hundredths / 100
        assert limit.left(ledger, E1) == 0


def test_days_are_those_of_the_windows_pace() -> None:
    assert days_left(8, WINDOW, 900) == 1
    assert days_left(7, WINDOW, 900) == 0
    assert days_left(240, WINDOW, 900) == 30
    assert days_left(100, WINDOW, 900, beside_a_day=2) == 10  # 7.9 reports a day, and as two more
