"""What a configuration says and hardly means: told by `check` and at the start, never refused."""

from collections.abc import Iterator
from decimal import Decimal
from math import exp, tanh
from typing import TYPE_CHECKING, Union

from agent.claims.slots import KINDS, Kind, most_apart_s
from agent.config.sections import AgentConfig, StreamTable
from agent.meters.reading import GAS, SIGNED
from edge_ldp.service.broker import LOOPBACK

if TYPE_CHECKING:
    from edge_ldp.protocol.invitation import InvitedStream

LEAST_EPSILON, MOST_EPSILON = 0.1, 8
LEAST_W = 500
"""A home's largest power is more: one kettle takes four times as much."""

LEAST_SPAN_W = 3_680
"""The smallest connection there is, 16 A at 230 V."""

MOST_A_DAY = 64
"""ε: what a quarter hour and the usual window make of ε 8."""

LEAST_SLOT_S = 60
DAY_S = 86_400
MONTH_DAYS = 30


Ranged = Union[StreamTable, "InvitedStream"]
"""What has a range of values: a stream of a file, or of an invitation."""


def doubts_of(config: AgentConfig) -> list[str]:
    """Return what is probably not what the owner meant, in words, most serious first."""
    found = []
    if config.mode == "local" and (doubt := doubt_of_epsilon(config.policy.epsilon)):
        found.append(f"policy.epsilon: {doubt}")
    for at, stream in enumerate(config.streams):
        if (
            doubt := doubt_of_ceiling(
                stream.ceiling, stream.unit, stream.quantity, stream.slot_seconds
            )
        ) or (config.mode == "local" and (doubt := _doubt_of_span(stream))):
            found.append(f"streams[{at}].ceiling: {doubt}")
        if stream.quantity in SIGNED and stream.low == 0:
            found.append(f"streams[{at}].low: {stream.quantity} below 0 would count as 0")
    found += _doubts_of_intervals(config)
    if config.sharing:
        found += _doubts_of_sums(config)
    if config.mode == "local":
        found += _doubts_of_pace(config)
    broker = config.broker
    if not broker.use_tls and broker.host not in LOOPBACK:
        found.append(f"broker.tls: whoever is on the way to {broker.host} reads password and codes")
    return found


def per_day(reports: int, slots: int, slot_seconds: int) -> float:
    """Return how many reports a window lets leave in a day, on average."""
    return reports * DAY_S / slot_seconds / slots


def a_day_and_a_month(epsilon: Decimal | int, reports: int, slots: int, seconds: int) -> str:
    """Return what ε adds up to, in words."""
    day = float(epsilon) * per_day(reports, slots, seconds)
    return f"ε {_shown(day, 3)} a day and {_shown(MONTH_DAYS * day, 4)} in {MONTH_DAYS} days"


def _shown(epsilon: float, digits: int) -> str:
    """Return a sum of ε, never with an exponent where it is large."""
    return f"{epsilon:,.{digits}g}" if epsilon < 10**digits else f"{epsilon:,.0f}"


def span_w(stream: Ranged) -> int:
    """Return how wide a stream's range is, in W (VA): of energy, the power that makes it."""
    span = stream.ceiling - stream.low
    if KINDS.get(stream.quantity, Kind.MEAN) is Kind.MEAN:
        return span
    return span * 3600 // stream.slot_seconds


