"""What is wrong with the link, told from why attempts ended."""

import pytest

from agent.link_trouble import AUTH, BUSY, CLOSING, LINK_DOWN, TWIN, LinkTrouble
from edge_ldp.login import REMEDY


@pytest.mark.parametrize(
    ("reason", "name"),
    [
        ("refused: not authorized", AUTH),
        ("tls: alert unknown ca", AUTH),
        ("refused: quota exceeded", BUSY),
        ("connection reset", LINK_DOWN),
    ],
)
def test_a_reason_names_what_is_wrong(reason: str, name: str) -> None:
    trouble = LinkTrouble()
    trouble.note(reason, 0.0, was_up=False)
    assert trouble.name == name
    assert trouble.is_refusal == (name in (AUTH, BUSY))
    remedy = f": {REMEDY}, then reload the agent"
    assert trouble.explained(reason) == reason + (remedy if name == AUTH else "")


def test_three_take_overs_in_a_minute_are_a_twin_and_three_in_longer_are_not() -> None:
    trouble = LinkTrouble()
    for now_s in (0.0, 30.0, 61.0):
        trouble.note("session taken over", now_s, was_up=False)
        assert trouble.name == LINK_DOWN
    trouble.note("session taken over", 89.0, was_up=False)
    assert trouble.name == TWIN
    assert trouble.is_refusal
    assert "stop it" in trouble.explained("session taken over")


def test_links_that_keep_closing_are_said_until_one_attempt_fails_otherwise() -> None:
    trouble = LinkTrouble()
    for now_s in (0.0, 1.0, 2.0):
        trouble.note("connection reset", now_s, was_up=True)
    assert trouble.name == CLOSING
    assert not trouble.is_refusal
    assert "another agent" in trouble.explained("connection reset")
    trouble.note("connection refused", 3.0, was_up=False)
    assert trouble.name == LINK_DOWN
