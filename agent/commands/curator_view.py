"""What curated streams cost, for the home's people and for machines: from stored rows alone.

Event-level: a reading pays once, or twice where θ is renewed from readings that are released too.
`epsilon_if_one` adds every reading up as if all of them were one event: what nothing can exceed.
"""

import json
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from agent.config import AgentConfig
from agent.config.curated_streams import setups
from agent.curator.outbox import SeriesRow
from edge_ldp.continual import parse_state
from edge_ldp.protocol.released import read_design

_DIGITS = 6


def check_facts(config: AgentConfig) -> dict[str, object]:
    """Return what a curator's configuration means, in words that a household can check."""
    rows = setups(config)
    first = rows[0].design
    shape = first.shape
    paid = sum((row.design.epsilon_per_reading for row in rows), Fraction(0))
    wait = f"{first.readings} readings" if first.readings else "nothing: it is public"
    return {
        "device": f"{config.device.fleet}/{config.device.id}",
        "mode": "curator: every slot's value is published with noise (event-level ε)",
        "streams": ", ".join(row.public.name for row in rows),
        "epsilon_per_reading": float(first.epsilon_per_reading),
        "epsilon_per_slot": float(paid),
        "theta_from": wait,
        "chunk": f"{shape.chunk} values share a key; {shape.kind}, fan-out {shape.fanout}, "
        f"blocks of {shape.block}",
        "copies": "a restored or cloned state repeats no noise",
        "missing": "left out" if first.missing == "gap" else "counted as 0",
        "broker": f"{config.broker.host}:{config.broker.use_port}"
        + (" with TLS" if config.broker.use_tls else " without TLS"),
        "clock": "simulated" if config.clock.simulated else config.clock.trust,
    }


def spending_view(rows: Iterable[SeriesRow]) -> dict[str, Any]:
    """Return what every series has spent, ready for JSON; the keys are stable."""
    series = [_series(row) for row in rows]
    paid: dict[str, float] = {}
    for one in series:
        paid[one["stream"]] = max(paid.get(one["stream"], 0.0), one["epsilon_per_reading"])
    return {
        "series": series,
        "released": sum(one["released"] for one in series),
        "epsilon_per_slot": round(sum(paid.values()), _DIGITS),
        "epsilon_if_one": round(sum(one["epsilon_if_one"] for one in series), _DIGITS),
    }


def spending_text(facts: dict[str, Any]) -> str:
    """Return `spending_view`'s figures as lines."""
    lines = []
    for one in facts["series"]:
        state = "ended" if one["ended"] else "running"
        theta = "being chosen" if one["theta"] is None else f"{one['theta']} {one['unit']}"
        spent = (
            f"{state}, θ {theta}: {one['released']:,} values in {one['chunks']} chunks at "
            f"ε {one['epsilon']:g}; θ chosen {one['choices']} times, each from "
            f"{one['theta_readings']:,} readings at ε {one['theta_epsilon']:g}"
        )
        lines.append((f"curated {one['stream']}", spent))
        lines.append(("", f"{one['composition']}: at most ε {one['epsilon_per_reading']:g} each"))
    lines.append(("any one slot", f"at most ε {facts['epsilon_per_slot']:g}, all curated streams"))
    lines.append(("as one event", f"ε {facts['epsilon_if_one']:,.1f}: all its readings added up"))
    return "".join(f"{name:<24}{text}\n" for name, text in lines)


def _series(row: SeriesRow) -> dict[str, Any]:
    terms, state, design = json.loads(row.terms), parse_state(row.state), read_design(row.design)
    stream_epsilon, theta_epsilon = Fraction(terms["epsilon"]), Fraction(terms["theta_epsilon"])
    renewal, asked = terms["renewal"], terms["theta_readings"]
    both = bool(renewal) and renewal["mode"] == "sequential" and state.choices > 1
    paid = [
        epsilon
        for epsilon, runs in ((theta_epsilon, state.choices), (stream_epsilon, state.chunks))
        if runs
    ]
    each = sum(paid, Fraction(0)) if both else max(paid, default=Fraction(0))
    whole = theta_epsilon * asked * state.choices + stream_epsilon * state.released
    return {
        "stream": design.name,
        "unit": design.unit,
        "series": row.series,
        "ended": row.is_ended,
        "theta": state.theta or None,
        "epsilon": float(stream_epsilon),
        "theta_epsilon": float(theta_epsilon),
        "theta_readings": asked,
        "choices": state.choices,
        "chunks": state.chunks,
        "released": state.released,
        "composition": _composition(asked, renewal),
        "epsilon_per_reading": float(each),
        "epsilon_if_one": round(float(whole), _DIGITS),
    }


def _composition(asked: int, renewal: dict[str, Any] | None) -> str:
    if not asked:
        return "θ is public; every reading is in one chunk"
    if renewal and renewal["mode"] == "sequential":
        return "sequential: readings that renew θ pay for θ and for the stream"
    return "parallel: every reading is in one choice of θ or in one chunk"
