"""Telnet's serial line without a socket: settings, escapes, refusals, any cut of the bytes."""

import pickle
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from agent.ports.rfc2217 import ComPort, Received

IAC, DONT, DO, WONT, WILL, SB, SE = (bytes((n,)) for n in (255, 254, 253, 252, 251, 250, 240))
COM_PORT = b"\x2c"


def answer(name: int, value: bytes) -> bytes:
    body = value.replace(IAC, IAC + IAC)
    return IAC + SB + COM_PORT + bytes((100 + name,)) + body + IAC + SE


ANSWERS = {
    "baud": answer(1, (9600).to_bytes(4, "big")),
    "data bits": answer(2, b"\x07"),
    "parity": answer(3, b"\x03"),
    "stop bits": answer(4, b"\x01"),
}


def line() -> ComPort:
    return ComPort(9600, 7, "E")


def test_the_client_offers_binary_and_the_line_and_asks_for_nothing_else() -> None:
    offers = b"".join(IAC + WILL + bytes((n,)) for n in (0, 3, 44))
    assert line().hello() == offers + b"".join(IAC + DO + bytes((n,)) for n in (0, 3))


def test_when_the_adapter_agrees_it_is_told_the_line_and_to_forget_what_waited() -> None:
    port = line()
    received = port.receive(IAC + DO + COM_PORT)
    assert received.line == b""
    assert IAC + SB + COM_PORT + b"\x01\x00\x00\x25\x80" + IAC + SE in received.reply
    assert IAC + SB + COM_PORT + b"\x02\x07" + IAC + SE in received.reply
    assert IAC + SB + COM_PORT + b"\x03\x03" + IAC + SE in received.reply
    assert received.reply.endswith(IAC + SB + COM_PORT + b"\x0c\x01" + IAC + SE)
    assert not port.is_ready


def test_the_line_is_ready_when_every_setting_was_repeated_as_asked() -> None:
    port = line()
    for text in ANSWERS.values():
        assert not port.is_ready
        assert port.receive(text) == Received(b"", b"")
    assert port.is_ready
    assert not port.is_refused


def test_another_speed_than_asked_for_is_a_refusal() -> None:
    port = line()
    port.receive(b"".join(ANSWERS.values()) + answer(1, (300).to_bytes(4, "big")))
    assert port.is_refused
    assert not port.is_ready


def test_an_adapter_that_does_not_know_the_option_refuses_too() -> None:
    port = line()
    port.receive(IAC + DONT + COM_PORT)
    assert port.is_refused


def test_a_new_speed_has_to_be_repeated_again() -> None:
    port = line()
    port.receive(b"".join(ANSWERS.values()))
    assert port.set_baud(255) == IAC + SB + COM_PORT + b"\x01\x00\x00\x00\xff\xff" + IAC + SE
    assert not port.is_ready
    port.receive(answer(1, (255).to_bytes(4, "big")))
    assert port.is_ready


def test_offers_of_anything_else_are_declined_and_declinations_not_answered() -> None:
    port = line()
    assert port.receive(IAC + DO + b"\x01").reply == IAC + WONT + b"\x01"
    assert port.receive(IAC + WILL + b"\x01").reply == IAC + DONT + b"\x01"
    assert port.receive(IAC + WONT + b"\x01" + IAC + DONT + b"\x01").reply == b""
    assert port.receive(IAC + DO + b"\x00" + IAC + WILL + b"\x00").reply == b""


def test_all_bytes_of_the_line_pass_both_ways() -> None:
    every = bytes(range(256))
    assert line().receive(line().escaped(every)) == Received(every, b"")


@given(data=st.data())
def test_any_cut_of_any_bytes_gives_the_same(data: st.DataObject) -> None:
    tokens = [IAC, SE, SB, DO, WILL, COM_PORT, b"text", b"\x00", *ANSWERS.values()]
    stream = b"".join(data.draw(st.lists(st.sampled_from(tokens) | st.binary(max_size=4))))
    at = data.draw(st.lists(st.integers(0, len(stream)), max_size=9).map(sorted))
    whole, parts = line(), line()
    expected = whole.receive(stream)
    got = [parts.receive(stream[a:b]) for a, b in pairwise([0, *at, len(stream)])]
    assert b"".join(one.line for one in got) == expected.line
    assert b"".join(one.reply for one in got) == expected.reply
    assert (parts.is_ready, parts.is_refused) == (whole.is_ready, whole.is_refused)


def test_what_never_ends_is_not_kept() -> None:
    port = line()
    port.receive(IAC + SB)
    chunk = b"x" * 5000
    for _ in range(10):
        assert port.receive(chunk) == Received(b"", b"")
    assert len(pickle.dumps(port)) < len(chunk)
    assert port.receive(IAC + SE + b"meter").line == b"meter"
