"""What holds for every protocol: any cut, noise or bytes, bounded memory (SER-01..05, 11, 12).

A case is a parser, two telegrams of the simulated meter that it reads, and what noise may hold.
"""

import ast
import tracemalloc
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent import meters
from agent.meters.protocols import PROTOCOLS
from agent.meters.reading import Asker, Discarded, Meter, Telegram
from agent.meters.section import FieldTable, MeterTable
from agent.ports.meters import make_meter
from firmware_stubs.meters.lines import json_line, text_line
from firmware_stubs.meters.linky import historique_telegram, linky_telegram
from firmware_stubs.meters.readout import readout_telegram
from firmware_stubs.meters.sml import sml_telegram
from firmware_stubs.meters.telegram import p1_telegram
from tests.agent.meters.samples import reasons, values
from tests.cost import costs_at_most
from tests.reached import reached

T0 = 1_767_571_200
SHOWN = {"power": 378, "power_export": 0, "energy_import": 6_657_459, "energy_export": 1001}


class Case(NamedTuple):
    """`tokens` are pieces that the fuzzer puts together."""

    make: Callable[[], Meter]
    show: Callable[..., bytes]
    shown: dict[str, int]
    tokens: list[bytes]
    has_checksum: bool = True
    knows_its_start: bool = True


def maker(**table: object) -> Callable[[], Meter]:
    def make() -> Meter:
        made = make_meter(MeterTable(port="x", **table))  # type: ignore[arg-type]
        assert not isinstance(made, Asker)
        return made

    return make


def listening(meter: Meter) -> Meter:
    """Return a meter of lines that has seen the end of one."""
    meter.feed(b"\n")
    return meter


def fields(names: dict[str, str], energy: Literal["Wh", "kWh"]) -> tuple[FieldTable, ...]:
    return tuple(
        FieldTable(quantity=quantity, unit=energy if quantity in ENERGIES else "W", field=name)  # type: ignore[arg-type]
        for quantity, name in names.items()
    )


ENERGIES = ("energy_import", "energy_export")
TEXT_FIELDS = fields(
    dict(zip(SHOWN, ("power", "export", "import_kwh", "export_kwh"), strict=True)), "kWh"
)
JSON_FIELDS = fields(
    dict(zip(SHOWN, ("ENERGY.Power", "ENERGY.Export", "ENERGY.In", "ENERGY.Out"), strict=True)),
    "Wh",
)
CASES = {
    "dsmr": Case(maker(), p1_telegram, SHOWN, [b"/", b"!", b"\r\n", b"1-0:1.7.0(", b"*kW)", b"1."]),
    "sml": Case(
        maker(protocol="sml"),
        sml_telegram,
        SHOWN,
        [b"\x1b" * 4, b"\x01" * 4, b"\x1b\x1b\x1b", b"\x1a\x00", b"\x76", b"\x00", b"\x77\x07"],
    ),
    "linky": Case(
        maker(protocol="linky"),
        linky_telegram,
        {
            "apparent_power": 378,
            "apparent_power_export": 0,
            "energy_import": 6_657_459,
            "energy_export": 1001,
        },
        [b"\x02", b"\x03", b"\x04", b"\n", b"\r", b"EAST\t1\t.", b"\nPAPP 1 *\r", b"\nDATE\tE"],
        has_checksum=False,  # of six bits: test_linky says what it finds
    ),
    "linky/historique": Case(
        maker(protocol="linky"),
        historique_telegram,
        {"apparent_power": 378, "energy_import": 6_657_459},
        [b"\x02", b"\x03", b"\n", b"\r", b"\nPAPP 00180 *\r", b"\nADCO X"],
        has_checksum=False,
    ),
    "iec62056-21": Case(
        maker(protocol="iec62056-21"),
        readout_telegram,
        SHOWN,
        [b"/", b"!", b"\r\n", b"1-0:1.7.0*255(", b"*kW)", b"1.", b"\x02", b"(", b")"],
        has_checksum=False,  # it has none
    ),
    "lines": Case(
        lambda: listening(maker(protocol="lines", fields=TEXT_FIELDS)()),
        text_line,
        SHOWN,
        [
            b"power=",
            b"1",
            b",",
            b"\n",
            b"\r",
            b"power=1,export=2,import_kwh=3,export_kwh=4\n",
            b" ",
        ],
        has_checksum=False,  # it has none
        knows_its_start=False,
    ),
    "lines/json": Case(
        lambda: listening(maker(protocol="lines", fields=JSON_FIELDS)()),
        json_line,
        SHOWN,
        [b"{", b"}", b'"ENERGY"', b":", b"[", b"\n", b"1", b"NaN", b'"', b"\\", b","],
        has_checksum=False,
        knows_its_start=False,
    ),
}
ASKED = {"modbus"}  # its own tests say the same of a meter that speaks when asked
MEGABYTES = 12  # three times what may be kept
EVERY = pytest.mark.parametrize("name", CASES)


