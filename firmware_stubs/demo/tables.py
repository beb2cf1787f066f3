"""What every scenario's processes share: their files, a broker, one clock, the meter's command."""

import sys
from datetime import datetime
from pathlib import Path

from firmware_stubs.demo.broker import BrokerChoice

EDGE_LDP = (sys.executable, "-m", "edge_ldp.cli")
_STREAM = """\
[[streams]]
name = "{stream}"
{kind}
unit = "{unit}"
low = {low}
ceiling = {ceiling}
slot_seconds = {slot_s}
"""
AGENT = """\
{mode}[device]
fleet = "{fleet}"
id = "{name}"
state = "{state}"

{broker}
{clock}
[meter]
protocol = "dsmr"
port = "{link}"
meter_id = "{meter_id}"
date_by = "meter"
clock_tolerance_s = {tolerance_s}

{terms}
{streams}
[sending]
receipt_interval_s = {receipt_s}
jitter_s = 0
batch_interval_s = {batch_s}
{kept}"""
AGGREGATOR = """\
fleet = "{fleet}"

{broker}
[store]
path = "{store}"

{clock}
[intake]
receipt_interval_s = {receipt_s}
tolerance_s = {tolerance_s}
resend_window_s = {window_s}

{streams}{asks}"""


def agent_file(config: Path, mode: str = "", kept: str = "", **facts: object) -> Path:
    """Write an agent's configuration beside its state, in a directory of its own; return it."""
    config.parent.mkdir(mode=0o700)
    streams = _STREAM.format(**facts, kind='quantity = "power"')
    state = config.with_name("state.db")
    text = AGENT.format(**facts, mode=mode, kept=kept, streams=streams, state=state)
    config.write_text(text)
    return config


def aggregator_file(place: Path, asks: str, **facts: object) -> Path:
    """Write the aggregator's configuration, with what its one stream `asks`; return its path."""
    config, streams = place / "aggregator.toml", _STREAM.format(**facts, kind="id = 1")
    store = place / "aggregator.db"
    config.write_text(AGGREGATOR.format(**facts, asks=asks, streams=streams, store=store))
    return config


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
