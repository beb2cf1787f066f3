"""Numbers as Modbus registers hold them, taken apart in integers: no float on the way to a report.

docs/faults.md, SER-14.
"""

from fractions import Fraction
from typing import Literal

from agent.meters.scale import LIMIT, NANO

NumberForm = Literal["float32", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
BYTES: dict[NumberForm, int] = {
    "float32": 4,
    "int16": 2,
    "uint16": 2,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "uint64": 8,
}
_WORD = 2
_INFINITE = 0xFF


def nano_of(
    octets: bytes, form: NumberForm, factor: Fraction, words: Literal["big", "little"]
) -> int | None:
    """Return a register's number times `factor` in NANO parts, finer ones cut off.

    None for infinities, for what is no number, and for what no register shows. `words`: which of
    several registers comes first; the bytes of one are big-endian always.
    """
    if words == "little":
        octets = b"".join(octets[at : at + _WORD] for at in range(len(octets) - _WORD, -1, -_WORD))
    if form == "float32":
        return nano_of_float(int.from_bytes(octets, "big"), factor)
    number = int.from_bytes(octets, "big", signed=form.startswith("int"))
    return _limited(number * factor.numerator * NANO // factor.denominator)


def nano_of_float(bits: int, factor: Fraction | int) -> int | None:
    """Return a 32-bit IEEE 754 number times `factor` in NANO parts, exactly but for finer ones."""
    exponent, fraction = bits >> 23 & 0xFF, bits & 0x7FFFFF
    if exponent == _INFINITE:
        return None
    mantissa = fraction | (1 << 23 if exponent else 0)
    signed = (-mantissa if bits >> 31 else mantissa) * factor.numerator * NANO
    shift = max(exponent, 1) - 150
    above, below = signed << max(shift, 0), factor.denominator << max(-shift, 0)
    return _limited(above // below)


def _limited(scaled: int) -> int | None:
    return scaled if -LIMIT < scaled < LIMIT else None
