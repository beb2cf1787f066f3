"""What answers are made of: values whose types tell units, and the one way to write them.

An answer is a class of AnswerPart, whose docstring tells what its types do not, and a function of
this room that makes it. A command gives it as `Shown` (aggregator.commands.asking), which prints
it; the API is given the same value, and its class is the schema.
"""

import json
from typing import Annotated, Any, Protocol, Self

from msgspec import Meta, Struct, to_builtins


def _of(unit: str, told: str) -> Meta:
    """Return what a type says of its numbers, also to machines."""
    return Meta(description=told, extra_json_schema={"x-unit": unit})


Seconds = Annotated[int, _of("s", "seconds since 1970, UTC")]
Span = Annotated[int, _of("s", "a length of time in seconds")]
InUnit = Annotated[float, _of("unit", "in the stream's unit")]
UnitSlots = Annotated[float, _of("unit × slots", "in the stream's unit, added up over slots")]
WholeSlots = Annotated[int, _of("unit × slots", "the same, of whole values")]
Kwh = Annotated[float, _of("kWh", "energy, where the stream's unit is W, kW, Wh or kWh")]
M3 = Annotated[float, _of("m³", "a volume, where the stream's unit is dm3 or m3")]
Share = Annotated[float, _of("1", "a share, from 0 to 1")]
Reports = Annotated[int, _of("reports", "a number of reports")]
Iso = Annotated[str, Meta(description="ISO 8601, of the answer's zone")]


class AnswerPart(Struct, frozen=True, kw_only=True):
    """An answer, or a part of one."""

    @classmethod
    def of(cls, *sources: object, **others: Any) -> Self:
        """Return one with `others`; of a field that is not there, what the last source calls so.

        A tuple is a list here.
        """
        names = [name for name in cls.__struct_fields__ if name not in others]
        for source in sources:
            same = {name: getattr(source, name) for name in names if hasattr(source, name)}
            others |= {name: [*it] if isinstance(it, tuple) else it for name, it in same.items()}
        return cls(**others)


class Interval(Protocol):
    """A mean with its interval, by whichever mode."""

    @property
    def mean(self) -> float | None:
        """The mean, in the unit."""

    @property
    def low(self) -> float | None:
        """Its lower end."""

    @property
    def high(self) -> float | None:
        """Its upper end."""


def answer_json(answer: AnswerPart) -> str:
    """Return an answer as JSON: the digits of Python's own floats, a line."""
    return json.dumps(to_builtins(answer, enc_hook=_plain)) + "\n"


def _plain(value: object) -> float:
    """Return NumPy's float as Python's, the same to the bit."""
    if isinstance(value, float):
        return float(value)
    raise NotImplementedError(type(value))
