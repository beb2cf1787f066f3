"""The files and command lines of the demo's processes: what a user would write and start."""

from pathlib import Path
from typing import Any

from firmware_stubs.demo import tables
from firmware_stubs.demo.broker import BrokerChoice
from firmware_stubs.demo.scenario import (
    BASE_WH,
    CEILING_W,
    DAY_S,
    DAY_SLOTS,
    EPSILON,
    FLEET,
    HOUR_S,
    LOW_W,
    SLOT_S,
    STREAM,
    SUMS_EPSILON,
    UNIT,
    UTC_OFFSET_S,
    Scenario,
    agent_name,
)

RECEIPT_S = DAY_S
METER_IDS = ("E0043007052870318", "E0047000037283716")
POLICY = """\
[policy]
epsilon = {epsilon}
[policy.window]
reports = 1
slots = 1
"""
ASKS = """\
epsilon = {epsilon}
horizon = "hour-of-day over {days} days"
mechanism = "tuned"
min_survey_reports = {min_survey_reports}
revise_slots = {revise_slots}
bucket_slots = {bucket_slots}
utc_offset_s = {utc_offset_s}
"""
_COMMON: dict[str, Any] = {
    "fleet": FLEET,
    "stream": STREAM,
    "unit": UNIT,
    "low": LOW_W,
    "ceiling": CEILING_W,
    "slot_s": SLOT_S,
    "receipt_s": RECEIPT_S,
}
WINDOW_S = 365 * DAY_S  # what ships, 35 days, are 30 s here: a busy machine is later than that
TOLERANCE_S = 2 * DAY_S  # a machine that stalls for a second is a day late at 100,000 times


def agent_files(place: Path, which: int, scenario: Scenario, broker: BrokerChoice) -> Path:
    """Write the configuration of an agent, in a directory of its own, and return its path."""
    name = agent_name(which)
    return tables.agent_file(
        place / name / "agent.toml",
        **_COMMON,
        name=name,
        link=meter_link(place, which),
        meter_id=METER_IDS[which],
        tolerance_s=TOLERANCE_S,
        terms=POLICY.format(epsilon=EPSILON),
        batch_s=DAY_S // 4,
        broker=tables.broker_table(broker),
        clock=_clock(scenario),
    )


def aggregator_files(place: Path, scenario: Scenario, broker: BrokerChoice) -> Path:
    """Write the aggregator's configuration and return its path.

    θ is chosen for the question of the report, an hour of the day over all days and homes, once
    the first day's surveys are in; θ and the share of surveys are looked at again every week.
    """
    asks = ASKS.format(
        epsilon=EPSILON,
        days=scenario.days,
        min_survey_reports=scenario.homes * DAY_SLOTS * 9 // 10,
        revise_slots=7 * DAY_SLOTS,
        bucket_slots=HOUR_S // SLOT_S,
        utc_offset_s=UTC_OFFSET_S,
    )
    return tables.aggregator_file(
        place,
        asks,
        **_COMMON,
        tolerance_s=DAY_S,
        window_s=WINDOW_S,
        broker=tables.broker_table(broker),
        clock=_clock(scenario),
    )


def meter_link(place: Path, which: int) -> Path:
    """Return the stable name of a simulated meter's port."""
    return place / f"meter-{which + 1}.port"


def meter_command(place: Path, which: int, scenario: Scenario) -> list[str]:
    """Return the command of a simulated meter with planted registers."""
    link = meter_link(place, which)
    clock = tables.clock_flags(scenario.start, scenario.origin_s, scenario.started_s, scenario.rate)
    words = tables.meter_words(link, f"uci:{which}", SLOT_S, METER_IDS[which], BASE_WH[which])
    return [*words, "--count", str(scenario.slots), *clock]


def fleet_command(scenario: Scenario, broker: BrokerChoice) -> list[str]:
    """Return the command of the simulated homes."""
    return [
        *(*tables.EDGE_LDP, "simulate", "homes", "--json", "--data", "swiss"),
        *("--broker", f"127.0.0.1:{broker.port}", "--protocol", broker.protocol),
        *("--fleet", FLEET, "--stream", STREAM, "--unit", UNIT, "--epsilon", str(EPSILON)),
        *("--homes", str(scenario.homes), "--days", str(scenario.days)),
        *("--receipt-interval", str(2 * RECEIPT_S), "--sums-epsilon", str(SUMS_EPSILON)),
        *("--sums", f"1/1/{DAY_S - UTC_OFFSET_S}"),  # from the data's midnight on
        *tables.clock_flags(scenario.start, scenario.origin_s, scenario.started_s, scenario.rate),
    ]


def command(*words: str) -> list[str]:
    """Return `edge-ldp WORDS`, run by this Python."""
    return [*tables.EDGE_LDP, *words]


def _clock(scenario: Scenario) -> str:
    return tables.clock_table(scenario.origin_s, scenario.started_s, scenario.rate)
