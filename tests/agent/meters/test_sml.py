"""SML: vectors by hand, what is refused, captures, and another parser's values."""

import csv
from decimal import ROUND_HALF_UP, Decimal
from importlib import import_module
from typing import Any

import pytest

from agent.commands.commissioning import telegram_text
from agent.meters.crc import crc16_x25
from agent.meters.framed_meter import DamagedError
from agent.meters.obis.sml import SmlMeter, parse_sml
from agent.meters.obis.sml_transport import SmlFrame, SmlFramer
from agent.meters.obis.status_word import direction
from agent.meters.reading import Discarded, Telegram
from firmware_stubs.meters.sml import crc as crc_of_the_simulator
from tests.agent.meters.samples import EVERY_CAPTURE, only, reasons, values
from tests.agent.meters.sml_samples import (
    START,
    WATT,
    WATT_HOUR,
    entry,
    framed,
    integer,
    listing,
    message,
    octets,
    sml,
    unsigned,
)

HERE = EVERY_CAPTURE.is_dir()
NEEDS_CAPTURES = pytest.mark.skipif(not HERE, reason="the large collection is not beside us")


def read(raw: bytes) -> Telegram | Discarded:
    return only(SmlMeter().feed(raw))


def test_the_published_check_value() -> None:
    assert crc16_x25(b"123456789") == crc_of_the_simulator(b"123456789") == 0x906E


@pytest.mark.parametrize(
    ("scaler", "number", "watt_hours"),
    [
        (0, 12_345, 12_345),
        (-1, 54_301_577, 5_430_158),
        (-1, 54_301_574, 5_430_157),
        (-1, 54_301_575, 5_430_158),
        (-4, 1_103_403_151, 110_340),
        (3, 2324, 2_324_000),
        (None, 7, 7),
        (-1, 0, 0),
        (-12, 499_999_999_999, 0),
        (-12, 500_000_000_000, 1),
    ],
)
def test_SER_13_a_register_is_scaled_by_its_power_of_ten_and_rounded_half_up(
    scaler: int | None, number: int, watt_hours: int
) -> None:
    found = read(sml(entry("1.8.0", WATT_HOUR, scaler, unsigned(number, 8))))
    assert values(found) == {"energy_import": watt_hours}


@pytest.mark.parametrize(
    ("number", "power_w", "export_w"),
    [(37_850, 379, 0), (-37_850, 0, 378), (49, 0, 0), (-49, 0, 0), (0, 0, 0), (-51, 0, 1)],
)
def test_a_net_power_is_drawn_or_given(number: int, power_w: int, export_w: int) -> None:
    found = read(sml(entry("16.7.0", WATT, -2, integer(number))))
    assert values(found) == {"power": power_w, "power_export": export_w}


@pytest.mark.parametrize(
    ("unit", "scaler", "value"),
    [
        (None, -1, unsigned(1)),
        (WATT, -1, unsigned(1)),
        (29, -1, unsigned(1)),
        (WATT_HOUR, -41, unsigned(1)),
        (WATT_HOUR, 10, unsigned(1)),
        (WATT_HOUR, 9, unsigned(1001, 8)),
        (WATT_HOUR, 0, unsigned(10**12, 8)),
        (WATT_HOUR, 0, integer(-1)),
        (WATT_HOUR, 0, octets(b"12")),
        (WATT_HOUR, 0, b"\x42\x01"),
        (WATT_HOUR, 0, b"\x01"),
        (WATT_HOUR, 0, b"\x70"),
    ],
)
def test_SER_13_SER_14_another_unit_and_what_no_register_shows_are_refused(
    unit: int | None, scaler: int, value: bytes
) -> None:
    whole = sml(entry("2.8.0", unit, scaler, value), entry("16.7.0", WATT, 0, integer(1)))
    assert read(whole) == Discarded(len(whole), "value")


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([("1.8.1", 5), ("1.8.2", 6)], {"energy_import": 11}),
        ([("1.8.0", 12), ("1.8.1", 5), ("1.8.2", 6)], {"energy_import": 12}),
        ([("2.8.2", 6)], {"energy_export": 6}),
        ([("17.7.0", 1), ("010060320101", 1), ("0100010800fe", 1)], {}),
        ([("0700010800ff", 4), ("2.8.0", 6)], {"energy_export": 6}),  # gas
        ([], {}),
    ],
)
def test_totals_stand_before_tariffs(
    entries: list[tuple[str, int]], expected: dict[str, int]
) -> None:
    made = [entry(obis, WATT_HOUR, 0, unsigned(number)) for obis, number in entries]
    assert values(read(sml(*made))) == expected


