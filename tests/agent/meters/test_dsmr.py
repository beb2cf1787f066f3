"""What a telegram means and what is refused (SER-02, 06, 12..14, 18, 21, 24, 25)."""

from datetime import UTC, datetime
from typing import Any

import pytest

from agent.meters.crc import crc16_arc
from agent.meters.obis.dsmr import CrcRule, P1Meter
from agent.meters.reading import Discarded, Telegram
from tests.agent.meters.samples import SHORT, V4, V5, capture, only, parse, reasons, sealed, values
from tests.tables import each


def test_SER_02_without_a_checksum_a_changed_shape_shows_but_a_changed_digit_cannot() -> None:
    whole = capture("telegram_v2_2.raw")
    meter = P1Meter(crc="absent-allowed")
    assert reasons(meter.feed(whole.replace(b"0001.01*kW", b"0001.01*kV"))) == ["value"]
    assert reasons(meter.feed(whole.replace(b"0001.01*kW", b"0001p01*kW"))) == ["value"]
    changed = only(meter.feed(whole.replace(b"0001.01*kW", b"0009.01*kW")))
    assert values(changed)["power"] == 9010  # docs/privacy.md and the module say so


POWERS = {
    "00.378*kW": 378,
    "0000.37*kW": 370,
    "00.3*kW": 300,
    "007*kW": 7000,
    "188.200*kW": 188_200,
    "000000378*W": 378,
    "0*W": 0,
    "12345678.901*kW": 12_345_678_901,  # eight digits before the point
    "00000000.378*kW": 378,
    "00000000378*W": 378,
}
NO_POWERS = [  # of another form, or what no register can show
    *("00,378*kW", "00.378 *kW", " 00.378*kW", "00.378* kW", "00 378*kW", "1'000.000*kW"),
    *("1,000.000*kW", "00.378", "00.378*", "00.378kW", "00.378*KW", "00.378*kw", "00.378*MW"),
    *("00.378*kWh", "00.378*Wh", "00.378*VA", "378.0*W", "00.3780*kW", "00.3785*kW", "00.*kW"),
    *(".378*kW", ".*kW", "*kW", "", "00.378*kW)(00.378*kW", "00.378*kW*kW", "0.0.378*kW"),
    *("-0.378*kW", "+0.378*kW", "-0*W", "NaN*kW", "inf*kW", "1e308*kW", "1e3*W", "\xb2\xb2*W"),
    *("0x10*W", "1_0*W"),
]
TOO_WIDE = ["000000000.378*kW", "123456789*kW", "123456789012*W", "9" * 40 + "*W", "9" * 40 + "*kW"]


@pytest.mark.parametrize(
    ("lines", "shown"),
    [
        *(([f"1-0:1.7.0({text})"], {"power": watts}) for text, watts in POWERS.items()),
        (["1-0:1.8.0(006545766*Wh)"], {"energy_import": 6_545_766}),
        ([f"1-0:1.8.{n}(00000{n}.00{n}*kWh)" for n in (1, 2, 3, 4)], {"energy_import": 10_010}),
        ([f"1-0:2.8.{n}(00000{n}.00{n}*kWh)" for n in (1, 2, 3, 4)], {"energy_export": 10_010}),
        # a total stands before its tariffs
        (["1-0:2.8.1(000001.000*kWh)", "1-0:2.8.0(000009.000*kWh)"], {"energy_export": 9000}),
    ],
)
def test_SER_13_SER_24_a_number_is_scaled_exactly_by_its_unit(
    lines: list[str], shown: dict[str, int]
) -> None:
    assert values(parse(sealed(*lines))) == shown


