"""What is said about what a meter shows and is not read: one text for log, health, read and probe.

No text names a value. Source: docs/faults.md, SER-28, SER-30, SER-34; docs/meters.md.
"""

from collections.abc import Iterable

from agent.meters.reading import Withheld
from agent.meters.section import MeterTable

WITHHELD = {
    "direction": (
        "the meter tells its power without a sign, and no status word says whether it is drawn or "
        "given: report energy_import and energy_export, which say it, or ask the grid operator for "
        "the full data set"
    ),
    "phase": (
        "the meter tells the power of some of its phases and no total: report energy_import and "
        "energy_export, or ask the grid operator for the full data set"
    ),
}
"""Why a quantity that is shown is not read, and what helps."""


_KEY = (
    "only the key that the grid operator gives opens it, and nothing here takes one: let an "
    'adapter decrypt it and print P1 or JSON (protocol = "dsmr" or "lines"), or read another of '
    "the meter's interfaces"
)
_PLAIN = (
    'let an adapter turn it into JSON (protocol = "lines"), ask the grid operator for P1 text, or '
    "read the meter's optical eye"
)
FOREIGN = {
    "hdlc": ("DLMS over HDLC (7E A…), as HAN ports of the Nordic countries send it", _PLAIN),
    "hdlc-ciphered": ("encrypted DLMS over HDLC (7E A…, DB 08), as in Austria", _KEY),
    "mbus": ("wired M-Bus (68 L L 68)", _PLAIN),
    "mbus-ciphered": ("encrypted DLMS over M-Bus (68 L L 68, DB 08), as in Austria", _KEY),
    "ciphered": (
        "encrypted P1 (general ciphering, DB 08), as in Luxembourg and Lithuania",
        _KEY,
    ),
}
"""Formats that are recognised and not read: their names, and what to do."""


def foreign_text(name: str) -> str:
    """Return what is said of a format that is not read, as `foreign.Recogniser` names it."""
    what, remedy = FOREIGN[name]
    return f"the bytes are {what}, which is not read here: {remedy}"


def misread_text(line: str, *, is_proved: bool) -> str:
    """Return what is said of telegrams that are whole and whose line (never its value) is not read.

    `is_proved`: whether a checksum holds, so that no cable changed it.
    """
    cable = (
        "the cable is not to blame" if is_proved else "no checksum says whether the cable did it"
    )
    return (
        f"whole telegrams come, but their line {line} is not understood; {cable}. Please report "
        "the meter's model and this name"
    )


def unanswered_text(table: MeterTable) -> str:
    """Return what was asked in vain, and what to try; "" where a meter speaks by itself."""
    line = f"{table.line.baud} baud, {table.line.data_bits}{table.line.parity}1"
    if table.mode == "request":
        return (
            f"asked to sign on (/?!) at {line}, and nothing answers: the reading head must sit on "
            "the infrared eye, its cable downwards; a meter that speaks by itself needs no mode"
        )
    if table.protocol != "modbus":
        return ""
    unit = f"address {table.address}, model {table.model_file or table.model}"
    if table.framing == "tcp":
        return (
            f"asked as Modbus TCP ({unit}), and nothing answers: a plain bridge to a serial line "
            "takes no framing (RTU); else is the address right, which behind a gateway is the "
            "meter's own"
        )
    if table.port.startswith("socket://"):
        return (
            f"asked as Modbus RTU ({unit}) through a bridge, and nothing answers: what speaks "
            "Modbus TCP itself (mostly port 502) needs framing = 'tcp'; else check the bridge's "
            f"speed, which is as a rule {line}, the address, and the two wires A and B"
        )
    return (
        f"asked as Modbus RTU ({unit}) at {line}, and nothing answers: check the cable, the speed, "
        "the address, and the two wires A and B, which may be the wrong way round"
    )


def withheld_text(withheld: Iterable[Withheld], wanted: Iterable[str] | None = None) -> str:
    """Return which quantities are withheld and why, of `wanted` alone where given; "" for none."""
    asked = None if wanted is None else set(wanted)
    if asked is not None and "power_net" in asked:
        withheld = [Withheld("power_net", one.why) for one in withheld if one.quantity == "power"]
    named: dict[str, list[str]] = {}
    for one in withheld:
        if asked is None or one.quantity in asked:
            named.setdefault(one.why, []).append(one.quantity)
    return "; ".join(
        f"no {' and no '.join(names)}: {WITHHELD[why]}" for why, names in named.items()
    )
