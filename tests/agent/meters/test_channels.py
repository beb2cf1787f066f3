"""Gas, water and heat behind a P1 port: shown as integers, never reported (SER-12, SER-36)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.commands.commissioning import telegram_json, telegram_text
from agent.meters.obis.channels import channels
from agent.meters.obis.dsmr import P1Meter
from agent.meters.reading import SubMeter, Telegram
from firmware_stubs.meters.telegram import full_p1_telegram
from tests.agent.meters.samples import CAPTURES, capture, parse, sealed, values

Shown = list[tuple[int, str, int, str]]


def shown(telegram: object) -> Shown:
    assert isinstance(telegram, Telegram)
    return [(one.number, one.kind, one.value, one.unit) for one in telegram.channels]


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("telegram_v2_2.raw", [(1, "gas", 1001, "dm3")]),
        ("telegram_v3.raw", [(1, "gas", 1001, "dm3")]),
        ("telegram_v4_2.raw", [(1, "gas", 981_443, "dm3")]),
        ("telegram_v5.raw", [(1, "gas", 107, "dm3")]),
        ("telegram_fluvius_v171.raw", [(1, "gas", 112_384, "dm3"), (2, "water", 872_234, "dm3")]),
        ("telegram_unpadded_crc.raw", [(1, "heat", 240_860, "MJ")]),
        ("tools_realdsmr2_0.raw", [(2, "gas", 13_368_864, "dm3")]),
        ("P06.raw", [(2, "gas", 13_376_292, "dm3")]),
        ("P09.raw", []),  # without a unit nobody knows
        ("swedish_e360.raw", []),
    ],
)
def test_SER_36_meters_behind_are_shown(name: str, right: Shown) -> None:
    data = capture(name) if (CAPTURES / name).exists() else b""
    assert data
    (telegram, *_) = P1Meter(crc="absent-allowed").feed(data)
    assert shown(telegram) == right


@pytest.mark.parametrize(
    ("lines", "right"),
    [
        (("0-3:24.1.0(012)", "0-3:24.2.1(200101000000W)(12.345*GJ)"), [(3, "heat", 12_345, "MJ")]),
        (("0-1:24.2.1(200101000000W)(1*m3)",), [(1, "other", 1000, "dm3")]),
        (("0-1:24.1.0(007)", "0-1:24.2.1(632525252525W)(2.5*m3)"), [(1, "water", 2500, "dm3")]),
        (("0-1:24.1.0(xx)", "0-1:24.2.1()(2.5*m3)"), [(1, "other", 2500, "dm3")]),
        (("0-1:24.2.1(200101000000W)(1,5*m3)",), []),
        (("0-1:24.2.1(200101000000W)(000000001.5*m3)",), []),
        (("0-1:24.3.0(1)(0-1:24.2.1)(m3)",), []),
        (("0-1:24.1.0(003)",), []),
    ],
)
def test_SER_36_what_is_not_understood_is_left_out_and_refuses_nothing(
    lines: tuple[str, ...], right: Shown
) -> None:
    telegram = parse(sealed("0-0:96.1.1(4530)", "1-0:1.7.0(00.378*kW)", *lines))
    assert shown(telegram) == right
    assert values(telegram) == {"power": 378}


@given(st.lists(st.binary(max_size=40) | st.sampled_from([b"0-1:24.2.1(1)(", b"0-1:24.3.0()"])))
def test_SER_12_no_lines_make_it_fail(lines: list[bytes]) -> None:
    assert all(isinstance(one, SubMeter) for one in channels(lines))


def test_they_are_printed_for_the_household_and_stand_in_no_representation() -> None:
    telegram = parse(full_p1_telegram(meter_id="E9", time_s=0, import_wh=7353, power_w=7353))
    assert isinstance(telegram, Telegram)
    assert "gas 7353 dm3\n" in telegram_text(telegram)
    told = json.loads(telegram_json(telegram))
    assert told["channels"][0] == {"number": 1, "kind": "gas", "value": 7353, "unit": "dm3"}
    assert told["reactive_power_var"] == -735
    assert "7353" not in repr(telegram) + repr(telegram.channels)
