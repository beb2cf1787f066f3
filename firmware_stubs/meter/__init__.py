"""A simulated meter behind a pseudo-terminal; its protocols are in modules of their names."""

from firmware_stubs.meter.player import Series, play
from firmware_stubs.meter.pty_port import PtyPort
from firmware_stubs.meter.telegram import p1_telegram

__all__ = ["PtyPort", "Series", "p1_telegram", "play"]