def fair_least(stream: Ranged, days: int, cells: int, block: int) -> int | None:
    """Return the scale at which such sums tell no more than 8 reports of ε 1 in 97 quarter hours.

    What they tell goes by their noise as an energy, whatever the slot. None: not measured.
    """
    from edge_ldp.period_sums.habits import SLOTS_A_DAY, fair_scale  # noqa: PLC0415 (memory: who has sums)

    scale = None if stream.quantity == GAS else fair_scale(days, cells, block, span_w(stream))
    if scale is None:
        return None
    watt_seconds = scale * (DAY_S // SLOTS_A_DAY)
    return -(-watt_seconds // (3600 if stream.unit == "Wh" else stream.slot_seconds))


def _doubts_of_sums(config: AgentConfig) -> Iterator[str]:
    from agent.config.summed_streams import sum_terms  # noqa: PLC0415 (memory: who has sums)

    for at, terms in sum_terms(config).items():
        layout = terms.layout
        least = fair_least(config.streams[at], layout.days, layout.cells, layout.block)
        if least is not None and terms.scale < least:
            yield (
                f"streams[{at}].sums.least_b: habits of a home show more in these sums than in 8 "
                f"reports of ε 1 in any 97 quarter hours; with {least:,} they do not"
            )


def _doubt_of_span(stream: StreamTable) -> str:
    if stream.quantity == GAS or (span := span_w(stream)) >= LEAST_SPAN_W:
        return ""
    return (
        f"low to ceiling are {span:,} W, less than the smallest connection ({LEAST_SPAN_W:,} W): "
        "plans may ask the more sharply for values between them"
    )


def _doubts_of_intervals(config: AgentConfig) -> Iterator[str]:
    for table in config.all_meters:
        for stream in config.streams_of(table):
            if doubt := doubt_of_interval(stream, table.expected_s):
                key = (
                    "poll_ms"
                    if (table.poll_ms or 0) > 1000 * (table.interval_s or 0)
                    else "interval_s"
                )
                yield f"{table.name or 'meter'}.{key}: {doubt}"


def doubt_of_interval(stream: StreamTable, interval_s: float) -> str:
    """Return why telegrams that come so far apart give a stream no values, or ""."""
    most_s = most_apart_s(stream.kind, stream.slot_seconds)
    if interval_s <= most_s:
        return ""
    return (
        f"a telegram each {interval_s:.0f} s is too rare for {stream.told}: slots of "
        f"{stream.slot_seconds} s need one each {most_s} s, or are given up"
    )


def _doubts_of_pace(config: AgentConfig) -> list[str]:
    seconds, window, found = config.slot_seconds, config.policy.window, list[str]()
    epsilon = config.policy.epsilon
    day = float(epsilon) * per_day(window.reports, window.slots, seconds)
    if day > MOST_A_DAY and not doubt_of_epsilon(epsilon):
        adds_up = a_day_and_a_month(epsilon, window.reports, window.slots, seconds)
        found.append(f"policy: it adds up to {adds_up}; usual are 7.9 and 237")
    if seconds < LEAST_SLOT_S:
        found.append(f"streams[0].slot_seconds: slots of {seconds} s show single appliances")
    return found


def doubt_of_epsilon(given: Decimal | int) -> str:
    """Return why an ε of one report is probably not meant, or ""."""
    epsilon = float(given)
    if epsilon > MOST_EPSILON:
        return (
            f"with ε {given} a report says nearly what the reading was: one guess gets up to "
            f"{exp(min(epsilon, 99)):,.3g} times likelier than another; 1 is usual"
        )
    if epsilon < LEAST_EPSILON:  # the variance of one report where ε is little
        times = float(f"{(tanh(0.5) / tanh(epsilon / 2)) ** 2:.1g}")
        return (
            f"with ε {given} a fleet needs some {times:,.0f} times as many homes as with 1 for the "
            "same answer, and its plans must ask for no more; 1 is usual"
        )
    return ""


def doubt_of_ceiling(ceiling: int, unit: str, quantity: str, slot_seconds: int) -> str:
    """Return why a largest value is probably not meant, or ""; of gas, too, 500 dm³ in an hour."""
    seconds = 3600 if KINDS[quantity] is Kind.MEAN else slot_seconds
    if ceiling >= LEAST_W * seconds // 3600:
        return ""
    return (
        f"{ceiling} {unit} is less than a home's largest: every larger value counts as it. "
        f"Is it meant in {'m3' if quantity == GAS else f'k{unit}'}?"
    )
