"""An IEC 62056-21 meter of mode C, which is asked: signed on to slowly, then read at its speed.

Written apart from the agent's machine, from the same standard, so that each checks the other.
"""

import asyncio
from collections.abc import Callable
from functools import reduce
from operator import xor

from firmware_stubs.meters.pty_port import MeterEnd

ACKNOWLEDGED_S = 0.2  # six characters at 300 baud
_PIECE_S = 0.05


async def serve_readout(  # noqa: PLR0913 (how a meter is)
    port: MeterEnd,
    power_w: Callable[[], int],
    *,
    speed: bytes = b"5",
    reaction_s: float = 0.2,
    baud: int | None = None,
    registers: int = 0,
) -> None:
    """Answer sign-on messages for ever, whatever speed the line has.

    `reaction_s`: from the end of the acknowledgement to the readout, 0.02 at least. `baud`: as
    slowly as a line of this speed does. `registers`: so many lines of history beside the present.
    """
    held = b""
    while True:
        held += await port.read()
        if held.endswith(b"/?!\r\n"):
            held = b""
            await port.write(b"/TST" + speed + b"METER\r\n")
        elif held[:-1].endswith((b"\x060" + speed + b"0\r", b"\x06000\r")):
            held = b""
            await asyncio.sleep(ACKNOWLEDGED_S + reaction_s)
            await _tell(port, readout_text(power_w(), registers), baud)


def readout_text(power_w: int, registers: int = 0) -> bytes:
    """Return a readout from STX to its check byte."""
    history = b"".join(b"1.8.0*%02d(0000001.0*kWh)\r\n" % (at % 100) for at in range(registers))
    text = b"0.0.0(7)\r\n1.7.0(%08d*W)\r\n1.8.0(1.0*kWh)\r\n" % power_w + history + b"!\r\n\x03"
    return b"\x02" + text + bytes([reduce(xor, text)])


async def _tell(port: MeterEnd, text: bytes, baud: int | None) -> None:
    if baud is None:
        await port.write(text)
        return
    size = max(1, int(baud * _PIECE_S) // 10)
    for at in range(0, len(text), size):
        await port.write(text[at : at + size])
        await asyncio.sleep(10 * size / baud)
