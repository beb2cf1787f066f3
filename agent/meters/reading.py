"""What every meter parser returns: telegrams of integer readings, or what it threw away and why.

A reading lives in memory only, so nothing here shows one: each `repr` leaves out values and meter
identities, and an event about bad bytes carries their number and a reason, never the bytes.
Source: docs/design.md, Values and reports, Privacy model; docs/faults.md, SER.
"""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol, runtime_checkable

UNITS = {
    "power": "W",
    "power_export": "W",
    "apparent_power": "VA",
    "apparent_power_export": "VA",
    "energy_import": "Wh",
    "energy_export": "Wh",
    "power_net": "W",
    "reactive_power": "var",
}
"""The unit of each quantity that a reading may be of."""

GAS = "gas"
"""What the gas meter behind a P1 port shows, in dm³, at a time of its own: no reading of a line."""

SIGNED = ("power_net", "reactive_power")
"""What may be below 0: all else is at least 0."""

Reason = Literal[
    "noise", "cut", "length", "syntax", "crc", "value", "width", "identity", "refused", "silence"
]


@dataclass(frozen=True, slots=True)
class Reading:
    """One number of a telegram: an integer in the unit that UNITS gives its quantity."""

    quantity: str
    value: int = field(repr=False)


class Withheld(NamedTuple):
    """A quantity that a telegram shows and nobody can tell; `why` is a key of words.WITHHELD."""

    quantity: str
    why: str


@dataclass(frozen=True, slots=True)
class SubMeter:
    """What a gas, water or heat meter behind an electricity meter showed last; or a phase of it.

    `time_s`: when, in seconds since 1970 UTC; None: not told, or not without doubt.
    """

    number: int
    kind: str
    value: int = field(repr=False)
    unit: str
    time_s: int | None = None


@dataclass(frozen=True, slots=True)
class Telegram:
    """The readings of one telegram, one per quantity, and the meter's own time.

    `time_s` is in seconds since 1970 UTC; None when the meter tells no time, or none without doubt.
    `withheld`: what is refused by name, never guessed. `aliases`: by what else the meter is known.
    `channels`: what meters behind it tell, `beside`: tariffs, phases, volts where they were asked
    for; to be shown and not to be reported, but for gas in sums.
    """

    meter_id: str = field(repr=False)
    time_s: int | None
    readings: tuple[Reading, ...] = field(repr=False)
    withheld: tuple[Withheld, ...] = field(default=(), repr=False)
    aliases: tuple[str, ...] = field(default=(), repr=False)
    channels: tuple["SubMeter", ...] = field(default=(), repr=False)
    beside: tuple["SubMeter", ...] = field(default=(), repr=False)

    @property
    def shown(self) -> dict[str, int]:
        """What streams may be of: the readings, net power where both directions are told, gas."""
        found = {one.quantity: one.value for one in self.readings}
        if "power" in found and "power_export" in found:
            found.setdefault("power_net", found["power"] - found["power_export"])
        if self.gas is not None:
            found[GAS] = self.gas[1]
        return found

    @property
    def gas(self) -> tuple[int, int] | None:
        """When the gas meter behind it was read last, and what it showed; None: not known."""
        for one in self.channels:
            if one.kind == GAS and one.unit == "dm3" and one.time_s is not None:
                return one.time_s, one.value
        return None


@dataclass(frozen=True, slots=True)
class Discarded:
    """`size` received bytes that gave no telegram.

    Reasons: `noise` (outside any frame), `cut` (a frame that broke off), `length` (longer than the
    limit), `syntax` (not the protocol's shape), `crc`, `value` (a number, unit or time the protocol
    cannot mean), `width` (a number of more digits than any standard has), `identity` (a good
    telegram of another meter), and from a meter that is asked: `refused` (its own words) and
    `silence` (no byte came, so `size` is 0).
    `line`: in a telegram that is whole as far as can be told, the name of the line or register that
    was not understood; "" where bytes are damaged.
    """

    size: int
    reason: Reason
    line: str = field(default="", compare=False)


class Meter(Protocol):
    """A meter that speaks by itself: bytes in, events out, whatever way the bytes are cut.

    Holds a bounded number of bytes and raises nothing, whatever comes.
    """

    def feed(self, data: bytes) -> list[Telegram | Discarded]:
        """Take received bytes; return what they complete, oldest first."""

    def silence(self) -> list[Discarded]:
        """Drop a half telegram: the line has been silent for longer than one pauses."""


class Send(NamedTuple):
    """Bytes that a meter is to be sent now."""

    data: bytes


class SetBaud(NamedTuple):
    """The speed that the line is to have from now on."""

    baud: int


Event = Telegram | Discarded | Send | SetBaud
"""What a meter that is asked may return."""


@runtime_checkable
class Asker(Protocol):
    """A meter that speaks when asked; times are milliseconds of a clock that only goes forward.

    Like a Meter it holds a bounded number of bytes and raises nothing, and at the same times any
    cut of the bytes gives the same telegrams.
    """

    @property
    def wake_ms(self) -> int:
        """When `tick` is to be called next at the latest."""

    def tick(self, now_ms: int) -> list[Event]:
        """Take the time; return what is to be sent, and what was waited for too long."""

    def feed(self, data: bytes, now_ms: int) -> list[Event]:
        """Take received bytes; return what they complete and what is to be sent next."""
