"""An IEC 62056-21 meter of mode C, which is asked."""

import asyncio
from collections.abc import Callable
from functools import reduce
from operator import xor

from firmware_stubs.meters import PtyPort

_REACTION_S = 0.4  # six characters at 300 baud, and the 0.2 s that a meter waits at least


async def serve(port: PtyPort, power_w: Callable[[], int], *, speed: bytes = b"5") -> None:
    """Answer sign-on messages for ever as a meter of mode C does, at whatever speed the pty has."""
    held = b""
    while True:
        held += await port.read()
        if held.endswith(b"/?!\r\n"):
            held = b""
            await port.write(b"/TST" + speed + b"METER\r\n")
        elif held.endswith(b"\x060" + speed + b"0\r\n"):
            held = b""
            await asyncio.sleep(_REACTION_S)
            text = b"0.0.0(7)\r\n1.7.0(%08d*W)\r\n1.8.0(1.0*kWh)\r\n!\r\n\x03" % power_w()
            await port.write(b"\x02" + text + bytes([reduce(xor, text)]))
