"""Meters: received bytes in, integer readings out; one module for each protocol.

The protocols are imported by name (`parsers`), so that only the one in use costs memory.
"""

from agent.meters.reading import (
    UNITS,
    Asker,
    Discarded,
    Meter,
    Reading,
    Send,
    SetBaud,
    Telegram,
)

__all__ = ["UNITS", "Asker", "Discarded", "Meter", "Reading", "Send", "SetBaud", "Telegram"]
