"""For the person who installs a device: which ports are there, and what the meter on one says.

Readings go to the terminal and nowhere else; nothing here keeps, logs or sends them.
Source: FAULTS SER-07, SER-23.
"""

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from agent.errors import PortError
from agent.meters.dsmr import CrcRule, P1Meter
from agent.meters.reading import UNITS, Discarded, Telegram
from agent.shell.serial_port import SILENCE_S, Parity, SerialPort, open_port

EXIT_OK = 0
EXIT_NO_TELEGRAM = 3
EXIT_PORT = 4
TIMEOUT_S = 15.0  # the slowest meters send every 10 s
BY_ID = Path("/dev/serial/by-id")

Say = Callable[[str], object]


def list_ports(
    *, by_id: Path = BY_ID, comports: Callable[[], Any] | None = None
) -> list[dict[str, str]]:
    """Return path (stable where there is one), device (kernel's name) and description of each port.

    The stable path survives replugging and belongs into the configuration.
    """
    links = sorted(by_id.iterdir()) if by_id.is_dir() else []
    stable = {str(link.resolve()): str(link) for link in links}
    return [
        {
            "path": stable.get(port.device, port.device),
            "device": port.device,
            "description": port.description or "",
        }
        for port in sorted((comports or _comports)(), key=lambda port: str(port.device))
    ]


async def read_meter(  # noqa: PLR0913 (one for each option of the command)
    port: str,
    protocol: Literal["dsmr"] = "dsmr",
    baud: int = 115_200,
    *,
    once: bool = False,
    as_json: bool = False,
    out: Say | None = None,
    err: Say | None = None,
    timeout_s: float = TIMEOUT_S,
    crc: CrcRule = "required",
    parity: Parity | None = None,
    data_bits: Literal[7, 8] | None = None,
) -> int:
    """Print each telegram's readings until interrupted (or the first with `once`).

    `parity` and `data_bits` are chosen by the speed unless given (see `open_port`).
    Returns 0, 3 when no valid telegram came for `timeout_s`, or 4 when the port cannot be had or
    goes away. Readings go to `out` (standard output), what went wrong and what to try to `err`
    (standard error).
    """
    show, say = out or _to_stdout, err or _to_stderr
    meter = _METERS[protocol](crc=crc)
    render = telegram_json if as_json else telegram_text
    pause_s = min(SILENCE_S, timeout_s)
    try:
        opened = await open_port(port, baud, parity=parity, data_bits=data_bits, silence_s=pause_s)
        with closing(opened):
            trouble = await _listen(
                opened, meter, lambda t: show(render(t)), once=once, timeout_s=timeout_s
            )
    except PortError as exc:
        say(str(exc))
        return EXIT_PORT
    if trouble:
        say(f"{port}: no valid telegram for {timeout_s:g} s: {trouble}")
        return EXIT_NO_TELEGRAM
    return EXIT_OK


def telegram_text(telegram: Telegram) -> str:
    """Return a telegram as lines for a person, an empty one last."""
    lines = [f"meter {telegram.meter_id}"]
    if telegram.time_s is not None:
        lines.append(f"time {datetime.fromtimestamp(telegram.time_s, UTC):%Y-%m-%dT%H:%M:%SZ}")
    lines += [f"{r.quantity} {r.value} {UNITS[r.quantity]}" for r in telegram.readings]
    return "\n".join(lines) + "\n"


def telegram_json(telegram: Telegram) -> str:
    """Return a telegram as one line of JSON: meter_id, time_s (UTC or null), power_w and so on."""
    fields: dict[str, object] = {"meter_id": telegram.meter_id, "time_s": telegram.time_s}
    fields |= {f"{r.quantity}_{UNITS[r.quantity].lower()}": r.value for r in telegram.readings}
    return json.dumps(fields)


def advice(heard_bytes: int, discarded: Mapping[str, int]) -> str:
    """Return what probably keeps telegrams from arriving, given the bytes discarded by reason."""
    if not heard_bytes:
        return (
            "nothing was received. Check the cable and the speed; a P1 port speaks only while its "
            "request line (pin 2) is at 5 V."
        )
    counts = ", ".join(f"{reason} {size}" for reason, size in sorted(discarded.items()))
    found = f"{heard_bytes} bytes were received and discarded ({counts})."
    if discarded.get("crc"):
        return (
            f"{found} Telegrams arrive, but their checksum is wrong or missing: a bad cable, or a "
            "meter of DSMR 2.2 or 3, which has none (then set crc to absent-allowed)."
        )
    if discarded.get("value"):
        return f"{found} Telegrams arrive with a number, unit or time that DSMR does not know."
    return (
        f"{found} Probably another speed, parity or protocol: DSMR 4 and 5 use 115200 baud (8 data "
        "bits, no parity), DSMR 2.2 and 3 use 9600 baud (7 data bits, even parity)."
    )


async def _listen(
    port: SerialPort,
    meter: P1Meter,
    show: Callable[[Telegram], object],
    *,
    once: bool,
    timeout_s: float,
) -> str | None:
    """Show telegrams; return None after the first with `once`, else what is wrong at last."""
    clock = asyncio.get_running_loop().time
    deadline, heard, discarded = clock() + timeout_s, 0, Counter[str]()
    while clock() < deadline:
        data = await port.read()
        heard += len(data or b"")
        for event in meter.silence() if data is None else meter.feed(data):
            if isinstance(event, Discarded):
                discarded[event.reason] += event.size
                continue
            show(event)
            if once:
                return None
            deadline, heard, discarded = clock() + timeout_s, 0, Counter()
    for rest in meter.silence():
        discarded[rest.reason] += rest.size
    return advice(heard, discarded)


def _comports() -> Any:
    from serial.tools.list_ports import comports  # noqa: PLC0415 (imported only when asked for)

    return comports()


def _to_stdout(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _to_stderr(line: str) -> None:
    sys.stderr.write(line + "\n")


_METERS = {"dsmr": P1Meter}
