"""From the meter's bytes to the report's code no float is made, in any frame of our own code.

Twice: the device room's syntax has nothing that could make one, not even for a moment inside an
expression; and a trap sees none in any frame between a meter's bytes and the report.
"""

import ast
import builtins
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from agent.claims.elapsed import Elapsed
from agent.claims.pipeline import ActiveStream, Claim, decide
from agent.claims.slots import Kind, SlotBuilder
from agent.meters.obis.dsmr import P1Meter
from agent.meters.reading import Telegram
from edge_ldp import Mechanism
from edge_ldp.protocol.ledger import Ledger, Window
from edge_ldp.ratio import floor_ratio
from firmware_stubs.meters.telegram import p1_telegram
from tests.agent.samples import SLOT, SLOT_S, T0, make_plan
from tests.edge_ldp.laws import ALL

ROOT = Path(__file__).parent.parent.parent
OURS = tuple(str(ROOT / package) for package in ("agent", "edge_ldp"))
METER = "E0043007052870318"


DEVICE = sorted((ROOT / "edge_ldp/device").glob("*.py"))
MAKERS = {"float", "complex", "pow", "round", "getattr", "type", "map", "eval", "abs", "sum"}
WHOLE = {"math.gcd", "math.isqrt", "math.comb", "math.factorial", "math.lcm"}
FLOAT_CODES = set("efd")  # of struct and array


def could_make_floats(tree: ast.AST) -> Iterator[str]:
    """Yield what in a file could make a float: division, literals, names, powers, formats."""
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp | ast.AugAssign):
            if isinstance(node.op, ast.Div | ast.Pow):
                yield ast.unparse(node)
        elif isinstance(node, ast.Constant):
            if isinstance(node.value, float | complex):
                yield ast.unparse(node)
        elif isinstance(node, ast.Attribute):
            of_math = ast.unparse(node).startswith("math.") and ast.unparse(node) not in WHOLE
            if of_math or node.attr in {"__truediv__", "__pow__", "__float__", "hex", "real"}:
                yield ast.unparse(node)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{a.name}" for a in node.names if node.module == "math")
        elif isinstance(node, ast.Call):
            yield from formats_with_floats(node)
    yield from names_of_makers(tree)


def formats_with_floats(node: ast.Call) -> Iterator[str]:
    """Yield a call of struct or array whose format is not written out, or has floats in it."""
    name = ast.unparse(node.func).rpartition(".")[2]
    if name in {"pack", "unpack", "pack_into", "unpack_from", "calcsize", "array"}:
        texts = [one.value for one in ast.walk(node.args[0]) if isinstance(one, ast.Constant)]
        if FLOAT_CODES & set("".join(text for text in texts if isinstance(text, str))):
            yield ast.unparse(node)


def names_of_makers(tree: ast.AST) -> Iterator[str]:
    """Yield each use of a builtin that gives floats, called, bound or handed on."""
    called = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Name) or node.id not in MAKERS:
            continue
        call = called.get(id(node))
        is_sum = node.id in {"sum", "abs", "map", "type"} and call is not None  # of integers
        is_whole = node.id == "round" and call is not None and len(call.args) == 1
        if not (is_sum or is_whole):
            yield node.id


@pytest.mark.parametrize("path", DEVICE, ids=lambda path: path.name)
def test_nothing_in_the_device_room_could_make_a_float_PRV_22(path: Path) -> None:
    assert list(could_make_floats(ast.parse(path.read_text()))) == []


PLANTED = {
    "a division": "def f(a: int, b: int) -> int:\n    return int(a / b)",
    "a division in place": "def f(a: int, b: int) -> int:\n    a /= b\n    return int(a)",
    "a literal": "def f(a: int) -> int:\n    return int(a * 0.5)",
    "a literal in an exponent's form": "SPAN = int(1e6)",
    "a call": "def f(a: int) -> int:\n    return int(float(a) * 3)",
    "another name of it": "number = float",
    "a power": "def f(a: int) -> int:\n    return int(a * 2 ** -1)",
    "the same as a call": "def f(a: int) -> int:\n    return int(a * pow(2, -1))",
    "a method": "def f(a: int, b: int) -> int:\n    return int(a.__truediv__(b))",
    "a root": "import math\n\ndef f(a: int) -> int:\n    return int(math.sqrt(a))",
    "a root by name": "from math import sqrt",
    "bytes read as one": "import struct\n\nX = struct.unpack('<d', bytes(8))",
    "an array of them": "from array import array\n\nX = array('d')",
}


