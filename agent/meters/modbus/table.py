"""A model's table: which registers show what, and which of them only this model answers.

A table is data: a file of TOML for each model in `models/`, or an owner's own. Here is its form.
Source: docs/meters.md, Modbus.
"""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Literal, NamedTuple

from agent.meters.modbus.frames import Ask
from agent.meters.modbus.numbers import BYTES, NumberForm
from agent.meters.obis.registers import DRAWN, DRAWN_ENERGY, GIVEN, GIVEN_ENERGY, NET, REACTIVE
from edge_ldp.service.typed_table import Range

MOST_REGISTERS = 16
KEYS = {
    "net": NET,
    "drawn": DRAWN,
    "given": GIVEN,
    "energy_import": DRAWN_ENERGY,
    "energy_export": GIVEN_ENERGY,
    "reactive": REACTIVE,
}
"""What a register may show, and under which OBIS number that is used."""

_UNITS = {"W": 1, "kW": 1000, "Wh": 1, "kWh": 1000, "var": 1, "kvar": 1000}
_SCALES = "a scale between 1e-9 and 1e9, or below 0"
_OF = {
    **dict.fromkeys(("net", "drawn", "given"), "W"),
    **dict.fromkeys(("energy_import", "energy_export"), "Wh"),
    "reactive": "var",
}
_WORD = 2
Number = Annotated[int, Range(ge=0, le=0xFFFF)]
Function = Annotated[int, Range(ge=3, le=4)]


@dataclass(frozen=True, slots=True)
class RegisterTable:
    """[[registers]]: where something stands, in which form and unit, and what `scale` multiplies.

    `when`: read only where that many phases have a voltage ("one": the first alone); without it
    wherever no register with a `when` that holds shows the same.
    """

    register: Number
    shows: Literal["net", "drawn", "given", "energy_import", "energy_export", "reactive"]
    unit: Literal["W", "kW", "Wh", "kWh", "var", "kvar"]
    form: NumberForm = "float32"
    scale: Decimal | int = 1
    words: Literal["big", "little"] = "big"
    when: Literal["always", "one"] = "always"


@dataclass(frozen=True, slots=True)
class MarkTable:
    """[[voltages]] and [[marks]]: a register that is answered with something between two numbers.

    A mark proves the model; 0 is what many meters answer for any register, so it proves nothing.
    """

    register: Number
    form: NumberForm = "float32"
    scale: Decimal | int = 1
    words: Literal["big", "little"] = "big"
    function: Function | None = None
    least: Decimal | int = 50
    most: Decimal | int = 500


@dataclass(frozen=True, slots=True)
class ModelTable:
    """A whole file. `function`: 3 reads holding registers, 4 input registers."""

    name: str
    source: str
    function: Function
    registers: tuple[RegisterTable, ...]
    marks: tuple[MarkTable, ...] = ()
    voltages: tuple[MarkTable, ...] = ()


class Place(NamedTuple):
    """One number: its name, where in a block's bytes, its form, factor and order of words."""

    name: str
    at: int
    form: NumberForm
    factor: Fraction
    words: Literal["big", "little"]


class Block(NamedTuple):
    """Registers that lie side by side, read by one request."""

    ask: Ask
    places: tuple[Place, ...]

    @property
    def size(self) -> int:
        """How many bytes its answer has."""
        return _WORD * self.ask.words


def blocks_of(function: int, named: dict[str, RegisterTable | MarkTable]) -> tuple[Block, ...]:
    """Return the fewest requests for registers by name, without reading any other."""
    blocks: list[Block] = []
    for name, one in sorted(
        named.items(), key=lambda item: (_function(function, item[1]), item[1].register)
    ):
        asked, words = _function(function, one), BYTES[one.form] // _WORD
        last = blocks[-1].ask if blocks else Ask(0, 0, 0)
        follows = (asked, one.register) == (last.function, last.first + last.words)
        before = blocks.pop() if follows else Block(Ask(asked, one.register, 0), ())
        place = Place(name, before.size, one.form, _factor(one), one.words)
        ask = before.ask._replace(words=before.ask.words + words)
        blocks.append(Block(ask, (*before.places, place)))
    return tuple(blocks)


def model_faults(table: ModelTable) -> list[tuple[str, str]]:
    """Return (key, expected) of what single fields of a file cannot show."""
    faults = []
    if not 1 <= len(table.registers) <= MOST_REGISTERS:
        faults.append(("registers", f"1 to {MOST_REGISTERS} [[registers]]"))
    seen = set[tuple[str, str]]()
    for at, one in enumerate(table.registers):
        if (one.shows, one.when) in seen:
            faults.append((f"registers[{at}].shows", "each once, or with another `when`"))
        seen.add((one.shows, one.when))
        if one.unit.removeprefix("k") != _OF[one.shows]:
            faults.append((f"registers[{at}].unit", f"{_OF[one.shows]} or k{_OF[one.shows]}"))
        if one.when != "always" and not table.voltages:
            faults.append((f"registers[{at}].when", "nothing unless there are [[voltages]]"))
    for key, all_of in (("marks", table.marks), ("voltages", table.voltages)):
        faults += [(f"{key}[{at}]", _SCALES) for at, one in enumerate(all_of) if _is_wild(one)]
    faults += [
        (f"registers[{at}]", _SCALES) for at, one in enumerate(table.registers) if _is_wild(one)
    ]
    return faults


def _is_wild(one: RegisterTable | MarkTable) -> bool:
    scale = Decimal(one.scale)
    return not scale.is_finite() or not Decimal("1e-9") <= abs(scale) <= Decimal("1e9")


def _function(usual: int, one: RegisterTable | MarkTable) -> int:
    own = None if isinstance(one, RegisterTable) else one.function
    return usual if own is None else own


def _factor(one: RegisterTable | MarkTable) -> Fraction:
    return Fraction(one.scale) * (_UNITS[one.unit] if isinstance(one, RegisterTable) else 1)
