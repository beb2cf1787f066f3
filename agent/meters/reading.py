"""What every meter parser returns: telegrams of integer readings, or what it threw away and why.

A reading lives in memory only, so nothing here shows one: each `repr` leaves out values and meter
identities, and an event about bad bytes carries their number and a reason, never the bytes.
Source: DESIGN §2, §3; FAULTS group SER.
"""

from dataclasses import dataclass, field
from typing import Literal

UNITS = {"power": "W", "power_export": "W", "energy_import": "Wh", "energy_export": "Wh"}
"""The unit of each quantity that a reading may be of."""

Reason = Literal["noise", "cut", "length", "syntax", "crc", "value", "identity"]


@dataclass(frozen=True, slots=True)
class Reading:
    """One number of a telegram: an integer in the unit that UNITS gives its quantity."""

    quantity: str
    value: int = field(repr=False)


@dataclass(frozen=True, slots=True)
class Telegram:
    """The readings of one telegram, one per quantity, and the meter's own time.

    `time_s` is in seconds since 1970 UTC; None when the meter tells no time, or none without doubt.
    """

    meter_id: str = field(repr=False)
    time_s: int | None
    readings: tuple[Reading, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Discarded:
    """`size` received bytes that gave no telegram.

    Reasons: `noise` (outside any frame), `cut` (a frame that broke off), `length` (longer than the
    limit), `syntax` (not the protocol's shape), `crc`, `value` (a number, unit or time the protocol
    cannot mean), `identity` (a good telegram of another meter).
    """

    size: int
    reason: Reason
