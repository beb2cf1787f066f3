"""A simulated meter behind a pseudo-terminal; its protocols are in modules of their names."""

from firmware_stubs.meters.player import Series, play
from firmware_stubs.meters.pty_port import PtyPort
from firmware_stubs.meters.telegram import p1_telegram

__all__ = ["PtyPort", "Series", "p1_telegram", "play"]
