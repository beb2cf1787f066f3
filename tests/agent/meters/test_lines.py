"""Lines of text and JSON: fields by hand, and what is refused."""

from decimal import Decimal

import pytest

from agent.meters.lines import Field, LinesMeter, field, parse_line
from agent.meters.reading import Discarded, Telegram
from tests.agent.meters.samples import reasons, values

POWER = field("p", "power", "W")
ENERGY = field("e", "energy_import", "kWh")


def shown(line: str, *fields: Field) -> dict[str, int] | str:
    found = parse_line(line.encode(), fields or (POWER,))
    return found if isinstance(found, str) else values(found)


@pytest.mark.parametrize(
    "line",
    [
        *("p=378", "p:378", "x=1,p=378", "x:1; p:378", " p=378 ", "p=378\tq=2", "a,b,p=378"),
        *("p=377.5", '{"p":378}', '{"p": 3.78e2, "q": [1, {"p": 5}]}', '{"p":377.50000000000001}'),
    ],
)
def test_a_named_field_is_found_in_text_and_json(line: str) -> None:
    assert shown(line) == {"power": 378}


def test_a_column_is_counted_from_one() -> None:
    assert shown("12,378;6657.459", field(2, "power", "W"), field(3, "energy_import", "kWh")) == {
        "power": 378,
        "energy_import": 6_657_459,
    }


def test_a_field_of_json_may_lie_inside_another() -> None:
    assert shown('{"ENERGY":{"Power":5}}', field("ENERGY.Power", "power", "W")) == {"power": 5}


@pytest.mark.parametrize(
    ("unit", "scale", "written", "watts"),
    [
        ("W", 1, "378", 378),
        ("kW", 1, "0.378", 378),
        ("MW", 1, "0.000378", 378),
        ("W", Decimal("0.1"), "3785", 379),
        ("W", Decimal("0.1"), "3784.999999999999", 378),
        ("W", Decimal("1.5"), "252", 378),
        ("W", -1, "-378", 378),
        ("W", Decimal("1e3"), "0.378", 378),
        ("W", 1, "-5", 0),
        ("W", 1, "1e-12", 0),
    ],
)
def test_a_number_is_scaled_exactly_and_rounded_once(
    unit: str, scale: Decimal | int, written: str, watts: int
) -> None:
    for line in (f"p={written}", f'{{"p":{written}}}'):
        assert shown(line, field("p", "power", unit, scale)) == {"power": watts}


@pytest.mark.parametrize(
    "written",
    [
        *("NaN", "Infinity", "-Infinity", "1e99", "1e308", "9" * 40, "0x10", "1_000", '"12"'),
        *("true", "null", "[]", "{}", "1.", ".5", "٣"),
    ],
)
def test_SER_13_SER_14_what_is_no_number_is_refused(written: str) -> None:
    assert shown(f'{{"p":{written}}}') in ("value", "syntax")
    assert shown(f"p={written}x") == "value"


def test_SER_14_a_negative_register_is_refused() -> None:
    assert shown("e=-1", ENERGY) == "value"
    assert shown("e=-0", ENERGY) == {"energy_import": 0}


@pytest.mark.parametrize(
    "line",
    [
        *("q=378", "p", "", "p=1,p=2", '{"p":1,"p":2}', '{"q":1}', '{"p":1', '{"p":1}}', "{" * 900),
        *('{"a":' * 170 + "1", '{"p.q":1}', '["p",1]'),
    ],
)
def test_a_line_without_a_configured_field_or_with_two_is_refused(line: str) -> None:
    assert shown(line) in ("syntax", "value" if line == "p" else "syntax")


def test_bytes_that_are_no_text_are_refused() -> None:
    assert parse_line(b"p=1,\xff\xfe", (POWER,)) == "syntax"


def test_the_first_bytes_are_the_rest_of_a_line() -> None:
    meter = LinesMeter([field(1, "power", "W")])
    assert reasons(meter.feed(b"78\n378\n")) == ["noise", ""]


def test_SER_03_after_silence_a_line_begins() -> None:
    meter = LinesMeter([POWER])
    assert meter.feed(b"p=3") == []
    assert meter.silence() == [Discarded(3, "noise")]
    assert meter.feed(b"p=4") == []
    assert meter.silence() == [Discarded(3, "cut")]
    (found,) = meter.feed(b"p=378\n")
    assert values(found) == {"power": 378}


def test_SER_04_half_a_line_and_then_a_whole_one_glue_and_are_refused() -> None:
    """Nothing tells where the second begins; the third line is read."""
    meter = LinesMeter([POWER, ENERGY])
    whole = b"p=378,e=6657.459\n"
    meter.feed(b"\n")
    for size in range(1, len(whole)):
        found = meter.feed(whole[:size] + whole + whole)
        assert reasons(found)[-1] == ""
        assert all(values(e)["power"] == 378 for e in found if isinstance(e, Telegram))


def test_SER_02_without_a_checksum_a_changed_digit_cannot_be_noticed() -> None:
    assert shown("p=978") == {"power": 978}  # docs/meters.md says so


def test_SER_11_a_line_longer_than_the_limit_is_refused_and_the_next_is_read() -> None:
    meter = LinesMeter([POWER], limit_bytes=16)
    found = meter.feed(b"\n" + b"p=" + b"1" * 30 + b"\np=378\n")
    assert found[:2] == [Discarded(16, "length"), Discarded(16, "noise")]
    assert reasons(found[2:]) == [""]
