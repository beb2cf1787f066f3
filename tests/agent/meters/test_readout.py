"""IEC 62056-21 readouts: data sets by hand, what is refused, and captures."""

import pytest

from agent.meters.obis.readout import BareUnit, ReadoutMeter
from agent.meters.reading import Discarded, Telegram
from tests.agent.meters.samples import only, reasons, values


def telegram(*lines: str) -> bytes:
    return "\r\n".join(("/TST5TEST", "", *lines, "!", "")).encode("latin-1")


def read(raw: bytes, bare_unit: BareUnit = "refuse") -> Telegram | Discarded:
    return only(ReadoutMeter(bare_unit=bare_unit).feed(raw))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("1-0:1.8.0*255(00052185.7825309*kWh)", {"energy_import": 52_185_783}),
        ("1.8.0(022108.7*kWh)", {"energy_import": 22_108_700}),
        ("1-1:2.8.0(0000001*Wh)", {"energy_export": 1}),
        ("6.8(0029.055*MWh)1.8.0(0.029055*MWh)", {"energy_import": 29_055}),
        ("1.8.1(1*kWh)1.8.2(2*kWh)", {"energy_import": 3000}),
        ("1.7.0(00.49*kW)", {"power": 490}),
        ("1.7.0(-0.49*kW)", {"power": 0}),
        ("16.7(000.49*kW)", {"power": 490, "power_export": 0}),
        ("1-0:1.8*255(5.5*kWh)", {"energy_import": 5500}),
        ("1-0:16.7.0*255(-000123*W)", {"power": 0, "power_export": 123}),
        ("1-0:16.7.0*255(+000123.5*W)", {"power": 124, "power_export": 0}),
        ("1-0:1.8.0*01(0007904.135*kWh)", {}),
        ("7-0:1.8.0(1*kWh)", {}),
        ("0-0:1.8.0(1*kWh)", {}),
        ("1.6.0(02.468*kW)(1703100930)", {}),
        ("F.F(00)", {}),
        ("2².7.0(1*kW)1.7.0(00.49*kW)", {"power": 490}),  # a digit, and no number
        (f"{'9' * 999}.7.0(1*kW)1.7.0(00.49*kW)", {"power": 490}),
    ],
)
def test_SER_13_a_register_is_scaled_by_its_unit(line: str, expected: dict[str, int]) -> None:
    assert values(read(telegram(line))) == expected


@pytest.mark.parametrize(
    "value",
    [
        *("000123,4*kWh", " 123.4*kWh", "123.4 *kWh", "1'234*kWh", "123.4*KWH", "123.4*kW"),
        *("123.4*kvarh", "123.4", "123.4*", "-123.4*kWh", "+123.4*kWh", "1e3*kWh", "NaN*kWh"),
        *("inf*kWh", ".5*kWh", "5.*kWh", "", "9" * 40 + "*kWh", "1000000000*kWh"),
        *("0.0000000000000000001*kWh", "\xb2*kWh"),
    ],
)
def test_SER_13_SER_14_any_other_form_is_refused(value: str) -> None:
    whole = telegram(f"1.8.0({value})")
    assert read(whole) == Discarded(len(whole), "value")


def test_SER_13_a_register_without_unit_is_in_what_the_owner_says_it_is_in() -> None:
    whole = telegram("1-0:1.8.1*255(032942.0231)")
    assert reasons([read(whole)]) == ["value"]
    assert values(read(whole, "kWh")) == {"energy_import": 32_942_023}
    assert values(read(whole, "Wh")) == {"energy_import": 32_942}
    assert reasons([read(telegram("1.7.0(5)"), "kWh")]) == ["value"]


@pytest.mark.parametrize(
    "raw",
    [
        b"/?!\r\n",
        b"/!\r\n",
        b"/TST5!\r\n",
        b"/TST5\r\n!1234\r\n",
        b"/TST5\r\n!\n",
        b"/\x07\r\n\r\n!\r\n",
        telegram("1.8.0"),
        telegram("1.8.0("),
        telegram("1.8.0)"),
        telegram("1.8.0((1*kWh))"),
        telegram("(1.8.0(1*kWh)"),
        telegram("1.8.0(1*kWh)x"),
        telegram("1.8.0(1*kWh)", "1.8.0(1*kWh)"),
    ],
)
def test_what_has_not_the_shape_of_a_readout_is_refused(raw: bytes) -> None:
    assert read(raw) == Discarded(len(raw), "syntax")


def test_a_landis_gyr_that_leaves_out_the_last_group_is_read() -> None:
    """The shape of an E350's readout (ZMF100), numbers made up."""
    lines = ["F.F(00)", "C.1.0(12345678)", "0.0(00123456        )", "1.8.1(001234.120*kWh)"]
    lines += ["1.8.0(001234.120*kWh)", "2.8.0(000000.000*kWh)", "32.7(229*V)", "16.7(001.66*kW)"]
    found = read(telegram(*lines))
    assert isinstance(found, Telegram)
    assert found.meter_id == "12345678"
    energies = {"energy_import": 1_234_120, "energy_export": 0}
    assert values(found) == {"power": 1660, "power_export": 0, **energies}
    assert reasons([read(telegram("16.7(1*kW)", "16.7.0(1*kW)"))]) == ["syntax"], "told twice"


def test_SER_02_without_a_checksum_a_changed_digit_cannot_be_noticed() -> None:
    """docs/meters.md says so; parity, which the port checks, finds a single bit."""
    whole = telegram("1.8.0(022108.7*kWh)")
    assert values(read(whole.replace(b"2108", b"3108"))) == {"energy_import": 23_108_700}
    assert reasons([read(whole.replace(b"108", b"1p8"))]) == ["value"]


@pytest.mark.parametrize(
    ("lines", "meter_id"),
    [
        (["0-0:96.1.255*255(1ESY1313002565)", "1-0:0.0.0*255(7)"], "1ESY1313002565"),
        (["1-0:0.0.0*255(0272031312565)"], "0272031312565"),
        (["C.1(1126120053322353)"], "1126120053322353"),
        (["C.1()"], "TST5TEST"),
        (["0.0.0(\x07)"], "TST5TEST"),
        ([], "TST5TEST"),
    ],
)
def test_the_meter_is_known_by_its_number(lines: list[str], meter_id: str) -> None:
    found = read(telegram(*lines))
    assert isinstance(found, Telegram)
    assert (found.meter_id, found.time_s) == (meter_id, None)