@pytest.mark.parametrize(
    ("serial", "value", "expected"),
    [
        (42_082_910, integer(-29_912, 2), {"power": 356, "power_export": 0}),
        (42_082_910, integer(-29_912, 4), {"power": 0, "power_export": 299}),
        (42_082_910, integer(29_912, 2), {"power": 299, "power_export": 0}),
        (40_051_478, integer(-30_688, 2), {"power": 0, "power_export": 307}),
        (60_000_000, integer(-10_550, 2), {"power": 0, "power_export": 105}),
        (41_999_999, integer(-10_550, 2), {"power": 0, "power_export": 105}),
        (42_000_000, integer(-29_912, 2), {"power": 356, "power_export": 0}),
        (48_999_999, integer(-29_912, 2), {"power": 356, "power_export": 0}),
        (49_000_000, integer(-10_550, 2), {"power": 0, "power_export": 105}),
        (54_999_999, integer(-10_550, 2), {"power": 0, "power_export": 105}),
        (55_000_000, integer(-29_912, 2), {"power": 356, "power_export": 0}),
        (58_999_999, integer(-29_912, 2), {"power": 356, "power_export": 0}),
        (59_000_000, integer(-10_550, 2), {"power": 0, "power_export": 105}),
    ],
)
def test_the_old_meters_of_one_maker_tag_positive_powers_as_negative(
    serial: int, value: bytes, expected: dict[str, int]
) -> None:
    server = b"\x0a\x01DZG\x00" + serial.to_bytes(4, "big")
    assert values(read(sml(entry("16.7.0", WATT, -2, value), server=server))) == expected


@pytest.mark.parametrize(
    "server", ["0a01445a4700000282213e", "0a01445a47003e", "0a01545354000282213e"]
)
def test_an_id_of_another_length_or_maker_is_none_of_these_meters(server: str) -> None:
    """Their serial number, 42,082,622, at the end of a longer, a shorter and another maker's id."""
    found = read(sml(entry("16.7.0", WATT, -2, integer(-10_550, 2)), server=bytes.fromhex(server)))
    assert values(found) == {"power": 0, "power_export": 105}


