"""Cutting bytes into frames: any cut, any noise, bounded memory (docs/faults.md, SER)."""

import pytest

from agent.meters.framed_meter import LIMIT_BYTES
from agent.meters.obis.dsmr import P1Framer, P1Meter, RawTelegram
from agent.meters.reading import Discarded
from tests.agent.meters.samples import SHORT, V5, capture, only, reasons


def test_line_ends_between_telegrams_are_no_noise() -> None:
    assert reasons(P1Meter().feed(b"\r\n\r\n" + capture(V5) + b"\r\n" + capture(V5))) == ["", ""]


def test_a_telegram_longer_than_the_limit_is_refused_and_the_next_is_read() -> None:
    long = b"/TST5\r\n\r\n" + b"x" * LIMIT_BYTES + b"\r\n!ABCD\r\n"
    found = P1Meter().feed(long + capture(V5))
    assert reasons(found) == ["length", "noise", ""]
    assert found[0] == Discarded(LIMIT_BYTES, "length")


@pytest.mark.parametrize(("spare", "reason"), [(0, ""), (-1, "length")])
def test_the_limit_counts_every_byte_of_a_telegram(spare: int, reason: str) -> None:
    whole = capture(SHORT)
    found = P1Meter(limit_bytes=len(whole) + spare).feed(whole)
    assert reasons(found) == [reason]


def test_an_empty_telegram_ends_where_it_ends_and_is_refused() -> None:
    assert P1Framer().feed(b"/!\r\n") == [RawTelegram(b"/!", b"\r")]
    assert reasons(P1Meter().feed(b"/!\r\n" + capture(SHORT))) == ["crc", ""]


def test_a_line_that_broke_off_after_its_end_takes_no_telegram_with_it() -> None:
    assert reasons(P1Meter().feed(b"/ABC5!1234" + capture(SHORT))) == ["cut", ""]


def test_silence_tells_of_noise_that_no_telegram_followed() -> None:
    framer = P1Framer()
    assert framer.feed(b"garbage") == []
    assert framer.silence() == [Discarded(7, "noise")]
    told = [P1Framer(limit_bytes=24).feed(b"x" * size + b"\n") for size in (23, 24)]
    assert told == [[], [Discarded(24, "noise")]]


def test_a_frame_knows_how_many_bytes_it_was_received_in() -> None:
    frame = only(list(P1Meter(meter_id="another").feed(capture(V5))))
    assert frame == Discarded(len(capture(V5)), "identity")
