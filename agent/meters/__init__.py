"""Meters: received bytes in, integer readings out; one module for each protocol."""

from agent.meters.crc import crc16_arc
from agent.meters.dsmr import Frame, P1Framer, P1Meter, parse_telegram
from agent.meters.reading import UNITS, Discarded, Reading, Telegram

__all__ = [
    "UNITS",
    "Discarded",
    "Frame",
    "P1Framer",
    "P1Meter",
    "Reading",
    "Telegram",
    "crc16_arc",
    "parse_telegram",
]