@pytest.mark.parametrize(
    ("clock", "time_s"),
    [
        (b"\x72" + unsigned(2, 1) + unsigned(1_767_571_200), 1_767_571_200),
        (b"\x72" + unsigned(2, 1) + unsigned(77), None),
        (b"\x72" + unsigned(2, 1) + unsigned(946_684_799), None),
        (b"\x72" + unsigned(2, 1) + unsigned(946_684_800), 946_684_800),
        (b"\x72" + unsigned(2, 1) + unsigned((1 << 32) - 1), (1 << 32) - 1),
        (b"\x72" + unsigned(2, 1) + unsigned(1 << 32, 8), None),
        (b"\x72" + unsigned(2, 1) + unsigned(1 << 62, 8), None),
        (b"\x72" + unsigned(1, 1) + unsigned(1_767_571_200), None),
        (unsigned(1_767_571_200), None),  # as HOLLEY sends it
        (b"\x01", None),
    ],
)
def test_only_a_clock_that_counts_from_1970_tells_the_time(
    clock: bytes, time_s: int | None
) -> None:
    found = read(sml(time=clock))
    assert isinstance(found, Telegram)
    assert found.time_s == time_s


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00" * 12,
        message(0x0101, b"\x71\x01"),
        listing() + listing(),
        listing()[:-3],
        b"\x75" + listing()[1:-1],
        b"\x77" + listing()[1:] + b"\x01",
        listing() + b"\x76\x01",
        listing()[:1] + b"\x0f" + listing()[2:],
        message(0x0701, b"\x71\x01"),
        message(0x0701, octets(bytes(6))),
        message(0x0701, b"\x77\x01\x72\x01\x01\x01\x01\x70\x01\x01"),
        message(0x0701, b"\x77\x01\x01\x01\x01\x01\x01\x01"),
        listing(b"\x71\x01"),
        listing(b"\x01"),
        listing(entry("1.8.0", WATT_HOUR, 0, b"\x61")),
        listing(entry("1.8.0", WATT_HOUR, 0, unsigned(1, 9))),
        listing(*[entry("1.8.0", WATT_HOUR, 0, unsigned(1))] * 2),
        listing(time=b"\x72\x61" + unsigned(5)),
        listing(time=b"\x72" + unsigned(2, 1) + b"\x61"),
        listing(time=b"\x72" + unsigned(2, 1) + unsigned(5, 9)),
        b"\x71" * 2000 + b"\x01",
        b"\xff" * 60,
        b"\xf0\x8f\x0f" + b"\x01" * 50,
        b"\x62\x01",
    ],
)
def test_what_is_no_list_of_values_is_refused(content: bytes) -> None:
    whole = framed(content)
    assert read(whole) == Discarded(len(whole), "syntax")


def test_SER_12_no_damaged_byte_under_a_valid_checksum_makes_the_parser_fail() -> None:
    """Each byte of a telegram, everything it can be: random bytes seldom get past the checksum."""
    clock = b"\x72" + unsigned(2, 1) + unsigned(1_767_571_200)
    whole = listing(entry("1.8.0", WATT_HOUR, 0, unsigned(5)), time=clock)
    meter = SmlMeter()
    for at in range(len(whole)):
        for byte in range(256):
            for event in meter.feed(framed(whole[:at] + bytes([byte]) + whole[at + 1 :])):
                assert isinstance(event, Telegram | Discarded)
                if isinstance(event, Telegram):
                    assert telegram_text(event)


def test_long_lists_and_long_strings_have_longer_lengths() -> None:
    many = [entry("17.7.0", WATT, 0, octets(b"x" * 60)) for _ in range(40)]
    whole = sml(*many, entry("1.8.0", WATT_HOUR, 0, unsigned(5)))
    assert values(read(whole)) == {"energy_import": 5}


def test_an_escape_sequence_in_the_data_is_sent_twice_and_read_once() -> None:
    for shift in range(4):
        name = octets(b"x" * shift + b"\x1b" * 8 + b"\x02" * 4)
        whole = sml(entry("17.7.0", WATT, 0, name), entry("1.8.0", WATT_HOUR, 0, unsigned(5)))
        assert values(read(whole)) == {"energy_import": 5}


def test_four_fill_bytes_are_read_as_some_meters_send_them() -> None:
    whole = framed(listing(entry("1.8.0", WATT_HOUR, 0, unsigned(5))), filled=4)
    filler = -len(whole) % 4
    assert filler or values(read(whole)) == {"energy_import": 5}


def test_a_frame_that_says_more_fill_bytes_than_it_has_is_refused() -> None:
    raw = START + b"\x1b" * 4 + b"\x1a\xff"
    assert reasons([read(raw + crc16_x25(raw).to_bytes(2, "little"))]) == ["syntax"]


@pytest.mark.parametrize("mark", [b"\x02\x00\x00\x00", b"\x03\x00\x01\x00", b"\x1c\x00\x00\x00"])
def test_an_unknown_escape_sequence_ends_a_frame(mark: bytes) -> None:
    found = SmlMeter().feed(START + bytes(4) + b"\x1b" * 4 + mark + sml())
    assert reasons(found) == ["syntax", "noise", ""]