@pytest.mark.parametrize(
    ("reason", "text"), each(("value", *NO_POWERS), ("width", *TOO_WIDE)), ids=repr
)
def test_SER_13_SER_14_SER_24_any_other_form_of_a_power_is_refused(reason: Any, text: str) -> None:
    whole = sealed(f"1-0:1.7.0({text})")
    assert parse(whole) == Discarded(len(whole), reason)
    alone_impossible = sealed("1-0:1.7.0(00.378*kW)", f"1-0:2.7.0({text})")
    assert reasons([parse(alone_impossible)]) == [reason], "it spoils the whole telegram"


ONE_KWH = "1-0:1.8.1(000001.000*kWh)"


@pytest.mark.parametrize(
    ("reason", "lines"),
    each(
        ("value", *([f"1-0:1.8.1({one})"] for one in ("00000.500*kW", "500*W", "0.5*MWh", "500"))),
        ("value", ["1-0:1.8.1(0.5*kwh)"], ["1-0:1.8.1(500*varh)"]),
        ("syntax", [ONE_KWH, ONE_KWH]),
    ),
)
def test_SER_13_a_register_in_another_unit_or_told_twice_is_refused(
    reason: str, lines: list[str]
) -> None:
    assert reasons([parse(sealed(*lines))]) == [reason]


def test_a_meter_that_keeps_winter_time_all_year_is_dated_by_its_flag() -> None:
    """The Swedish one says W on 20 October, when the country has summer time."""
    found = parse(capture("swedish_ellevio.raw"))
    assert isinstance(found, Telegram)
    assert found.time_s == datetime(2020, 10, 20, 7, 52, 22, tzinfo=UTC).timestamp()


def test_SER_25_a_checksum_line_that_lost_its_cr_is_read_where_the_checksum_is_right() -> None:
    whole = capture("swedish_e360.raw")
    stripped = whole.removesuffix(b"\r\n") + b"\n"
    assert values(parse(stripped)) == values(parse(whole))
    assert reasons([parse(stripped.replace(b"2.301", b"2.311"))]) == ["crc"]
    assert reasons([parse(stripped.replace(b"kW)\r\n", b"kW)\n", 1))]) == ["crc"], "the body counts"
    bare = P1Meter(crc="absent-allowed").feed(capture("telegram_v2_2.raw").rstrip() + b"\n")
    assert reasons(bare) == ["crc"], "without a checksum nothing says that it is whole"


def test_a_telegram_without_electricity_has_no_readings() -> None:
    assert values(parse(capture(SHORT))) == {}


def test_a_header_with_an_odd_byte_is_taken_where_the_checksum_proves_it() -> None:
    def telegram(header: bytes, tail: bytes | None = None) -> bytes:
        body = b"/TST5" + header + b"\r\n\r\n1-0:1.7.0(00.378*kW)\r\n!"
        return body + (b"%04X" % crc16_arc(body) if tail is None else tail) + b"\r\n"

    found = parse(telegram(b"\xe9\x1bX"))
    assert isinstance(found, Telegram)
    assert (found.meter_id, values(found)) == ("TST5??X", {"power": 378})
    unproved = P1Meter(crc="absent-allowed").feed(telegram(b"\xe9\x1bX", b""))
    assert reasons(unproved) == ["syntax"]


@pytest.mark.parametrize("body", [b"/!", b"/\r\n!", b"/\x07\r\n!", b"/ \r\n!", b"/TST5 1-0:1.7.0!"])
def test_what_has_not_the_shape_of_a_telegram_is_refused(body: bytes) -> None:
    found = P1Meter(crc="absent-allowed").feed(body + b"\r\n")
    assert found == [Discarded(len(body) + 2, "syntax")]


