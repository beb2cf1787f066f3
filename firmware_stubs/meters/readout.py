"""An IEC 62056-21 readout, in EasyMeter's form: pushed by a meter with an optical eye (mode D).

Or asked for: of a meter of mode C, signed on to slowly, then read at its speed. Written apart from
the agent's parser and machine, from the same standard, so that each checks the other.
"""

import asyncio
from collections.abc import Callable
from functools import reduce
from operator import xor
from typing import Any

from firmware_stubs.meters.pty_port import MeterEnd
from firmware_stubs.meters.telegram import Display, check_printable, kilo


def readout_telegram(*, is_net: bool = False, **shown: Any) -> bytes:
    """Return the telegram of a meter that shows its registers in kWh with seven decimals.

    `is_net`: power drawn goes below 0 while it gives, and there is no register of power given.

    Raises ParameterError for what a meter cannot print.
    """
    now = Display(**shown)
    check_printable(now)
    lines = (
        "/TST5Q3DB1024 V3.04",
        "",
        "1-0:0.0.0*255(0272031312565)",
        f"1-0:1.8.0*255({kilo(now.import_wh, 8)}0000*kWh)",
        f"1-0:2.8.0*255({kilo(now.export_wh, 8)}0000*kWh)",
        "1-0:21.7.0*255(000126.00*W)",
        *(
            (f"1-0:1.7.0*255({now.net_w:07d}.00*W)",)
            if is_net
            else (
                f"1-0:1.7.0*255({now.power_w:06d}.00*W)",
                f"1-0:2.7.0*255({now.export_power_w:06d}.00*W)",
            )
        ),
        "1-0:96.5.5*255(80)",
        f"0-0:96.1.255*255({now.meter_id})",
        "!",
        "",
    )
    return "\r\n".join(lines).encode("ascii")


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
