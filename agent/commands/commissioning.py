"""For the person who installs a device: which ports are there, and what the meter on one says.

Readings go to the terminal and nowhere else; nothing here keeps, logs or sends them.
Source: docs/faults.md, SER-07, SER-23.
"""

import asyncio
import json
import sys
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from datetime import tzinfo
from pathlib import Path
from typing import Any

from agent.errors import PortError
from agent.meters.port_names import is_device
from agent.meters.reading import UNITS, Asker, Discarded, Meter, Telegram
from agent.meters.section import MeterTable
from agent.meters.unread import Unread
from agent.meters.words import unanswered_text, withheld_text
from agent.ports.meters import ANSWERING_S, hear, is_answer, make_meter
from agent.ports.open_port import open_meter
from agent.ports.port import NETWORK_SILENCE_S, SILENCE_S, Port
from edge_ldp.protocol.utc import utc

EXIT_OK = 0
EXIT_NO_TELEGRAM = 3
EXIT_PORT = 4
TIMEOUT_S = 15.0  # the slowest meters send every 10 s
BY_ID = Path("/dev/serial/by-id")
CONSOLES = Path("/sys/class/tty/console/active")

Say = Callable[[str], object]


def list_ports(
    *, by_id: Path = BY_ID, comports: Callable[[], Any] | None = None, consoles: Path = CONSOLES
) -> list[dict[str, str]]:
    """Return path (stable where there is one), device (kernel's name) and description of each port.

    The stable path survives replugging and belongs into the configuration; adapters that have one
    come first. The system's console is none: whoever asks there types at a login.
    """
    taken: list[str] = []
    with suppress(OSError):
        taken = consoles.read_text().split()
    found = [port for port in (comports or _comports)() if Path(port.device).name not in taken]
    listed = [
        {
            "path": stable_path(port.device, by_id=by_id),
            "device": port.device,
            "description": port.description or "",
        }
        for port in found
    ]
    return sorted(listed, key=lambda one: (one["path"] == one["device"], one["device"]))


def stable_path(device: str, *, by_id: Path = BY_ID) -> str:
    """Return the name of a device that survives replugging, or the same where there is none."""
    links = sorted(by_id.iterdir()) if by_id.is_dir() else []
    return next((str(link) for link in links if str(link.resolve()) == device), device)


async def read_meter(  # noqa: PLR0913 (one for each option of the command)
    table: MeterTable,
    *,
    once: bool = False,
    as_json: bool = False,
    out: Say | None = None,
    err: Say | None = None,
    timeout_s: float = TIMEOUT_S,
) -> int:
    """Print each telegram's readings until interrupted (or the first with `once`).

    Returns 0, 3 when no valid telegram came for `timeout_s`, or 4 when the port cannot be had or
    goes away. Readings go to `out` (standard output), what went wrong and what to try to `err`
    (standard error).
    """
    show, say = out or _to_stdout, err or _to_stderr
    meter = make_meter(table)
    render = telegram_json if as_json else telegram_text
    pause_s = min(SILENCE_S if is_device(table.port) else NETWORK_SILENCE_S, timeout_s)
    try:
        opened = await open_meter(table, silence_s=pause_s)
        with closing(opened):
            trouble = await _listen(
                opened,
                meter,
                lambda t: show(render(t)),
                say,
                table=table,
                once=once,
                timeout_s=timeout_s,
            )
    except PortError as exc:
        say(str(exc))
        return EXIT_PORT
    if trouble:
        say(f"{table.port}: no valid telegram for {timeout_s:g} s: {trouble}")
        return EXIT_NO_TELEGRAM
    return EXIT_OK


def telegram_text(telegram: Telegram, zone: tzinfo | None = None) -> str:
    """Return a telegram as lines for a person, an empty one last.

    Times are by the clocks of `zone`, or of this machine.
    """
    lines = [f"meter {telegram.meter_id}"]
    if telegram.time_s is not None:
        time = utc(telegram.time_s).astimezone(zone).isoformat()
        lines.append(f"time {time.replace('+00:00', 'Z')}")
    lines += [f"{r.quantity} {r.value} {UNITS[r.quantity]}" for r in telegram.readings]
    lines += [f"{one.kind} {one.value} {one.unit}" for one in telegram.channels]
    lines += [why] if (why := withheld_text(telegram.withheld)) else []
    return "\n".join(lines) + "\n"


def telegram_json(telegram: Telegram) -> str:
    """Return a telegram as one line of JSON: meter_id, time_s (UTC or null), power_w and so on.

    Where something is refused by name, `withheld` says of each quantity why.
    """
    fields: dict[str, object] = {"meter_id": telegram.meter_id, "time_s": telegram.time_s}
    fields |= {f"{r.quantity}_{UNITS[r.quantity].lower()}": r.value for r in telegram.readings}
    if telegram.channels:
        names = ("number", "kind", "value", "unit")
        fields["channels"] = [
            {name: getattr(one, name) for name in names} for one in telegram.channels
        ]
    if telegram.withheld:
        fields["withheld"] = {one.quantity: one.why for one in telegram.withheld}
    return json.dumps(fields)


