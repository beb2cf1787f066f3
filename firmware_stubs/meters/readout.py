"""An IEC 62056-21 readout as meters with an optical eye push it (mode D), in EasyMeter's form.

Written apart from the agent's parser, from the same standard, so that each checks the other.
"""

import asyncio
from collections.abc import Callable
from functools import reduce
from operator import xor

from edge_ldp.device.errors import ParameterError
from firmware_stubs.meters.pty_port import PtyPort

MAX_WH = 10**9 - 1
MAX_W = 10**6 - 1
_REACTION_S = 0.4  # six characters at 300 baud, and the 0.2 s that a meter waits at least


def readout_telegram(  # noqa: PLR0913 (the fields of a telegram)
    *,
    meter_id: str,
    time_s: int,  # noqa: ARG001 (these meters tell no time)
    import_wh: int,
    power_w: int,
    export_wh: int = 0,
    export_power_w: int = 0,
) -> bytes:
    """Return the telegram of a meter that shows its registers in kWh with seven decimals.

    Raises ParameterError for what a meter cannot print.
    """
    for name, number, limit in (
        ("import_wh", import_wh, MAX_WH),
        ("export_wh", export_wh, MAX_WH),
        ("power_w", power_w, MAX_W),
        ("export_power_w", export_power_w, MAX_W),
    ):
        if not 0 <= number <= limit:
            raise ParameterError(name, f"0..{limit}")
    lines = (
        "/TST5Q3DB1024 V3.04",
        "",
        "1-0:0.0.0*255(0272031312565)",
        f"1-0:1.8.0*255({_kilo(import_wh)}0000*kWh)",
        f"1-0:2.8.0*255({_kilo(export_wh)}0000*kWh)",
        "1-0:21.7.0*255(000126.00*W)",
        f"1-0:1.7.0*255({power_w:06d}.00*W)",
        f"1-0:2.7.0*255({export_power_w:06d}.00*W)",
        "1-0:96.5.5*255(80)",
        f"0-0:96.1.255*255({meter_id})",
        "!",
        "",
    )
    return "\r\n".join(lines).encode("ascii")


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


def _kilo(number: int) -> str:
    return f"{number // 1000:08d}.{number % 1000:03d}"
