"""The simulated meters of every protocol print what they are told and refuse what they cannot."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from edge_ldp import ParameterError
from firmware_stubs.meters import PtyPort, modbus
from firmware_stubs.meters.linky import historique_telegram, linky_telegram
from firmware_stubs.meters.readout import readout_telegram
from firmware_stubs.meters.sml import crc, sml_telegram

GOOD: dict[str, Any] = {"meter_id": "E009", "time_s": 1_767_571_200, "import_wh": 7, "power_w": 3}


@pytest.mark.parametrize(
    "show", [sml_telegram, linky_telegram, historique_telegram, readout_telegram]
)
@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("power_w", -1),
        ("power_w", 10**6),
        ("import_wh", 10**9),
        ("export_wh", -1),
        ("export_power_w", 10**6),
    ],
)
def test_what_a_meter_cannot_print_is_refused(show: Any, field: str, wrong: int) -> None:
    with pytest.raises(ParameterError, match=field):
        show(**{**GOOD, field: wrong})


def test_an_sml_telegram_needs_a_name() -> None:
    with pytest.raises(ParameterError, match="meter_id"):
        sml_telegram(**{**GOOD, "meter_id": ""})


def test_sml_checksum_and_escapes() -> None:
    assert crc(b"123456789") == 0x906E
    made = sml_telegram(**{**GOOD, "meter_id": "\x1b" * 10})
    assert made.count(b"\x1b" * 4) > 2
    assert len(made) % 4 == 0


def test_a_modbus_meter_answers_only_its_own_sound_requests() -> None:
    ask = bytes((1, 4, 0, 0x34, 0, 2))
    good = ask + modbus.crc(ask)
    shown = modbus.modbus_answer(good, (378, 0, 0), address=1, model="sdm630")
    assert shown[:7] == bytes.fromhex("01040443bd0000")
    assert modbus.modbus_answer(good, (378, 0, 0), address=2, model="sdm630") == b""
    assert modbus.modbus_answer(ask + b"\x00\x00", (378, 0, 0), address=1, model="sdm630") == b""
    many = bytes((1, 4, 0, 0x34, 0, 126))
    refused = modbus.modbus_answer(many + modbus.crc(many), (1, 0, 0), address=1, model="sdm630")
    assert refused[:3] == b"\x01\x84\x02"
    lacking = bytes((1, 4, 0, 0x36, 0, 2))
    request = lacking + modbus.crc(lacking)
    told = modbus.modbus_answer(request, (1, 0, 0), address=1, model="sdm630")
    assert told[:7] == bytes.fromhex("01040400000000")
    told = modbus.modbus_answer(request, (1, 0, 0), address=1, model="sdm630", refuses=True)
    assert told[:3] == b"\x01\x84\x02"


@pytest.mark.integration
async def test_the_meters_end_reads_what_is_written_to_it(tmp_path: Path) -> None:
    port = PtyPort(tmp_path / "meter")
    port.plug()
    reading = asyncio.create_task(port.read())
    await asyncio.sleep(0.02)  # nobody has it open yet
    with port.link.open("wb", buffering=0) as line:
        line.write(b"ask")
        assert await asyncio.wait_for(reading, 60) == b"ask"
    port.unplug()
    with pytest.raises(OSError, match="Bad file"):
        await port.read()