def telegram(case: Case, power_w: int = 378, of: str = "E0099000000000001") -> bytes:
    return case.show(meter_id=of, time_s=T0, import_wh=6_657_459, power_w=power_w, export_wh=1001)


def fed(meter: Meter, chunks: list[bytes]) -> list[Telegram | Discarded]:
    return [event for chunk in chunks for event in meter.feed(chunk)] + list(meter.silence())


def test_every_protocol_has_a_case() -> None:
    assert {name.partition("/")[0] for name in CASES} == PROTOCOLS.keys() - ASKED


@EVERY
def test_a_telegram_gives_exactly_what_the_meter_was_told_to_show(name: str) -> None:
    case = CASES[name]
    (event,) = case.make().feed(telegram(case))
    assert values(event) == case.shown


@pytest.mark.parametrize("name", [name for name in CASES if CASES[name].knows_its_start])
def test_SER_21_another_meters_telegrams_are_counted_not_read(name: str) -> None:
    case = CASES[name]
    ours, other = telegram(case), telegram(case, of="E0099000000000002")
    (read,) = case.make().feed(ours)
    assert isinstance(read, Telegram)
    meter = maker(protocol=name.partition("/")[0], meter_id=read.meter_id)()
    assert reasons(meter.feed(ours + other + ours)) == ["", "identity", ""]


@EVERY
def test_a_telegram_takes_well_under_a_millisecond(name: str) -> None:
    case = CASES[name]
    meter, whole = case.make(), telegram(case)
    assert costs_at_most(0.001, lambda: meter.feed(whole))