def unread_text(unread: Unread, table: MeterTable) -> str:
    """Return what keeps telegrams from arriving: by name where it is known."""
    known = unread.text(is_proved=table.has_checksum is True)
    if not unread.received_bytes:
        known = unanswered_text(table)
    return known or advice(unread.received_bytes, unread.discarded, table.protocol)


def advice(received_bytes: int, discarded: Mapping[str, int], protocol: str = "dsmr") -> str:
    """Return what probably keeps telegrams from arriving, given the bytes discarded by reason."""
    silent, other = _HINTS.get(protocol, _NO_HINT)
    if not received_bytes:
        return f"nothing was received. Check the cable and the speed{silent}."
    counts = ", ".join(f"{reason} {size}" for reason, size in sorted(discarded.items()))
    found = f"{received_bytes} bytes were received and discarded ({counts})."
    hint = next((words for reason, words in _WORDS.items() if discarded.get(reason)), None)
    if hint is None:
        return (
            f"{found} Probably another speed, parity or protocol (`edge-ldp agent probe` finds "
            f"them): {other}."
        )
    old = _OLD_DSMR if protocol == "dsmr" else ""
    return f"{found} {hint.format(protocol=protocol, old=old)}"


async def _listen(  # noqa: PLR0913 (what the caller knows)
    port: Port,
    meter: Meter | Asker,
    show: Callable[[Telegram], object],
    say: Say,
    *,
    table: MeterTable,
    once: bool,
    timeout_s: float,
) -> str | None:
    """Show telegrams; return None after the first with `once`, else what is wrong at last.

    Where a meter that is asked leaves the first question unanswered that is said at once.
    """
    clock = asyncio.get_running_loop().time
    deadline, unread = clock() + timeout_s, Unread()
    asked, is_told = unanswered_text(table), False
    while clock() < deadline:
        data, events = await hear(port, meter)
        unread.take(data)
        if is_answer(meter, data, events):
            deadline = max(deadline, clock() + ANSWERING_S)
        for event in events:
            if isinstance(event, Discarded):
                unread.note(event)
                if event.reason == "silence" and asked and not is_told:
                    is_told = True
                    say(f"{table.port}: {asked}; asking again")
                continue
            show(event)
            if once:
                return None
            deadline, unread = clock() + timeout_s, Unread()
    for rest in [] if isinstance(meter, Asker) else meter.silence():
        unread.note(rest)
    return unread_text(unread, table)


def _comports() -> Any:
    from serial.tools.list_ports import comports  # noqa: PLC0415 (imported only when asked for)

    return comports()


def _to_stdout(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _to_stderr(line: str) -> None:
    sys.stderr.write(line + "\n")


_WORDS = {  # the first reason that there is says most
    "refused": "The meter answers that it has no such register: check model.",
    "identity": "Telegrams of another meter arrive: compare meter_id without it.",
    "crc": ("Telegrams arrive, but their checksum is wrong or missing: a bad cable{old}."),
    "width": "A register has more digits than any standard: more than 8 before the point.",
    "value": "Telegrams arrive with a number, unit or time that {protocol} does not know.",
}
_OLD_DSMR = ", or a meter of DSMR 2.2 or 3, which has none (then set crc to absent-allowed)"
_NO_HINT = ("", "see the meter's manual")
_HINTS = {  # after "nothing was received …", after "probably another …"
    "dsmr": (
        "; a P1 port speaks only while its request line (pin 2) is at 5 V",
        (
            "DSMR 4 and 5 use 115200 baud (8 data bits, no parity), DSMR 2.2 and 3 use 9600 baud "
            "(7 data bits, even parity)"
        ),
    ),
    "sml": (
        "; the reading head must sit on the infrared eye, its cable downwards",
        (
            "SML meters use 9600 baud (8 data bits, no parity); a meter that prints text is"
            " iec62056-21"
        ),
    ),
    "linky": (
        "; the TIC output is at the terminals I1 and I2 and needs an adapter",
        (
            "a Linky in historique mode uses 1200 baud, in standard mode 9600 baud (7 data bits, "
            "even parity)"
        ),
    ),
    "iec62056-21": (
        "; the reading head must sit on the infrared eye, and the meter must speak by itself",
        (
            "meters that push text use 9600, some 2400 or 300 baud (7 data bits, even parity); "
            "a meter that sends no text there is sml"
        ),
    ),
    "lines": (
        "; does the sensor print without being asked",
        (
            "the lines lack a configured field, or come at another speed: Arduino sketches mostly "
            "use 9600 or 115200 baud (8 data bits, no parity)"
        ),
    ),
    "modbus": (
        "",  # words.unanswered_text says more
        "SDM630 meters come with 9600 baud, SDM120 and SDM230 with 2400 (8 data bits, no parity)",
    ),
}
