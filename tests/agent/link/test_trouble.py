"""What is wrong with the link, told from why attempts ended."""

from dataclasses import replace

import pytest

from agent.link.trouble import (
    AUTH,
    BUSY,
    CLOSING,
    LINK_DOWN,
    REFUSED_RETRY_S,
    TWIN,
    LinkTrouble,
    LogLimit,
    Receipts,
)
from edge_ldp.service.broker import LOGIN_REMEDY, Broker, remedy_of

BROKER = Broker("broker.example", 1883, "x")


@pytest.mark.parametrize(
    ("reason", "name", "wait_s"),
    [
        ("refused: not authorized", AUTH, 30),
        ("tls: alert unknown ca", AUTH, 30),
        ("refused: quota exceeded", BUSY, 30),
        ("left: the configuration changed", LINK_DOWN, 0),
    ],
)
def test_a_reason_names_what_is_wrong(reason: str, name: str, wait_s: int) -> None:
    trouble = LinkTrouble()
    trouble.note(reason, 0.0, was_up=False)
    assert trouble.name == name
    assert trouble.least_wait_s == wait_s
    remedy = f": {LOGIN_REMEDY}, then reload the agent"
    assert trouble.explained(reason, BROKER) == reason + (remedy if name == AUTH else "")


def test_of_a_topic_that_is_refused_it_asks_whether_the_names_in_it_are_right() -> None:
    trouble = LinkTrouble("street", "home-7")
    trouble.note(reason := "x: not authorized", 0.0, was_up=False, topics="x")
    told = trouble.explained(reason, replace(BROKER, username="login"))
    assert told.startswith(f"{reason}: are [device] fleet (street) and id (home-7) right?")
    assert "access list must give login its topics" in told
    assert "must give home-7 its" in trouble.explained(reason, BROKER)


def test_three_take_overs_in_a_minute_are_a_twin_and_three_in_longer_are_not() -> None:
    trouble = LinkTrouble()
    for now_s in (0.0, 30.0, 61.0):
        trouble.note("session taken over", now_s, was_up=False)
        assert trouble.name == LINK_DOWN
    trouble.note("session taken over", 89.0, was_up=False)
    assert trouble.name == TWIN
    assert trouble.least_wait_s == REFUSED_RETRY_S
    assert "stop it" in trouble.explained("session taken over", BROKER)


def test_links_that_keep_closing_are_said_until_one_attempt_fails_otherwise() -> None:
    trouble = LinkTrouble()
    for now_s in (0.0, 1.0, 2.0):
        trouble.note("connection reset", now_s, was_up=True)
    assert trouble.name == CLOSING
    assert trouble.least_wait_s == 0
    assert "another agent" in trouble.explained("connection reset", BROKER)
    trouble.note("connection refused", 3.0, was_up=False)
    assert trouble.name == LINK_DOWN


WRONG_TURNS = [
    # reason, TLS, ca_file, what the advice must name
    ("Connection reset by peer", True, None, "tls = false"),
    ("closed before it answered", False, None, "tls = true"),
    ("TLS: wrong version number", True, None, "tls = false"),
    ("TLS: unable to get local issuer certificate", True, None, "ca_file"),
    ("TLS: self-signed certificate in certificate chain", True, None, "own authority"),
    ("TLS: unable to get local issuer certificate", True, "/ca.pem", "/ca.pem is not of"),
    ("TLS: IP address mismatch, certificate is not valid for '::1'.", True, "/ca.pem", "host as"),
    ("TLS: certificate has expired", True, "/ca.pem", "renew"),
    ("TLS: certificate is not yet valid", True, "/ca.pem", "clock"),
    ("Connection refused", False, None, "nothing listens"),
    ("Name or service not known", False, None, "host (broker.example)"),
    ("Temporary failure in name resolution", False, None, "network"),
    ("no answer in time", False, None, "firewalls"),
    ("Network is unreachable", False, None, "network"),
    ("not authorized", False, None, "access list"),
]


@pytest.mark.parametrize(("reason", "tls", "ca_file", "advice"), WRONG_TURNS)
def test_a_wrong_turn_says_what_to_do(
    reason: str, *, tls: bool, ca_file: str | None, advice: str
) -> None:
    broker = Broker("broker.example", 1234, "x", tls=tls, ca_file=ca_file)
    assert advice in remedy_of(reason, broker)
    assert remedy_of("moved to another server", broker) == ""
    trouble = LinkTrouble()
    trouble.note(reason, 0.0, was_up=False)
    assert advice in trouble.explained(reason, broker)


def test_receipts_are_late_after_twice_the_time_of_sending_again() -> None:
    receipts = Receipts()
    assert not receipts.are_late(1e9, 60.0)
    receipts.sent(100.0)
    receipts.sent(300.0)
    assert not receipts.are_late(340.0, 60.0)
    assert receipts.are_late(340.1, 60.0)
    receipts.arrived()
    assert not receipts.are_late(1e9, 60.0)


def test_a_link_that_comes_and_goes_is_told_of_rarely() -> None:
    limit = LogLimit()
    lines = ["connected", "session taken over"]
    given = [limit.admit(lines[at % 2], 5.0 * at) for at in range(720)]  # an hour
    shown = [line for line in given if line]
    assert shown[:4] == lines * 2
    assert shown[4:] == [f"{line} (not told again for an hour)" for line in lines]
    later = [limit.admit(lines[at % 2], 3600.0 + 5.0 * at) for at in range(720)]
    assert 1 <= sum(map(bool, later)) <= 6
    assert limit.admit("another", 7300.0) == "another"
    assert not limit.admit("another", 7400.0)


def test_of_many_lines_the_log_s_memory_is_small() -> None:
    limit = LogLimit()
    assert all(limit.admit(f"a batch of {at} bytes waits", float(at)) for at in range(100))
    assert limit.admit("a batch of 0 bytes waits", 101.0)
