"""What every scenario of the demo shares: the broker, one clock for all processes, the meter."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

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


def clock_flags(start: datetime, origin_s: int, started_s: float, rate: float) -> list[str]:
    """Return the same clock for `edge-ldp simulate`, with the series' `start`."""
    return [
        *("--start", start.isoformat(), "--origin", str(origin_s)),
        *("--started", repr(started_s), "--rate", repr(rate)),
    ]


def meter_words(link: Path, data: str, step_s: int, meter_id: str, base_wh: int) -> list[str]:
    """Return the command of a simulated meter with planted registers, but for its clock."""
    return [
        *(*EDGE_LDP, "simulate", "meter", "--wait", "--link", str(link), "--data", data),
        *("--step", str(step_s), "--meter-id", meter_id, "--base-wh", str(base_wh)),
    ]
