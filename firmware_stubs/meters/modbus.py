"""Modbus energy meters of several models, which answer on a pseudo-terminal or in TCP.

Written apart from the agent's tables, from the makers', so that each checks the other.
"""

import struct
from collections.abc import Callable
from typing import Any, NamedTuple

from firmware_stubs.meters.pty_port import MeterEnd
from firmware_stubs.meters.telegram import Display, reflected_crc

Values = Callable[[], tuple[int, int, int]]
"""Net power in W, import and export in Wh, as they are now."""


class RegisterMap(NamedTuple):
    """A meter's registers (first word, form of struct, what it shows times so much) by function.

    `constant` are registers that always show the same; `volts` the phases' voltages, by form.
    """

    function: int
    power: tuple[tuple[int, str, float], ...]
    drawn: tuple[tuple[int, str, float], ...]
    given: tuple[tuple[int, str, float], ...] = ()
    constant: tuple[tuple[int, int, str, float], ...] = ()  # function, register, form, number


def _volts(
    function: int, first: int, shown: tuple[float, ...], form: str = "f"
) -> tuple[tuple[int, int, str, float], ...]:
    words = struct.calcsize(f">{form}") // 2
    return tuple((function, first + words * at, form, volts) for at, volts in enumerate(shown))


_ENERGIES = (((0x48, "f", 0.001),), ((0x4A, "f", 0.001),))
_ONE = RegisterMap(4, ((0x0C, "f", 1),), *_ENERGIES, _volts(4, 0, (230.0,)))
_THREE = _ONE._replace(power=((0x34, "f", 1),), constant=_volts(4, 0, (230.0, 231.0, 229.0)))
MODELS = {
    "sdm120": _ONE,
    "sdm230": _ONE,
    "sdm630": _THREE,
    "sdm630-without-l1": _THREE._replace(constant=_volts(4, 0, (0.0, 231.0, 229.0))),
    "sdm72": _THREE._replace(constant=()),
    "sdm72v2": _THREE._replace(constant=(*_THREE.constant, (3, 0xFC02, "H", 0x89))),
    "sdm72v2-one-phase": _THREE._replace(
        power=((0x34, "f", 1), (0x0C, "f", 1)),
        constant=(*_volts(4, 0, (230.0,)), (3, 0xFC02, "H", 0x89)),
    ),
    "dtsu666": RegisterMap(
        3,
        ((0x2012, "f", 10),),
        ((0x101E, "f", 0.001),),
        ((0x1028, "f", 0.001),),
        (*_volts(3, 0x2006, (2301.0, 2299.0, 2300.0)), (3, 0x0000, "H", 2), (4, 0x02, "I", 701)),
    ),
    "orno-we-516": RegisterMap(
        3,
        ((0x1C, "f", 0.001),),
        ((0x108, "f", 0.001),),
        ((0x110, "f", 0.001),),
        _volts(3, 0x0E, (230.0, 231.0, 229.0)),
    ),
    "orno-we-514": RegisterMap(
        3, ((0x140, "i", 1),), ((0xA000, "I", 0.1),), (), _volts(3, 0x131, (23_010.0,), "H")
    ),
}
"""What each model shows, and where; what a model does not have it answers with 0, or refuses."""

_RTU_BYTES, _TCP_BYTES, _MOST_WORDS = 8, 12, 125


def _words(model: RegisterMap, values: tuple[int, int, int]) -> dict[tuple[int, int], bytes]:
    """Return each word that a meter has, by function and register."""
    found: dict[tuple[int, int], bytes] = {}

    def put(function: int, register: int, form: str, number: float) -> None:
        octets = struct.pack(f">{form}", number if form == "f" else int(number))
        for at in range(0, len(octets), 2):
            found[function, register + at // 2] = octets[at : at + 2]

    for places, value in zip((model.power, model.drawn, model.given), values, strict=True):
        for register, form, factor in places:
            put(model.function, register, form, value * factor)
    for function, register, form, number in model.constant:
        put(function, register, form, number)
    return found


def modbus_content(
    content: bytes, values: tuple[int, int, int], model: str, *, refuses: bool = False
) -> bytes:
    """Return what a meter answers to a request's function and registers.

    `refuses`: registers that it does not have are refused (exception 2), not answered with 0.
    """
    function, first, count = content[0], *struct.unpack(">HH", content[1:5])
    words = _words(MODELS[model], values)
    asked = [(function, at) for at in range(first, first + count)]
    has_function = any(function == known for known, _ in words)
    if not has_function:
        return bytes((function | 0x80, 1))
    if not 1 <= count <= _MOST_WORDS or (refuses and not all(one in words for one in asked)):
        return bytes((function | 0x80, 2))
    return bytes((function, 2 * count)) + b"".join(words.get(one, bytes(2)) for one in asked)


def modbus_answer(
    request: bytes,
    values: tuple[int, int, int],
    *,
    address: int,
    model: str,
    refuses: bool = False,
) -> bytes:
    """Return the meter's answer on a serial line; none when it is for another or damaged."""
    if request[-2:] != crc(request[:-2]) or request[0] != address:
        return b""
    body = bytes((address,)) + modbus_content(request[1:-2], values, model, refuses=refuses)
    return body + crc(body)


def modbus_tcp_answer(request: bytes, values: tuple[int, int, int], *, model: str) -> bytes:
    """Return the meter's answer in TCP: under the number of the request, for any unit."""
    content = modbus_content(request[7:], values, model)
    return request[:4] + (len(content) + 1).to_bytes(2, "big") + request[6:7] + content


class Registers:
    """A meter's values as they are now: a `Show` that sends nothing, for `serve` to answer from."""

    def __init__(self) -> None:
        self.values = (0, 0, 0)

    def __call__(self, **shown: Any) -> bytes:
        """Hold the values from now on; return nothing to send."""
        now = Display(**shown)
        self.values = (now.net_w, now.import_wh, now.export_wh)
        return b""


async def serve(  # noqa: PLR0913 (how a meter is)
    port: MeterEnd,
    values: Values,
    *,
    address: int = 1,
    model: str = "sdm630",
    refuses: bool = False,
    is_tcp: bool = False,
) -> None:
    """Answer requests for ever."""
    held, size = b"", _TCP_BYTES if is_tcp else _RTU_BYTES
    while True:
        held += await port.read()
        if len(held) >= size:
            request, held = held[:size], b""
            if is_tcp:
                answer = modbus_tcp_answer(request, values(), model=model)
            else:
                answer = modbus_answer(
                    request, values(), address=address, model=model, refuses=refuses
                )
            await port.write(answer)


def crc(frame: bytes) -> bytes:
    """Return the CRC-16/MODBUS of a frame as it is sent."""
    return reflected_crc(frame, 0xA001).to_bytes(2, "little")