@EVERY
def test_no_buffer_of_ours_holds_a_telegram_that_was_read(name: str) -> None:
    """Bytes cannot be overwritten in CPython: they are let go of as soon as they were read."""

    def texts(meter: Meter) -> set[object]:
        return {bytes(one) if isinstance(one, bytearray) else one for one in reached(meter)
                if isinstance(one, str | bytes | bytearray)}  # fmt: skip

    case = CASES[name]
    meter, whole = case.make(), telegram(case, 999)
    fed(meter, [telegram(case)])
    before = texts(meter)
    meter.feed(whole[: len(whole) // 2])
    assert texts(meter) - before, "half a telegram has to be held"
    assert "" in reasons(fed(meter, [whole[len(whole) // 2 :]]))
    assert texts(meter) - before == set()


@EVERY
@given(data=st.data())
def test_SER_05_any_cut_of_any_stream_gives_the_same_events(name: str, data: st.DataObject) -> None:
    case = CASES[name]
    pieces = st.sampled_from([*case.tokens, telegram(case), telegram(case)[:-9], b"\xff\x80", b"0"])
    stream = b"".join(data.draw(st.lists(pieces, max_size=8)))
    at = data.draw(st.lists(st.integers(0, len(stream)), max_size=20).map(sorted))
    whole = fed(case.make(), [stream])
    assert fed(case.make(), [stream[a:b] for a, b in pairwise([0, *at, len(stream)])]) == whole
    assert fed(case.make(), [stream[i : i + 1] for i in range(len(stream))]) == whole


@EVERY
def test_SER_01_noise_between_telegrams_costs_none_of_them(name: str) -> None:
    case, rng = CASES[name], np.random.default_rng(1)
    meter, read = case.make(), 0
    for _ in range(100):
        read += reasons(meter.feed(rng.bytes(1024))).count("")
        meter.silence()
        read += reasons(meter.feed(telegram(case))).count("")
    assert read == 100


@EVERY
def test_SER_02_every_flipped_bit_is_refused_or_changes_no_reading(name: str) -> None:
    case = CASES[name]
    good, follower = telegram(case), telegram(case, 999)
    whole = bytearray(good)
    for at in range(len(whole) if case.has_checksum else 0):
        for bit in range(8):
            whole[at] ^= 1 << bit
            events = fed(case.make(), [bytes(whole)])
            whole[at] ^= 1 << bit
            assert "" not in reasons(events), (at, bit)
    for at in range(0, len(good), 7):
        whole[at] ^= 0x10
        *_, last = fed(case.make(), [bytes(whole), follower, follower])
        whole[at] ^= 0x10
        assert values(last)["energy_import"] == 6_657_459  # the next telegram is read


@EVERY
def test_SER_03_half_a_telegram_and_silence_give_nothing_and_cost_nothing(name: str) -> None:
    case = CASES[name]
    whole, meter = telegram(case), case.make()
    for size in range(1, len(whole)):
        assert meter.feed(whole[:size]) == [], size
        assert sum(event.size for event in meter.silence()) == size
        assert meter.silence() == []
        assert reasons(meter.feed(whole)) == [""]


@EVERY
def test_SER_04_half_a_telegram_and_then_a_whole_one_give_exactly_one(name: str) -> None:
    case = CASES[name]
    whole = telegram(case)
    for size in range(1, len(whole)):
        events = fed(case.make(), [whole[:size] + whole])
        read = reasons(events).count("")
        if case.knows_its_start:
            assert read == 1, size
            assert reasons(events)[-1] == ""
        assert read <= 1


@pytest.mark.parametrize("starts", [2, pytest.param(99, marks=pytest.mark.slow)])
@EVERY
def test_SER_11_megabytes_without_an_end_are_counted_not_kept(name: str, starts: int) -> None:
    case = CASES[name]
    chunk = b"x" * 1_000_000
    for start in (b"", *case.tokens[:starts], telegram(case)[:100]):
        meter = case.make()
        meter.feed(start)
        tracemalloc.start()
        counted = sum(size_of(event) for _ in range(MEGABYTES) for event in meter.feed(chunk))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        counted += sum(event.size for event in meter.silence())
        assert len(chunk) * MEGABYTES <= counted <= len(chunk) * MEGABYTES + len(start)
        assert peak < 4_000_000  # the chunk itself and its copy


def size_of(event: Telegram | Discarded) -> int:
    assert isinstance(event, Discarded)
    return event.size


@EVERY
@settings(max_examples=30)
@given(data=st.data())
def test_SER_12_no_damage_and_no_bytes_make_a_parser_fail(name: str, data: st.DataObject) -> None:
    damaged(CASES[name], data)


def damaged(case: Case, data: st.DataObject) -> None:
    whole = telegram(case)
    edits = st.tuples(st.integers(0, len(whole)), st.binary(max_size=4))
    for at, junk in data.draw(st.lists(edits, max_size=5)):
        whole = whole[:at] + junk + whole[at + len(junk) :]
    tokens = st.lists(st.sampled_from(case.tokens) | st.binary(max_size=9), max_size=12)
    meter = case.make()
    for event in fed(meter, [whole, data.draw(st.binary(max_size=99)), *data.draw(tokens)]):
        assert isinstance(event, Telegram | Discarded)
        assert repr(event).isprintable()
        if isinstance(event, Telegram):
            assert event.meter_id.isascii()
            assert event.meter_id.isprintable()
            assert all(0 <= reading.value < 4 * 10**12 for reading in event.readings)
        else:
            assert event.size > 0


@pytest.mark.parametrize(
    "path", sorted(Path(meters.__file__).parent.glob("*.py")), ids=lambda path: path.stem
)
def test_no_parser_holds_a_float_or_divides_into_one(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        assert not isinstance(node, ast.Div), path
        assert not (isinstance(node, ast.Constant) and isinstance(node.value, float)), path
        assert not (isinstance(node, ast.Name) and node.id in ("float", "round")), path


@pytest.mark.slow
@EVERY
def test_SER_12_a_million_random_inputs_do_not_make_a_parser_fail(name: str) -> None:
    case, rng = CASES[name], np.random.default_rng(12)
    whole = telegram(case)
    tokens = [*case.tokens, b"0", b"\xff\x1b", b"\r\n"]
    meter = case.make()
    for row in rng.integers(0, len(tokens), (900_000, 6)).tolist():
        for event in meter.feed(b"".join([tokens[pick] for pick in row])):
            assert event.__class__ in (Telegram, Discarded)
    for at, byte in zip(
        rng.integers(0, len(whole), 100_000).tolist(), rng.bytes(100_000), strict=True
    ):
        for event in meter.feed(whole[:at] + bytes([byte]) + whole[at + 1 :]):
            assert event.__class__ in (Telegram, Discarded)
