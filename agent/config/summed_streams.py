"""What [streams.sums] means for the streams of a file, and what stands against it.

The window's ε is that of all its reports, `policy.epsilon` times `policy.window.reports`. A stream
takes a share of it for its sums; local reports have what is left, in whole reports. Source:
docs/methods.md, Period sums; docs/faults.md, AGT-33.
"""

from dataclasses import dataclass
from fractions import Fraction

from agent.config.sections import AgentConfig, StreamTable
from edge_ldp.device.errors import ParameterError
from edge_ldp.period_sums import PeriodLayout, booked, most_in_window, scale_for
from edge_ldp.protocol.released import FIRST_SUMS_KEY
from edge_ldp.ratio import exact_epsilon

_KEYS = {"slot_seconds": "slot_seconds", "block": "sums.block_hours", "epsilon": "sums.share"}
_ENOUGH = (
    "a share that makes ε above 2**-16 and at most 32 in any window: a share of [policy] epsilon × "
    "[policy.window] reports"
)
LEAST_BLOCK_SLOT_S = 300  # shorter slots in blocks would take minutes to count


@dataclass(frozen=True, slots=True)
class SumTerms:
    """What one stream's sums are made by: a running sum keeps its own to its period's end.

    `key`: the stream's, from 512. `least`: slots with a value, fewer of which are not released;
    `parts`: so many of the home's slots are one of the stream's.
    """

    key: int
    layout: PeriodLayout
    low: int
    span: int
    scale: int
    unit: str
    name: str
    least: int
    parts: int = 1

    @property
    def per_slot(self) -> Fraction:
        """What a slot costs at most: the rational R/b."""
        return booked(self.span, self.scale)


def sum_terms(config: AgentConfig) -> dict[int, SumTerms]:
    """Return the terms of each stream with sums, by its position; raises ParameterError."""
    return {
        at: _terms(config, at, stream)
        for at, stream in enumerate(config.streams)
        if stream.sums is not None
    }


def window_cost(terms: SumTerms, window_slots: int) -> Fraction:
    """Return what any so many consecutive slots of the home cost at most."""
    return most_in_window(terms.layout, window_slots, terms.parts) * terms.per_slot


def day_cost(terms: SumTerms) -> Fraction:
    """Return what a day costs at most."""
    return window_cost(terms, terms.layout.slots_a_day * terms.parts)


def _terms(config: AgentConfig, at: int, stream: StreamTable) -> SumTerms:
    table = stream.sums
    assert table is not None  # noqa: S101 (asked by the caller)
    seconds, hours = stream.slot_seconds, table.block_hours
    layout = PeriodLayout.of_hours(seconds, table.days, table.cells, table.offset_s, hours)
    if layout.block > 1 and seconds < LEAST_BLOCK_SLOT_S:
        raise ParameterError("block_hours", f"1, or slots of {LEAST_BLOCK_SLOT_S} s and more")
    span = (stream.ceiling if table.ceiling is None else table.ceiling) - stream.low
    policy = config.policy
    epsilon = exact_epsilon(policy.epsilon) * policy.window.reports * Fraction(table.share)
    parts = seconds // config.slot_seconds
    scale = scale_for(layout, policy.window.slots, span, epsilon, parts)
    return SumTerms(
        key=FIRST_SUMS_KEY + at,
        layout=layout,
        low=stream.low,
        span=span,
        scale=max(scale, table.least_b),
        unit=stream.unit,
        name=stream.name,
        least=max(1, int(layout.slots * table.least_share)),
        parts=parts,
    )


def sums_faults(config: AgentConfig) -> list[tuple[str, str]]:
    """Return (key, expected) of what is wrong with modes and shares of the streams."""
    left = config.local_reports
    shares = "the window's ε in whole: a share of it each, 1 in all at the most"
    checks = [
        ("mode", config.mode == "local", "'local': a curator's file has no sums"),
        ("streams.sums.share", config.shared <= 1, shares),
        (
            "policy.window.reports",
            left > 0 or not config.local_streams,
            "a report at least beside the sums' shares, or mode = 'sums' for every stream",
        ),
        (
            "policy.lifetime",
            config.lifetime is None or config.lifetime.epsilon is not None,
            "epsilon, beside sums: they are no reports",
        ),
    ]
    for at, stream in enumerate(config.streams):
        has_both = (stream.mode == "local") == (stream.sums is None)
        checks.append((f"streams[{at}].sums", has_both, "a table with mode 'sums' or 'both' only"))
        if (table := stream.sums) is None:
            continue
        is_within = table.ceiling is None or stream.low < table.ceiling <= stream.ceiling
        own = "above low, and not above the stream's ceiling"
        checks.append((f"streams[{at}].sums.ceiling", is_within, own))
    faults = [(key, expected) for key, holds, expected in checks if not holds]
    for at, stream in enumerate(config.streams) if not faults else ():
        if stream.sums is not None and stream.low < stream.ceiling:  # else told already
            try:
                _terms(config, at, stream)
            except ParameterError as exc:
                key = _KEYS.get(exc.name, f"sums.{exc.name}")
                expected = _ENOUGH if exc.name == "epsilon" else exc.expected
                faults.append((f"streams[{at}].{key}", expected))
    return faults
