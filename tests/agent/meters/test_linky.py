"""TIC frames: groups by hand, what is refused, what six bits find, and captures."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from agent.meters.linky import LinkyMeter, TicFrame, parse_tic
from agent.meters.reading import Discarded, Telegram
from tests.agent.meters.samples import EVERY_CAPTURE, only, reasons, values

NEEDS_CAPTURES = pytest.mark.skipif(
    not EVERY_CAPTURE.is_dir(), reason="the large collection is not beside us"
)
# real groups, checksums included: the first frame's is a space
HISTORIQUE = (
    b"\x02\nADCO 021528603314 :\r\nOPTARIF HC.. <\r\nISOUSC 15 <\r\nHCHC 000723392  \r"
    b"\nHCHP 001742238 .\r\nPTEC HP..  \r\nIINST 001 X\r\nPAPP 00180 *\r\x03"
)
STANDARD = (
    b"\x02\nADSC\t123456789012\t=\r\nDATE\tE180716103423\t\tB\r\nEAST\t000000000\tO\r"
    b"\nEAIT\t000032781\tZ\r\nSINSTS\t00000\tF\r\nSINSTI\t01253\tG\r\nNJOURF+1\t00\tB\r\x03"
)


def group(text: str, separator: str = " ") -> bytes:
    counted = text.encode() + (b"\t" if separator == "\t" else b"")
    return b"\n" + (text + separator).encode() + bytes([(sum(counted) & 63) + 32]) + b"\r"


def framed(*groups: bytes) -> bytes:
    return b"\x02" + b"".join(groups) + b"\x03"


def read(raw: bytes) -> Telegram | Discarded:
    return only(LinkyMeter().feed(raw))


def test_a_frame_of_the_historique_mode() -> None:
    found = read(HISTORIQUE)
    assert isinstance(found, Telegram)
    assert values(found) == {"apparent_power": 180, "energy_import": 723_392 + 1_742_238}
    assert (found.meter_id, found.time_s) == ("021528603314", None)
    interrupted = LinkyMeter().feed(HISTORIQUE[:50] + b"\x04" + HISTORIQUE)
    assert reasons(interrupted) == ["cut", "noise", ""]


def test_a_frame_of_the_standard_mode() -> None:
    found = read(STANDARD)
    assert isinstance(found, Telegram)
    assert values(found) == {
        "apparent_power": 0,
        "apparent_power_export": 1253,
        "energy_import": 0,
        "energy_export": 32_781,
    }
    assert found.meter_id == "123456789012"
    assert found.time_s == datetime(2018, 7, 16, 8, 34, 23, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("labels", "watt_hours"),
    [
        (["BASE 000000007"], 7),
        (["EJPHN 000000001", "EJPHPM 000000020"], 21),
        ([f"BBRH{hour}J{day} 000000001" for day in "BWR" for hour in "CP"], 6),
    ],
)
def test_every_tariff_of_a_contract_is_summed(labels: list[str], watt_hours: int) -> None:
    assert values(read(framed(*map(group, labels)))) == {"energy_import": watt_hours}


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("H180116103423", "2018-01-16T09:34:23"),
        ("E231029023000", "2023-10-29T00:30:00"),  # the hour that comes twice
        ("H231029023000", "2023-10-29T01:30:00"),
        ("e180716103423", None),
        ("h180716103423", None),
        (" 180716103423", None),
    ],
)
def test_SER_18_the_season_tells_the_hour_and_its_case_whether_the_clock_is_in_doubt(
    text: str, utc: str | None
) -> None:
    found = read(framed(group(f"DATE\t{text}\t", "\t")))
    assert isinstance(found, Telegram)
    due = datetime.fromisoformat(utc).replace(tzinfo=UTC).timestamp() if utc else None
    assert found.time_s == due


@pytest.mark.parametrize(
    "text",
    [
        *("EAST\t-00000001", "EAST\t0000000001", "EAST\t00000,001", "EAST\t00000.001", "EAST\t"),
        *("EAST\tE180716103423\t000000001", "SINSTS\tNaN", "SINSTS\t 0001"),
        *("ADSC\t12345678901p", "ADSC\t"),
    ],
)
def test_SER_13_SER_14_another_form_of_a_number_or_identity_is_refused(text: str) -> None:
    whole = framed(group(text, "\t"))
    found = read(whole)
    assert found == Discarded(len(whole), "value")
    assert isinstance(found, Discarded)
    assert found.line == text.partition("\t")[0]


@pytest.mark.parametrize(
    "text",
    ["E181316103423", "E180231103423", "E180716243423", "E180716106023", "X180716103423", "E18"],
)
def test_SER_30_a_time_that_cannot_be_read_costs_nothing_but_itself(text: str) -> None:
    found = read(framed(group(f"DATE\t{text}\t", "\t"), group("EAST\t000000007", "\t")))
    assert isinstance(found, Telegram)
    assert (found.time_s, values(found)) == (None, {"energy_import": 7})


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\r",
        b"\n\r",
        b"PAPP 00180 *\r",
        b"\nPAPP 00180 *",
        b"\nPAPP 00180 *\r\n",
        b"\n" + group("PAPP 00180"),
        group("PAPP"),
        group("PA\tPP 00180"),
        group("PA\x01PP 00180"),
        group("BASE 000000001") * 2,
        b"\nPAPP.00180.*\r",
    ],
)
def test_what_has_not_the_shape_of_groups_is_refused(body: bytes) -> None:
    assert LinkyMeter().feed(b"\x02" + body + b"\x03") == [Discarded(len(body) + 2, "syntax")]


@pytest.mark.parametrize("whole", [HISTORIQUE, STANDARD])
def test_SER_02_a_flipped_bit_is_refused_or_changes_nothing_that_is_read(whole: bytes) -> None:
    """Six bits miss bit 6: then a group that is not read, or the time, may be another."""
    good, passed = read(whole), 0
    assert isinstance(good, Telegram)
    flipped = bytearray(whole)
    for at in range(len(whole)):
        for bit in range(8):
            flipped[at] ^= 1 << bit
            meter = LinkyMeter()
            for event in [*meter.feed(bytes(flipped)), *meter.silence()]:
                if isinstance(event, Telegram):
                    assert event in (good, replace(good, time_s=None))
                    assert bit == 6
                    passed += 1
            flipped[at] ^= 1 << bit
    assert passed < len(whole) / 4


FRAMES = [
    ("cbetm_ejp_3phase.raw", 1, {"apparent_power": 5800, "energy_import": 3_333_333}),
    ("historique_hchp_1phase.raw", 0, {"energy_import": 2_465_630}),
    (
        "linky_standard_1phase_producer.raw",
        1,
        {"energy_export": 32_781, "apparent_power": 0, "apparent_power_export": 1253},
    ),
    ("linky_standard_3phase_uart_excerpt.raw", 0, {"apparent_power": 766}),
]


@NEEDS_CAPTURES
@pytest.mark.parametrize(("name", "whole", "shown"), FRAMES)
def test_captures_that_join_and_end_within_a_frame_give_only_whole_frames(
    name: str, whole: int, shown: dict[str, int]
) -> None:
    raw = (EVERY_CAPTURE / "tic" / name).read_bytes()
    assert reasons(LinkyMeter().feed(raw)).count("") == whole
    first, *frames = raw.split(b"\x02")
    body = max(frames, key=len, default=first).removesuffix(b"\x03")
    groups = body[body.find(b"\n") : body.rfind(b"\r") + 1]
    assert shown.items() <= values(parse_tic(TicFrame(groups))).items()
