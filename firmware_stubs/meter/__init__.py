"""A simulated DSMR P1 meter behind a pseudo-terminal."""

from firmware_stubs.meter.player import Series, play
from firmware_stubs.meter.pty_port import PtyPort
from firmware_stubs.meter.telegram import p1_telegram

__all__ = ["PtyPort", "Series", "p1_telegram", "play"]
