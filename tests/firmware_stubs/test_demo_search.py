"""The search for readings finds every encoding planted, and nothing in what agents really write."""

import os
import sqlite3
import struct
from base64 import b64encode
from pathlib import Path

import numpy as np
import pytest

from firmware_stubs.demo.search import CHANCE_HITS, Leak, Patterns, build_patterns, find_readings
from tests.cost import costs_at_most

MARKER = 617_392_846
SENT = range(MARKER, MARKER + 1_600_000, 347)
LATER = SENT[2000]  # 618086846
NOISE = b"2024-10-28 INFO port /dev/pts/3: open, 96 reports, ratio 178145/65536 \x00\x01\xff" * 9


@pytest.fixture(scope="module")
def patterns() -> Patterns:
    return build_patterns([MARKER], SENT)


def texts(register: int) -> dict[str, bytes]:
    kilo = f"{register // 1000}.{register % 1000:03d}"
    return {
        "decimal Wh": str(register).encode(),
        "decimal Wh with zeros": f"{register:012d}".encode(),
        "decimal Wh as float": f"{register}.0".encode(),
        "decimal kWh": kilo.encode(),
        "decimal kWh with comma": kilo.replace(".", ",").encode(),
        "as in a telegram": f"({register // 1000:06d}.{register % 1000:03d}*kWh)".encode(),
        "hex of the text": kilo.encode().hex().encode(),
    }


def words(register: int) -> dict[str, bytes]:
    return {
        f"{order}{code} {unit}": struct.pack(order + code, number)
        for order in "<>"
        for code, unit, number in (
            ("I", "Wh", register),
            ("q", "Wh", register),
            ("f", "Wh", register),
            ("d", "Wh", register),
            ("f", "kWh", register / 1000),
            ("d", "kWh", register / 1000),
        )
    }


ONLY_MARKERS = {
    "hex of u32": struct.pack(">I", MARKER).hex().encode(),
    "hex of u32, upper case": struct.pack("<I", MARKER).hex().upper().encode(),
    "UTF-16": str(MARKER).encode("utf-16-le"),
    **{f"base64 {n}": b64encode(b"abc"[:n] + str(MARKER).encode() + b"}") for n in range(3)},
}


@pytest.mark.parametrize("planted", [*texts(MARKER), *words(MARKER), *ONLY_MARKERS])
@pytest.mark.parametrize("shift", range(4))
def test_prv_03_s1_a_marker_is_found_in_every_encoding_at_any_offset(
    patterns: Patterns, planted: str, shift: int
) -> None:
    hidden = {**texts(MARKER), **words(MARKER), **ONLY_MARKERS}[planted]
    content = NOISE + b"\xee" * shift + hidden + b"\xee" + NOISE
    assert find_readings(content, patterns)
    assert not find_readings(content.replace(hidden, b"?"), patterns)


@pytest.mark.parametrize("planted", texts(LATER))
def test_prv_03_s1_any_register_sent_later_is_found_as_text(
    patterns: Patterns, planted: str
) -> None:
    assert find_readings(NOISE + texts(LATER)[planted] + b" " + NOISE, patterns)


@pytest.mark.parametrize("planted", words(LATER))
def test_prv_05_s1_registers_sent_later_are_found_as_words(
    patterns: Patterns, planted: str
) -> None:
    enough = 1 if planted[1] in "qd" else CHANCE_HITS
    rows = [words(register)[planted] for register in SENT[2000 : 2000 + enough]]
    content = NOISE + b"\xee".join(rows) + NOISE
    assert {f.encoding[0] for f in find_readings(content, patterns)} >= {planted[0]}


def test_a_kilowatt_hour_value_without_its_last_zeros_is_found(patterns: Patterns) -> None:
    register = next(r for r in SENT if r % 100 == 0)
    assert find_readings(f"total {register / 1000}".encode(), patterns)


@pytest.mark.parametrize("line", [b"1-0:1.7.0(00.428*kW)", b"0-0:96.1.1(4530303)", b"00.428*kWh"])
def test_telegram_text_is_a_reading(patterns: Patterns, line: bytes) -> None:
    assert Leak("telegram text", len(NOISE)) in find_readings(NOISE + line, patterns)


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
def test_prv_05_registers_in_a_database_and_its_log_are_found(
    patterns: Patterns, tmp_path: Path, mode: str
) -> None:
    file = tmp_path / "state.db"
    db = sqlite3.connect(file, isolation_level=None)
    db.execute(f"PRAGMA journal_mode = {mode}")
    db.execute("CREATE TABLE readings (slot INTEGER PRIMARY KEY, register INTEGER)")
    for at, register in enumerate(SENT[100:130]):
        db.execute("INSERT INTO readings VALUES (?, ?)", (at, register))
    written = b"".join(path.read_bytes() for path in sorted(tmp_path.iterdir())[::-1])
    db.close()
    assert find_readings(written, patterns)


def test_prv_05_a_reading_in_a_deleted_row_is_found(patterns: Patterns, tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    db = sqlite3.connect(file, isolation_level=None)
    db.execute("PRAGMA secure_delete = OFF")
    db.execute("CREATE TABLE readings (register INTEGER)")
    db.execute("INSERT INTO readings VALUES (?)", (MARKER,))
    db.execute("DELETE FROM readings")
    db.close()
    assert find_readings(file.read_bytes(), patterns)


def test_random_bytes_and_other_numbers_are_no_readings(patterns: Patterns) -> None:
    others = " ".join(str(number) for number in range(1_730_070_000, 1_730_080_000, 900))
    assert find_readings(np.random.default_rng(1).bytes(1 << 14) + others.encode(), patterns) == []
    assert find_readings(b"", patterns) == []
    assert find_readings(b"12", patterns) == []


def test_words_met_by_chance_are_no_reading_however_often_a_log_repeats_them(
    patterns: Patterns,
) -> None:
    """One word in many copies of a page, a few words, a counter that runs through registers."""
    met = [struct.pack(">f", register) for register in SENT[100:200]]
    assert find_readings((met[0] + bytes(508)) * 18, patterns) == []
    assert find_readings(b"".join(one + bytes(508) for one in met[:3]), patterns) == []
    counted = [struct.pack(">I", count) for count in range(SENT[100], SENT[140])]
    assert find_readings(b"".join(one + b"\xee" * 8 for one in counted), patterns) == []
    assert len(find_readings(b"".join(one + bytes(508) for one in met), patterns)) == len(met)


def test_checksums_of_a_write_ahead_log_are_no_readings(patterns: Patterns) -> None:
    page = 512
    head = struct.pack(">IIII16s", 0x377F0682, 3007000, page, 0, struct.pack(">I", MARKER) * 4)
    frame = struct.pack(">II16s", 1, 1, struct.pack(">I", MARKER) * 4) + bytes(page)
    assert find_readings(head + frame * 3, patterns) == []
    leaking = head + frame + frame[:24] + struct.pack(">I", MARKER) + bytes(page - 4)
    assert find_readings(leaking, patterns)


def test_the_search_is_fast_enough_for_a_state_file(patterns: Patterns) -> None:
    content = os.urandom(1 << 20)
    assert costs_at_most(5, lambda: find_readings(content, patterns))


def test_small_registers_are_refused_for_they_cannot_be_told_from_counters() -> None:
    with pytest.raises(ValueError, match="below 100000"):
        build_patterns([99_999], [])
