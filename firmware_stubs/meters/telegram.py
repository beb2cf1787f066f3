"""A DSMR P1 telegram of version 5 as a real meter prints it, byte for byte.

Written apart from the agent's parser, from the same standard, so that each checks the other.
Source: P1 Companion Standard 5.0.2 §5, §6.
"""

from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, NamedTuple

from edge_ldp.device.errors import ParameterError
from edge_ldp.protocol.utc import utc

MAX_WH = 10**9 - 1  # six digits of kWh and three decimals
MAX_W = 10**6 - 1


class Display(NamedTuple):
    """What a meter of any protocol shows: whose, when (seconds UTC), registers and powers."""

    meter_id: str
    time_s: int
    import_wh: int
    power_w: int
    export_wh: int = 0
    export_power_w: int = 0

    @property
    def net_w(self) -> int:
        """Power, below 0 while it gives."""
        return self.power_w - self.export_power_w


def p1_telegram(*, has_hex_clock: bool = False, **shown: Any) -> bytes:
    """Return the telegram of a `Display`; its time is printed as Central European time.

    `has_hex_clock`: the time is printed as the octets of a COSEM date-time, in hexadecimal.

    Registers are in Wh, split evenly over two tariffs; power is in W. Voltages, currents and
    counters of interruptions are constant. Raises ParameterError for what a meter cannot print.
    """
    now = Display(**shown)
    check_printable(now)
    if not (now.meter_id.isascii() and now.meter_id.isprintable() and 1 <= len(now.meter_id) <= 48):  # noqa: PLR2004 (S96 in hexadecimal)
        raise ParameterError("meter_id", "1 to 48 printable ASCII characters")
    lines = (
        "/EDG5\\253769484_A",
        "",
        "1-3:0.2.8(50)",
        f"0-0:1.0.0({cosem_time(now.time_s) if has_hex_clock else timestamp(now.time_s)})",
        f"0-0:96.1.1({now.meter_id.encode().hex().upper()})",
        f"1-0:1.8.1({kilo(now.import_wh // 2, 6)}*kWh)",
        f"1-0:1.8.2({kilo(now.import_wh - now.import_wh // 2, 6)}*kWh)",
        f"1-0:2.8.1({kilo(now.export_wh // 2, 6)}*kWh)",
        f"1-0:2.8.2({kilo(now.export_wh - now.export_wh // 2, 6)}*kWh)",
        "0-0:96.14.0(0002)",
        f"1-0:1.7.0({kilo(now.power_w, 2)}*kW)",
        f"1-0:2.7.0({kilo(now.export_power_w, 2)}*kW)",
        *_CONSTANT,
        "!",
    )
    body = "\r\n".join(lines).encode()
    return body + b"%04X\r\n" % crc(body)


def full_p1_telegram(*, power_w: int, import_wh: int, **rest: Any) -> bytes:
    """Return the telegram of a meter that tells reactive power, and of gas and water behind it.

    Given reactive power is a tenth of the power drawn; gas in dm³ is the import's number of Wh.
    """
    body = p1_telegram(power_w=power_w, import_wh=import_wh, **rest)[: -len("!ABCD\r\n")]
    lines = (
        f"1-0:3.7.0({kilo(0, 4)}*kvar)",
        f"1-0:4.7.0({kilo(power_w // 10, 4)}*kvar)",
        "0-1:24.1.0(003)",
        f"0-1:24.2.1({timestamp(rest['time_s'])})({kilo(import_wh, 5)}*m3)",
        "0-2:24.1.0(007)",
        f"0-2:24.2.1({timestamp(rest['time_s'])})(00872.234*m3)",
        "!",
    )
    body += "\r\n".join(lines).encode()
    return body + b"%04X\r\n" % crc(body)


def check_printable(shown: Display, most_w: int = MAX_W) -> None:
    """Raise ParameterError for a register or power that has more digits than a meter prints."""
    limits = {"import_wh": MAX_WH, "export_wh": MAX_WH, "power_w": most_w, "export_power_w": most_w}
    for name, limit in limits.items():
        if not 0 <= getattr(shown, name) <= limit:
            raise ParameterError(name, f"0..{limit}")


def timestamp(time_s: int) -> str:
    """Return `YYMMDDhhmmssX` in Central European time, X = S in summer and W in winter."""
    local, is_summer = _local(time_s)
    return f"{local:%y%m%d%H%M%S}" + ("S" if is_summer else "W")


def cosem_time(time_s: int) -> str:
    """Return a COSEM date-time (IEC 62056-6-2 4.1.6.1) of Central European time, in hexadecimal.

    Deviation is what is to be added to it for UTC; bit 7 of the status says summer.
    """
    local, is_summer = _local(time_s)
    date = (*divmod(local.year, 256), local.month, local.day, local.isoweekday())
    deviation = (-120 if is_summer else -60).to_bytes(2, "big", signed=True)
    clock = bytes((*date, local.hour, local.minute, local.second, 0))
    return (clock + deviation + bytes((0x80 * is_summer,))).hex().upper()


def crc(body: bytes) -> int:
    """Return the CRC-16/ARC of everything from "/" to "!"."""
    return reflected_crc(body, 0xA001, 0)


def reflected_crc(octets: bytes, polynomial: int, start: int = 0xFFFF) -> int:
    """Return what is left of bytes, lowest bit first, by a polynomial written the same way."""
    remainder, nibbles = start, _nibbles(polynomial)
    for octet in octets:
        remainder ^= octet
        remainder = remainder >> 4 ^ nibbles[remainder & 15]
        remainder = remainder >> 4 ^ nibbles[remainder & 15]
    return remainder


@cache
def _nibbles(polynomial: int) -> tuple[int, ...]:
    """Return what is left of each four bits."""
    left = list(range(16))
    for _ in range(4):
        left = [one >> 1 ^ (polynomial if one & 1 else 0) for one in left]
    return tuple(left)


def kilo(number: int, digits: int = 1) -> str:
    """Return a number of thousandths with three decimals, and zeros before it."""
    return f"{number // 1000:0{digits}d}.{number % 1000:03d}"


def _local(time_s: int) -> tuple[datetime, bool]:
    """Return Central European time, and whether it is summer's."""
    when = utc(time_s)
    is_summer = _last_sunday(when.year, 3) <= when < _last_sunday(when.year, 10)
    return when + timedelta(hours=2 if is_summer else 1), is_summer


def _last_sunday(year: int, month: int) -> datetime:
    """Return when clocks change in the European Union: the month's last Sunday, 01:00 UTC."""
    last = datetime(year, month, 31, 1, tzinfo=UTC)  # March and October have 31 days
    return last - timedelta(days=(last.weekday() + 1) % 7)


_CONSTANT = (
    "0-0:96.7.21(00005)",
    "0-0:96.7.9(00003)",
    "1-0:99.97.0(1)(0-0:96.7.19)(180417201458S)(0000000236*s)",
    "1-0:32.32.0(00001)",
    "1-0:32.36.0(00001)",
    "0-0:96.13.0()",
    "1-0:32.7.0(230.1*V)",
    "1-0:52.7.0(229.8*V)",
    "1-0:72.7.0(230.4*V)",
    "1-0:31.7.0(001*A)",
    "1-0:51.7.0(000*A)",
    "1-0:71.7.0(000*A)",
)
