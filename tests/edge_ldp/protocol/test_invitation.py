"""The invitation: one line, one QR text, and a reason for whatever is wrong with it."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_ldp.protocol.invitation import (
    SCHEME,
    Invitation,
    InvitedBroker,
    InvitedStream,
    InvitedSums,
    parse_invitation,
)
from edge_ldp.protocol.strict_json import MessageError

CA = "-----BEGIN CERTIFICATE-----\nMIIB+zCC/w==\n-----END CERTIFICATE-----\n"
RFC_8032 = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"  # §7.1, test 1
STREAM = InvitedStream("power", "power", "W", 0, 43_470, 900)
INVITATION = Invitation(
    fleet="village",
    device="home-0001",
    broker=InvitedBroker("broker.example", 8883, tls=True, ca=CA),
    username="home-0001",
    password="pa“ss\"\\word'",  # noqa: S106 (an example, with what quoting may break)
    plan_keys=(RFC_8032,),
    streams=(STREAM,),
)


def changed(path: str, value: object) -> bytes:
    """Return the line with one field, its keys joined by dots, set to another value."""
    fields: Any = json.loads(INVITATION.to_json())
    *way, last = path.split(".")
    at = fields
    for key in way:
        at = at[int(key) if key.isdigit() else key]
    at[last] = value
    return json.dumps(fields).encode()


def test_it_is_read_back_from_its_line_and_from_its_qr_text() -> None:
    line = INVITATION.to_json()
    assert b"\n" not in line
    assert parse_invitation(line + b"\n") == INVITATION
    text = INVITATION.to_text()
    assert text.startswith(SCHEME)
    assert "=" not in text
    wrapped = "\n".join(text[at : at + 60] for at in range(0, len(text), 60))
    assert parse_invitation(wrapped.encode()) == INVITATION


def test_until_when_and_for_how_many_it_is_good_is_read_back() -> None:
    assert "once" not in INVITATION.to_json().decode()
    limited = replace(INVITATION, expires_s=1_800_000_000, once=True, group="elm-street")
    assert parse_invitation(limited.to_json()) == limited


def test_it_shows_no_password_and_no_certificate() -> None:
    shown = repr(INVITATION)
    assert INVITATION.password not in shown
    assert "CERTIFICATE" not in shown


@given(st.text(st.characters(categories=("L", "N", "P", "S")), min_size=1, max_size=40))
def test_any_printable_password_survives(password: str) -> None:
    fields = json.loads(INVITATION.to_json()) | {"password": password}
    assert parse_invitation(json.dumps(fields).encode()).password == password


def test_a_broker_without_tls_has_no_authority() -> None:
    plain = json.loads(changed("broker.tls", value=False)) | {}
    plain["broker"]["ca"] = None
    found = parse_invitation(json.dumps(plain).encode())
    assert (found.broker.tls, found.broker.ca) == (False, None)


WRONG: list[tuple[str, Any, str]] = [
    ("version", 2, "version"),
    ("fleet", "Big Fleet", "fleet"),
    ("device", "", "device"),
    ("broker.host", "a b", "broker.host"),
    ("broker.host", 'x"\n[policy]', "broker.host"),
    ("broker.port", 0, "broker.port"),
    ("broker.tls", "yes", "broker.tls"),
    ("broker.tls", False, "broker.ca"),
    ("broker.ca", "ca.pem", "broker.ca"),
    ("password", "two\nlines", "password"),
    ("plan_keys", ["AB" * 32], "plan_keys[0]"),
    ("expires_s", "tomorrow", "expires_s"),
    ("expires_s", -1, "expires_s"),
    ("once", 1, "once"),
    ("group", "Elm Street", "group"),
    ("plan_keys", [7], "plan_keys[0]"),
    ("streams", [], "streams"),
    ("streams.0.ceiling", 0, "streams[0].ceiling"),
    ("streams.0.low", None, "streams[0].low"),
    ("streams.0.slot_seconds", 0, "streams[0].slot_seconds"),
]


SUMMED = replace(INVITATION, streams=(replace(STREAM, sums=InvitedSums(1, "0.75")),))
WRONG_SUMS = [
    ("share", "0"),
    ("share", "1.5"),
    ("share", 1),
    ("share", "١"),
    ("share", "1e-3"),
    ("days", 0),
    ("cells", 97),
    ("block_hours", None),
    ("offset_s", -1),
]


@pytest.mark.parametrize(("key", "value"), WRONG_SUMS)
def test_sums_that_a_fleet_counts_are_read_back_and_wrong_ones_named(
    key: str, value: object
) -> None:
    assert parse_invitation(SUMMED.to_json()) == SUMMED
    fields = json.loads(SUMMED.to_json())
    fields["streams"][0]["sums"][key] = value
    with pytest.raises(MessageError, match=f"sums.{key}"):
        parse_invitation(json.dumps(fields).encode())


@pytest.mark.parametrize(("path", "value", "field"), WRONG)
def test_a_wrong_field_is_named(path: str, value: object, field: str) -> None:
    with pytest.raises(MessageError) as refused:
        parse_invitation(changed(path, value))
    assert refused.value.field.endswith(field)


SUMS = {"days": 7, "share": "0.5", "cells": 1, "block_hours": 1, "offset_s": 0}


def test_a_stream_of_sums_may_have_slots_that_are_several_of_the_others() -> None:
    gas = InvitedStream("gas", "gas", "dm3", 0, 6000, 3600, sums=InvitedSums(7, "0.5"))
    both = replace(INVITATION, streams=(STREAM, gas))
    assert parse_invitation(both.to_json()) == both


@pytest.mark.parametrize(
    "twice",
    [
        [{"name": "power"}, {"name": "power"}],
        [{"slot_seconds": 900}, {"slot_seconds": 3600}],
        [{"slot_seconds": 900}, {"slot_seconds": 1000, "sums": SUMS}],
        [{"slot_seconds": 3600, "sums": SUMS}, {"slot_seconds": 900}],
    ],
)
def test_streams_have_names_of_their_own_and_reports_one_slot_length(
    twice: list[dict[str, Any]],
) -> None:
    fields = json.loads(INVITATION.to_json())
    first = fields["streams"][0]
    fields["streams"] = [first | {"name": f"s{at}"} | one for at, one in enumerate(twice)]
    with pytest.raises(MessageError) as refused:
        parse_invitation(json.dumps(fields).encode())
    assert refused.value.field == "streams"


@pytest.mark.parametrize("text", [SCHEME, SCHEME + "a", SCHEME + "a+b/", SCHEME + "!!"])
def test_a_torn_qr_text_is_refused_as_such(text: str) -> None:
    with pytest.raises(MessageError) as refused:
        parse_invitation(text.encode())
    assert refused.value.reason == "base64"


@pytest.mark.parametrize("text", [INVITATION.to_json(), INVITATION.to_text().encode()])
def test_a_text_that_was_cut_is_told_of_as_an_invitation(text: bytes) -> None:
    for at in range(len(SCHEME), len(text)):
        with pytest.raises(MessageError) as refused:
            parse_invitation(text[:at])
        assert (refused.value.field, str(refused.value)[:11]) == ("invitation", "invitation:")


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(noise: bytes) -> None:
    for text in (noise, SCHEME.encode() + noise):
        with pytest.raises(MessageError):
            parse_invitation(text)
