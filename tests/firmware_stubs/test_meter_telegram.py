"""The simulated telegram, read by our parser and by another one."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from dsmr_parser import telegram_specifications as spec
from dsmr_parser.parsers import TelegramParser

from edge_ldp import ParameterError
from firmware_stubs.meters import p1_telegram
from firmware_stubs.meters.telegram import MAX_W, MAX_WH, timestamp
from tests.tables import each

GOOD: dict[str, Any] = {
    "meter_id": "E0099000000000001",
    "time_s": 1_767_571_200,
    "import_wh": 6_657_459,
    "power_w": 378,
}


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def test_another_parser_accepts_it_and_reads_the_same() -> None:
    made = p1_telegram(**GOOD, export_wh=1001, export_power_w=2345)
    theirs = TelegramParser(spec.V5).parse(made.decode("ascii"), throw_ex=True)
    assert theirs.P1_MESSAGE_TIMESTAMP.value.timestamp() == GOOD["time_s"]
    assert bytes.fromhex(theirs.EQUIPMENT_IDENTIFIER.value).decode() == GOOD["meter_id"]
    assert theirs.CURRENT_ELECTRICITY_USAGE.value == Decimal("0.378")
    assert theirs.CURRENT_ELECTRICITY_DELIVERY.value == Decimal("2.345")
    used = theirs.ELECTRICITY_USED_TARIFF_1.value + theirs.ELECTRICITY_USED_TARIFF_2.value
    given_back = (
        theirs.ELECTRICITY_DELIVERED_TARIFF_1.value + theirs.ELECTRICITY_DELIVERED_TARIFF_2.value
    )
    assert (used, given_back) == (Decimal("6657.459"), Decimal("1.001"))
    assert theirs.INSTANTANEOUS_VOLTAGE_L1.value == Decimal("230.1")


@pytest.mark.parametrize(
    ("utc", "printed"),
    [
        ("2026-01-05T00:00:00", "260105010000W"),
        ("2026-03-29T00:59:59", "260329015959W"),
        ("2026-03-29T01:00:00", "260329030000S"),
        ("2026-10-25T00:59:59", "261025025959S"),
        ("2026-10-25T01:00:00", "261025020000W"),
        ("2024-03-31T01:00:00", "240331030000S"),  # the 31st is itself a Sunday
        ("2025-12-31T23:30:00", "260101003000W"),
    ],
)
def test_clocks_change_on_the_last_sundays_of_march_and_october(utc: str, printed: str) -> None:
    assert timestamp(at(utc)) == printed


@pytest.mark.parametrize(
    ("field", "wrong"),
    each(
        ("power_w", -1, MAX_W + 1),
        ("import_wh", MAX_WH + 1),
        ("export_wh", -1),
        ("export_power_w", -1),
        ("meter_id", "", "é", "a\r\nb", "x" * 49),
    ),
)
def test_what_a_meter_cannot_print_is_refused(field: str, wrong: object) -> None:
    with pytest.raises(ParameterError, match=field):
        p1_telegram(**{**GOOD, field: wrong})