@pytest.mark.parametrize(
    ("rule", "whole", "reason"),
    [
        ("required", capture("telegram_v2_2.raw"), "crc"),
        ("absent-allowed", capture("telegram_v2_2.raw"), ""),
        ("absent-allowed", capture(V5), ""),
        *(  # a version that has a checksum is never read without
            ("absent-allowed", capture(name)[:-6] + b"\r\n", "crc")
            for name in (V4, V5, "telegram_fluvius_v171.raw")
        ),
        ("required", capture(SHORT), ""),  # it may lack leading zeros
        ("required", capture(SHORT).replace(b"!B9F", b"!0B9F"), ""),
        ("required", capture(SHORT).replace(b"!B9F", b"!B9E"), "crc"),
        ("required", capture(V5).replace(b"00.244*kW", b"00.245*kW"), "crc"),
        *(
            ("required", capture(V5)[:-6] + tail, "crc")
            for tail in (b"6eee\r\n", b"6EEE\r\r\n", b"6EEE \r\n", b" 6EEE\r\n", b"06EEE\r\n")
        ),
    ],
)
def test_SER_06_a_checksum_must_verify_where_there_has_to_be_one(
    rule: CrcRule, whole: bytes, reason: str
) -> None:
    assert reasons(P1Meter(crc=rule).feed(whole)) == [reason]


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("190324150519W", "2019-03-24T14:05:19"),
        ("200512135409S", "2020-05-12T11:54:09"),
        ("231029023000S", "2023-10-29T00:30:00"),  # SER-18: the hour that comes twice
        ("231029023000W", "2023-10-29T01:30:00"),
        ("240229235959W", "2024-02-29T22:59:59"),
        ("000101010000W", "2000-01-01T00:00:00"),
        ("07E8061C050A2B2B00FF8880", "2024-06-28T08:43:43"),  # in the octets of COSEM
        ("07E80A1BFF02000000FFC400", "2024-10-27T01:00:00"),
        ("07E80C1F0201000000003C00", "2024-12-31T02:00:00"),
    ],
)
def test_SER_18_SER_30_a_flag_or_an_offset_tells_summer_from_winter_time(
    text: str, utc: str
) -> None:
    telegram = parse(sealed(f"0-0:1.0.0({text})"))
    assert isinstance(telegram, Telegram)
    assert telegram.time_s == datetime.fromisoformat(utc).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    "text",
    [
        "231029023000",  # no flag
        "191324150519W",
        "190230150519W",
        "190324240519W",
        "190324156019W",
        "190324150560W",
        "190324150519X",
        "190324150519s",
        "19032415051W",
        "1903241505199W",
        "19032415051 W",
        "632525252525W",
        "07E8061C050A2B2B00800080",
        "07E8061C050A2B2B00FF8881",
        "07E8021E050A2B2B00FF8880",
        "07E8061C05182B2B00FF8880",
        "07e8061c050a2b2b00ff8880",
        "07E8061C050A2B2B00FF88",
        "",
    ],
)
def test_SER_18_SER_30_a_time_that_is_none_costs_nothing_but_itself(text: str) -> None:
    telegram = parse(sealed(f"0-0:1.0.0({text})", "1-0:1.7.0(00.378*kW)"))
    assert isinstance(telegram, Telegram)
    assert (telegram.time_s, values(telegram)) == (None, {"power": 378})


@pytest.mark.parametrize(
    ("lines", "meter_id"),
    [
        (["0-0:96.1.1(4530303434303037313331363530363138)"], "E0044007131650618"),
        (["0-0:96.1.1(3960221976967177082151037881335713)"], "3960221976967177082151037881335713"),
        (["0-0:96.1.1(453xxxxxxxxxx)"], "453xxxxxxxxxx"),
        (["0-0:96.1.1(204B41)"], "KA"),
        (["0-0:96.1.1(4B4)"], "4B4"),
        (["0-0:96.1.1()", "0-0:42.0.0(534147)"], "SAG"),
        (["0-0:96.1.1()"], "TST5TEST"),
        (["0-0:96.1.1(\x07)"], "TST5TEST"),
        ([], "TST5TEST"),
    ],
)
def test_the_meter_is_known_by_its_equipment_identifier(lines: list[str], meter_id: str) -> None:
    telegram = parse(sealed(*lines))
    assert isinstance(telegram, Telegram)
    assert telegram.meter_id == meter_id
