"""Captured telegrams against what was recorded about them, and against another parser."""

import csv
import hashlib
from decimal import Decimal
from typing import Any

import pytest
from dsmr_parser import telegram_specifications as spec
from dsmr_parser.parsers import TelegramParser

from agent.meters.obis.dsmr import CrcRule, P1Framer, P1Meter, RawTelegram
from agent.meters.reading import Telegram
from tests.agent.meters.samples import CAPTURES, EVERY_CAPTURE, STREAM, capture, reasons, values

SPECIFICATIONS = {
    "kaifa_svrooij_v42.raw": spec.V4,
    "swedish_e360.raw": spec.SWEDEN,
    "telegram_fluvius_v171.raw": spec.BELGIUM_FLUVIUS,
    "telegram_sagemcom_t210_d_r.raw": {**spec.SAGEMCOM_T210_D_R, "general_global_cipher": False},
    "telegram_v2_2.raw": spec.V2_2,
    "telegram_v3.raw": spec.V3,
    "telegram_v4_2.raw": spec.V4,
    "telegram_v5.raw": spec.V5,
    "telegram_v5_eon_hu.raw": spec.EON_HUNGARY,
    "tools_badtelegram_0.raw": spec.V5,
    "tools_realdsmr2_0.raw": spec.V2_2,
    "tools_realdsmr4_0.raw": spec.V4,
    STREAM: spec.V5,
}
NAMES = {
    "power": ("CURRENT_ELECTRICITY_USAGE",),
    "power_export": ("CURRENT_ELECTRICITY_DELIVERY",),
    "energy_import": tuple(f"ELECTRICITY_USED_TARIFF_{n}" for n in (1, 2, 3, 4)),
    "energy_export": tuple(f"ELECTRICITY_DELIVERED_TARIFF_{n}" for n in (1, 2, 3, 4)),
}
TOTALS = {
    "energy_import": ("ELECTRICITY_IMPORTED_TOTAL",),
    "energy_export": ("ELECTRICITY_EXPORTED_TOTAL",),
}
SCALE = {"kW": 1000, "kWh": 1000, "W": 1, "Wh": 1}


def rule_for(name: str) -> CrcRule:
    return "required" if "NONE" not in CHECKS[name].upper() else "absent-allowed"


def attribution() -> dict[str, list[str]]:
    rows = (CAPTURES / "ATTRIBUTION.md").read_text().splitlines()
    table = [
        [cell.strip() for cell in row.strip("|").split("|")] for row in rows if ".raw |" in row
    ]
    return {name: cells for name, *cells in table}


CHECKS = {name: cells[1] for name, cells in attribution().items()}


def test_every_capture_is_the_one_that_is_attributed() -> None:
    found = {path.name: path.read_bytes() for path in CAPTURES.glob("*_*.raw")}
    assert found.keys() == attribution().keys()
    for name, (size, _, _, licence, digest) in attribution().items():
        assert len(found[name]) == int(size)
        assert hashlib.sha256(found[name]).hexdigest() == digest
        assert licence in ("MIT", "Apache-2.0")


@pytest.mark.parametrize("name", sorted(CHECKS))
def test_a_capture_is_read_or_refused_as_its_record_says(name: str) -> None:
    expected = {"38/38 ok": ["noise"] + [""] * 38, "first cut off; second ok": ["cut", ""]}
    assert reasons(P1Meter().feed(capture(name))) == expected.get(
        CHECKS[name], ["crc" if CHECKS[name] == "none" else ""]
    )


def frames(data: bytes) -> list[RawTelegram]:
    return [event for event in P1Framer().feed(data) if isinstance(event, RawTelegram)]


@pytest.mark.parametrize("name", sorted(SPECIFICATIONS))
def test_another_parser_reads_the_same_values_and_times(name: str) -> None:
    other = TelegramParser(SPECIFICATIONS[name])
    meter = P1Meter(crc=rule_for(name))
    ours = [event for event in meter.feed(capture(name)) if isinstance(event, Telegram)]
    texts = [frame.body + frame.tail + b"\n" for frame in frames(capture(name))]
    assert len(ours) == len(texts)
    for telegram, text in zip(ours, texts, strict=True):
        theirs = other.parse(text.decode("ascii"))
        told = {key: one for key, one in values(telegram).items() if key in NAMES}
        for quantity, value in told.items():
            expected = as_integer(theirs, TOTALS.get(quantity, ()))
            expected = as_integer(theirs, NAMES[quantity]) if expected is None else expected
            assert value == expected, quantity
        if telegram.time_s is not None:
            assert telegram.time_s == theirs.P1_MESSAGE_TIMESTAMP.value.timestamp()


def as_integer(theirs: Any, names: tuple[str, ...]) -> Decimal | None:
    found = [getattr(theirs, name) for name in names if hasattr(theirs, name)]
    if not found:
        return None
    return sum((one.value * SCALE[one.unit] for one in found), Decimal(0))


@pytest.mark.skipif(not EVERY_CAPTURE.is_dir(), reason="the large collection is not beside us")
def test_all_captures_of_the_collection_are_read_or_refused_as_recorded() -> None:
    with (EVERY_CAPTURE / "MANIFEST.csv").open(newline="") as table:
        rows = [row for row in csv.DictReader(table) if row["file"].startswith("dsmr/")]
    assert len(rows) > 20
    for row in rows:
        found = P1Meter().feed((EVERY_CAPTURE / row["file"]).read_bytes() + b"\r\n")
        read = reasons(found).count("")
        expected = {"ok": 1, "380/380 ok": 380, "first cut off; second ok": 1}
        assert read == expected.get(row["check"], 0), row["file"]