def test_SER_03_a_lost_byte_costs_one_frame() -> None:
    whole = sml(entry("1.8.0", WATT_HOUR, 0, unsigned(5)))
    for at in range(8, len(whole)):
        assert reasons(SmlMeter().feed(whole[:at] + whole[at + 1 :] + whole + whole))[-1] == ""
        assert reasons(SmlMeter().feed(whole[:at] + whole[at + 1 :] + whole)).count("") == 1


@pytest.mark.parametrize(("spare", "reason"), [(0, ""), (-1, "length")])
def test_the_limit_counts_every_byte_of_a_frame(spare: int, reason: str) -> None:
    whole = sml()
    found = SmlMeter(limit_bytes=len(whole) + spare).feed(whole)
    assert reasons(found)[0] == reason


# captures


@NEEDS_CAPTURES
def test_all_captures_of_the_collection_are_read_or_refused_as_recorded() -> None:
    with (EVERY_CAPTURE / "MANIFEST.csv").open(newline="") as table:
        rows = [row for row in csv.DictReader(table) if row["file"].startswith("sml/")]
    assert len(rows) > 25
    for row in rows:
        found = SmlMeter().feed((EVERY_CAPTURE / row["file"]).read_bytes())
        assert reasons(found).count("") == int(row["check"].partition("/")[0]), row["file"]
        assert {"syntax", "value"}.isdisjoint(reasons(found))


@NEEDS_CAPTURES
def test_SER_28_the_status_word_agrees_with_the_sign_but_for_one_faulty_meter() -> None:
    smllib: Any = import_module("smllib")
    agree, differ = 0, set()
    for path in sorted((EVERY_CAPTURE / "sml").glob("*.bin")):
        if "with_error" in path.name:  # the other parser does not read it
            continue
        for frame in SmlFramer().feed(path.read_bytes()):
            if not isinstance(frame, SmlFrame) or NET_POWER not in frame.raw:
                continue  # 16.7.0 alone has a sign
            reader = smllib.SmlStreamReader()
            reader.add(frame.raw)
            try:
                shown = {one.obis: one for one in reader.get_frame().get_obis()}
            except (AttributeError, smllib.errors.SmlLibException):  # it finds no list there
                continue
            given = direction(one.status for one in shown.values() if one.status is not None)
            net = shown[NET_POWER.hex()].value
            if net and given is not None:
                agree += given == (net < 0)
                differ |= {path.name} if given != (net < 0) else set()
    assert (agree, differ) == (57, {"DZG_DVS-7412.2_jmberg.bin"})


NET_POWER = b"\x01\x00\x10\x07\x00\xff"
NAMES = {"010800": "energy_import", "020800": "energy_export", "010700": "power"}


@NEEDS_CAPTURES
def test_another_parser_reads_the_same_values() -> None:
    """The tables of scalers differ from ours, and so does the framing; DZG's slip is ours alone."""
    smllib: Any = import_module("smllib")
    compared = 0
    for path in sorted((EVERY_CAPTURE / "sml").glob("*.bin")):
        for frame in SmlFramer().feed(path.read_bytes()):
            if not isinstance(frame, SmlFrame) or "with_error" in path.name:
                continue
            reader = smllib.SmlStreamReader()
            reader.add(frame.raw)
            if "DVS-7412" in path.name:
                continue
            try:
                ours = parse_sml(frame)
                theirs = reader.get_frame().get_obis()
            except (
                DamagedError,
                AttributeError,
                smllib.errors.SmlLibException,
            ):  # or of one register
                continue
            for one in theirs:
                quantity = NAMES.get(one.obis[4:10])
                if one.obis[:4] != "0100" or quantity is None or quantity not in values(ours):
                    continue
                scaled = Decimal(one.value).scaleb(one.scaler or 0)
                assert values(ours)[quantity] == scaled.quantize(Decimal(1), ROUND_HALF_UP)
                compared += 1
    assert compared > 700
