"""A Modbus RTU energy meter with an SDM's registers, which answers on a pseudo-terminal.

Written apart from the agent's reader, from the same tables, so that each checks the other.
"""

import struct
from collections.abc import Callable

from firmware_stubs.meters.pty_port import PtyPort

POWER = {"sdm120": 0x000C, "sdm230": 0x000C, "sdm630": 0x0034}
VOLTAGES = {
    "sdm120": (230.0, 0.0, 0.0),
    "sdm230": (230.0, 0.0, 0.0),
    "sdm630": (230.0, 230.0, 230.0),
}  # from 0x0000 on; what a model does not have it answers with 0, like any register without meaning
IMPORT, EXPORT = 0x0048, 0x004A
_REQUEST_BYTES = 8

Values = Callable[[], tuple[int, int, int]]
"""Net power in W, import and export in Wh, as they are now."""


def modbus_answer(
    request: bytes, values: tuple[int, int, int], *, address: int, model: str
) -> bytes:
    """Return the meter's answer to a request; none when it is for another or damaged."""
    if request[-2:] != crc(request[:-2]) or request[0] != address:
        return b""
    function, first, count = request[1], *struct.unpack(">HH", request[2:6])
    shown = {2 * at: voltage for at, voltage in enumerate(VOLTAGES[model])}
    shown |= {POWER[model]: values[0], IMPORT: values[1] / 1000, EXPORT: values[2] / 1000}
    if function != 4 or first % 2 or count % 2 or not 2 <= count <= 80:  # noqa: PLR2004 (Modbus)
        body = bytes((address, function | 0x80, 2))
    else:
        numbers = [shown.get(at, 0.0) for at in range(first, first + count, 2)]
        body = bytes((address, 4, 2 * count)) + struct.pack(f">{len(numbers)}f", *numbers)
    return body + crc(body)


class Registers:
    """A meter's values as they are now: a `Show` that sends nothing, for `serve` to answer from."""

    def __init__(self) -> None:
        self.values = (0, 0, 0)

    def __call__(  # noqa: PLR0913 (one interface for all meters)
        self,
        *,
        meter_id: str,  # noqa: ARG002 (Modbus has none)
        time_s: int,  # noqa: ARG002 (same)
        import_wh: int,
        power_w: int,
        export_wh: int = 0,
        export_power_w: int = 0,
    ) -> bytes:
        """Hold the values from now on; return nothing to send."""
        self.values = (power_w - export_power_w, import_wh, export_wh)
        return b""


async def serve(port: PtyPort, values: Values, *, address: int = 1, model: str = "sdm630") -> None:
    """Answer requests for ever."""
    held = b""
    while True:
        held += await port.read()
        if len(held) >= _REQUEST_BYTES:
            request, held = held[:_REQUEST_BYTES], b""
            await port.write(modbus_answer(request, values(), address=address, model=model))


def crc(frame: bytes) -> bytes:
    """Return the CRC-16/MODBUS of a frame as it is sent."""
    remainder = 0xFFFF
    for byte in frame:
        remainder ^= byte
        for _ in range(8):
            remainder = remainder >> 1 ^ (0xA001 if remainder & 1 else 0)
    return remainder.to_bytes(2, "little")