@pytest.mark.parametrize("what", PLANTED)
@pytest.mark.parametrize("name", ["lattice.py", "channel.py", "draw.py"])
def test_a_float_planted_in_the_device_room_is_seen_PRV_22(name: str, what: str) -> None:
    text = (ROOT / "edge_ldp/device" / name).read_text()
    assert list(could_make_floats(ast.parse(f"{text}\n\n{PLANTED[what]}\n")))


def test_the_makers_are_builtins_and_the_whole_ones_give_integers() -> None:
    assert all(hasattr(builtins, name) for name in MAKERS)
    assert [math.gcd(6, 4), math.isqrt(9), math.comb(4, 2), math.factorial(3)] == [2, 3, 6, 6]


def floats_in(run: Callable[[], object]) -> set[str]:
    """Run something; return where in our code a float was held or returned, line by line."""
    found: set[str] = set()

    def watch(frame: FrameType, event: str, arg: Any) -> Any:
        if not frame.f_code.co_filename.startswith(OURS):
            return None
        place = f"{Path(frame.f_code.co_filename).name}:{frame.f_code.co_name}"
        if event == "return" and holds_float(arg):
            found.add(f"{place} returns one")
        if event in ("line", "return"):
            found.update(
                f"{place}: {name}" for name, held in frame.f_locals.items() if holds_float(held)
            )
        return watch

    before = sys.gettrace()
    sys.settrace(watch)
    try:
        run()
    finally:
        sys.settrace(before)
    return found


def holds_float(held: object, depth: int = 3) -> bool:
    """Say whether this is a float, or a plain container with one in it."""
    if isinstance(held, float | complex):
        return True
    if depth and isinstance(held, dict):
        return any(holds_float(item, depth - 1) for item in held.values())
    return bool(
        depth
        and isinstance(held, list | tuple | set)
        and any(holds_float(item, depth - 1) for item in held)
    )


@pytest.mark.parametrize("m", ALL, ids=repr)
def test_no_float_between_a_value_and_its_code(m: Mechanism) -> None:
    assert floats_in(lambda: [m.perturb(value) for value in (m.low - 1, m.low, m.high)]) == set()


def test_no_float_between_the_meters_bytes_and_the_report() -> None:
    active = ActiveStream(1, 1, make_plan().reporter(), floor_ratio(1))
    ledger = Ledger(Window(1, 1, 1), (0,), floor=SLOT - 1, silent_until=0)
    elapsed = Elapsed(SLOT_S, 0, 0, 0, "new")
    telegrams = [
        p1_telegram(meter_id=METER, time_s=T0 + at, import_wh=1000 + at, power_w=123 + at)
        for at in range(0, 2 * SLOT_S, SLOT_S // 3)
    ]
    made: list[Claim | None] = []

    def life_of_a_reading() -> None:
        meter = P1Meter(crc="required", meter_id=METER)
        builder = SlotBuilder(SLOT_S, [("power", Kind.MEAN)])
        for at, telegram in enumerate(telegrams):
            for event in meter.feed(telegram):
                assert isinstance(event, Telegram)
                values = {reading.quantity: reading.value for reading in event.readings}
                closed = builder.read(T0 + at * SLOT_S // 3, values)
                if closed is not None:
                    made.append(decide(ledger, elapsed, closed, [active], lambda n: n // 2))

    assert floats_in(life_of_a_reading) == set()
    assert [claim is not None for claim in made] == [True]


def test_the_trap_sees_a_float(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: one line of arithmetic in doubles, as samplers are usually written."""

    def hasty(value: int, low: int, high: int, size: int, _draw: object) -> int:
        share = (value - low) / (high - low)
        return round(share * (size - 1))

    hasty.__code__ = hasty.__code__.replace(co_filename=str(ROOT / "edge_ldp/device/lattice.py"))
    monkeypatch.setattr("edge_ldp.device.randomizer.to_lattice", hasty)
    m = next(m for m in ALL if m.encoder)
    assert floats_in(lambda: m.perturb(m.low)) == {"lattice.py:hasty: share"}
