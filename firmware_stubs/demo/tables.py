"""Tables that every configuration of a demo shares: the broker, and one clock for all processes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from firmware_stubs.demo.broker import BrokerChoice

EDGE_LDP = (sys.executable, "-m", "edge_ldp.cli")


def broker_table(broker: BrokerChoice) -> str:
    """Return [broker] for a broker on this machine."""
    return f"""\
[broker]
host = "127.0.0.1"
port = {broker.port}
protocol = "{broker.protocol}"
"""


def clock_table(origin_s: int, started_s: float, rate: float) -> str:
    """Return [clock]: seconds UTC `origin_s` at the real time `started_s`, `rate` as fast."""
    return f"""\
[clock]
origin_s = {float(origin_s)!r}
started_s = {started_s!r}
rate = {rate!r}
"""
