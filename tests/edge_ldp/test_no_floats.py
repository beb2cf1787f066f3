"""From the meter's bytes to the report's code no float is made, in any frame of our own code."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from agent.claims.elapsed import Elapsed
from agent.claims.pipeline import ActiveStream, Claim, decide
from agent.claims.slots import Kind, SlotBuilder
from agent.meters.dsmr import P1Meter
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
