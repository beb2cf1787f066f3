"""Formats that are named and not read, and whole telegrams that are not understood (SER-30, 31)."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.meters.reading import Asker, Discarded
from agent.meters.section import MeterTable
from agent.meters.unread import KEPT_BYTES, Recogniser, Unread
from agent.meters.words import FOREIGN, foreign_text
from agent.ports.meters import make_meter
from firmware_stubs.meters.han import FOREIGN as SHOWN
from firmware_stubs.meters.han import ciphered_packet, hdlc_frame, mbus_frame
from firmware_stubs.meters.linky import linky_telegram
from firmware_stubs.meters.readout import readout_telegram
from firmware_stubs.meters.sml import sml_telegram
from firmware_stubs.meters.telegram import p1_telegram
from tests.agent.meters.samples import EVERY_CAPTURE, sealed
from tests.reached import reached

H01 = (Path(__file__).parent / "cases" / "foreign" / "H01.bin").read_bytes()
NAMES = {name: "ciphered" if name == "p1-encrypted" else name for name in SHOWN}
SENT: dict[str, Any] = {
    "meter_id": "E009",
    "time_s": 1_767_571_200,
    "import_wh": 77_777,
    "power_w": 3_333,
}
READ = (p1_telegram, sml_telegram, linky_telegram, readout_telegram)


def test_SER_34_the_reported_han_port_is_named() -> None:
    assert Recogniser().feed(H01) == "hdlc"
    assert "HAN ports" in foreign_text("hdlc")


@pytest.mark.parametrize("name", SHOWN)
def test_SER_34_each_format_is_named_whatever_comes_before_and_however_it_is_cut(name: str) -> None:
    shown = SHOWN[name](**SENT)
    for before in (b"", b"\x00\xff", b"7E A0", shown[-30:], b"\x7e\xa0\x68\xdb\x08"):
        for size in (1, 7, len(before + shown)):
            stream, found = Recogniser(), ""
            for at in range(0, len(before + shown), size):
                found = stream.feed((before + shown)[at : at + size])
            assert found == NAMES[name], (before, size)


@pytest.mark.parametrize("name", ["hdlc", "hdlc-ciphered", "mbus", "mbus-ciphered"])
def test_SER_34_a_frame_that_breaks_off_is_named_once_the_line_is_silent(name: str) -> None:
    shown = SHOWN[name](**SENT)[:40]
    stream = Recogniser()
    assert stream.feed(shown) == ""
    assert stream.feed(None) == name


def test_SER_34_a_header_that_nothing_proves_names_nothing() -> None:
    spoiled = bytearray(hdlc_frame(b"inside"))
    spoiled[3] ^= 2
    for junk in (bytes(spoiled), b"~\xa0", b"\x68\x05\x06\x68", b"\xdb\x08abc", b"\xdb\x08" * 9):
        assert (Recogniser().feed(junk), Recogniser().feed(None)) == ("", "")
    shorter = mbus_frame(b"inside")
    assert Recogniser().feed(shorter[:-1] + b"\x17") == ""
    assert Recogniser().feed(ciphered_packet(b"inside").replace(b"\x30\0\0", b"\x0f\0\0")) == ""


def test_SER_34_no_meter_that_is_read_and_no_noise_is_called_foreign() -> None:
    noise = np.random.default_rng(31).bytes(300_000)
    for what in (noise, *(show(**SENT) for show in READ)):
        assert Recogniser().feed(what) == ""
    if EVERY_CAPTURE.is_dir():
        captures = [path for path in EVERY_CAPTURE.glob("*/*.*") if path.suffix in (".raw", ".bin")]
        named = {path.name for path in captures if Recogniser().feed(path.read_bytes())}
        assert named == {"H01_han_dlms_plain.bin", "lux_encrypted_packet.bin"}


@given(st.lists(st.binary(max_size=300) | st.sampled_from([H01[:20], b"~\xa7\xff\x03\x03\x13"])))
def test_SER_12_the_recogniser_holds_little_whatever_comes(chunks: list[bytes]) -> None:
    stream = Recogniser()
    for chunk in chunks:
        assert stream.feed(chunk) in ("", *FOREIGN)
        assert max(len(one) for one in reached(stream) if isinstance(one, bytes)) <= KEPT_BYTES


@pytest.mark.parametrize(
    ("protocol", "telegram", "line"),
    [
        ("dsmr", sealed("1-0:1.7.0(00,378*kW)", "1-0:1.8.0(7353.000*kWh)"), "1-0:1.7.0"),
        ("dsmr", sealed("1-0:1.8.0(7353.00000*kWh)"), "1-0:1.8.0"),
        ("dsmr", sealed("1-0:2.7.0(00.100*kW)", "1-0:2.7.0(00.200*kW)"), "1-0:2.7.0"),
        ("iec62056-21", b"/TST5X\r\n\r\n1-0:1.8.0*255(7353*Gal)\r\n!\r\n", "1.8.0"),
        ("linky", b"\x02\nBASE 73x53 %\r\x03", "BASE"),
    ],
)
def test_SER_30_what_is_said_of_a_whole_telegram_names_its_line_and_no_value(
    protocol: str, telegram: bytes, line: str
) -> None:
    table = MeterTable(port="x", protocol=protocol)
    meter, unread = make_meter(table), Unread()
    assert not isinstance(meter, Asker)
    for event in [*meter.feed(telegram), *meter.silence()]:
        assert isinstance(event, Discarded)
        unread.note(event)
    said = unread.text(is_proved=table.has_checksum is True)
    assert f"their line {line} is not understood" in said
    assert ("the cable is not to blame" in said) == (protocol != "iec62056-21")
    assert not any(digits in said for digits in ("378", "7353", "73x53", "100", "200"))
