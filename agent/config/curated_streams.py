"""What a [curator] table means for each stream of its file, and what stands against it."""

import json
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from agent.config.curator_section import CuratorTable
from agent.config.sections import AgentConfig
from agent.meters.reading import SIGNED
from edge_ldp.continual import Design, Quantile, Renewal, Shape, best_pruning, tops_design
from edge_ldp.device.errors import ParameterError
from edge_ldp.protocol.released import FIRST_KEY, PublicDesign
from edge_ldp.ratio import exact_epsilon

LEAN_BLOCKS = 1 << 12  # a subtree of more blocks is not held in memory


@dataclass(frozen=True, slots=True)
class Setup:
    """One configured stream: its key from 256, what it runs, and what of that is public."""

    key: int
    design: Design
    public: PublicDesign

    @property
    def terms(self) -> bytes:
        """What the ledger must know, as JSON; equal terms and design continue a series."""
        renewal = self.design.renewal
        return json.dumps(
            {
                "fingerprint": self.design.fingerprint,
                "method": type(self.design.optimiser).__name__,
                "epsilon": str(self.design.epsilon),
                "theta_epsilon": str(self.design.optimiser.epsilon),
                "theta_readings": self.design.readings,
                "renewal": renewal and {"every": renewal.every, "mode": renewal.mode},
            },
            separators=(",", ":"),
        ).encode()


def setups(config: AgentConfig) -> tuple[Setup, ...]:
    """Return what each configured stream runs; raises ParameterError for what cannot be."""
    table = config.curator
    assert table is not None  # noqa: S101 (the mode's faults are looked for first)
    found = []
    for at, stream in enumerate(config.streams):
        design = make_design(table, stream.ceiling)
        shape = design.shape
        public = PublicDesign(
            name=stream.name,
            unit=stream.unit,
            slot_seconds=stream.slot_seconds,
            kind=shape.kind,
            fanout=shape.fanout,
            chunk=shape.chunk,
            pruned=shape.pruned,
            smoother=design.smoother,
            missing=table.missing,
            ceiling=stream.ceiling,
            epsilon=(design.epsilon.numerator, design.epsilon.denominator),
            paid=design.epsilon_per_reading.as_integer_ratio(),
        )
        public.encode()
        found.append(Setup(FIRST_KEY + at, design, public))
    return tuple(found)


def make_design(table: CuratorTable, ceiling: int) -> Design:
    """Return the design that a [curator] table means for a stream; raises ParameterError."""
    epsilon = exact_epsilon(table.epsilon)
    pruned = table.pruned
    if pruned is None:
        pruned = best_pruning(table.fanout, table.chunk, epsilon)
    shape = Shape(table.structure, table.fanout, table.chunk, pruned)
    if shape.looks_ahead:
        raise ParameterError(
            "structure",
            "'causal', or a chunk of at most fanout^(pruned + 1): a restored or cloned state would "
            "publish other readings with the noise that least squares used already",
        )
    own = epsilon if table.theta_epsilon is None else exact_epsilon(table.theta_epsilon)
    every = table.renew_chunks
    common: dict[str, Any] = {
        "smoother": table.smoother,
        "renewal": None if every is None else Renewal(every, table.renewal),
        "missing": "zero" if table.missing == "zero" else "gap",
        "memory": "subtree" if shape.subtree <= LEAN_BLOCKS else "lean",
    }
    if table.method == "quantile":
        assert table.share is not None  # noqa: S101 (the mode's faults are looked for first)
        return Design(
            optimiser=Quantile(own, Fraction(table.share)),
            shape=shape,
            epsilon=epsilon,
            ceiling=ceiling,
            readings=table.readings or 0,
            **common,
        )
    return tops_design(
        epsilon=epsilon,
        ceiling=ceiling,
        readings=table.readings or 0,
        chunk=table.chunk,
        fanout=table.fanout,
        pruned=pruned,
        theta=table.theta if table.method == "fixed" else None,
        theta_epsilon=table.theta_epsilon,
        kind=table.structure,
        **common,
    )


def curator_faults(config: AgentConfig) -> list[tuple[str, str]]:
    """Return (key, expected) of what is wrong in [curator], given that the table is there."""
    table = config.curator
    assert table is not None  # noqa: S101 (asked for by the caller)
    is_fixed = table.method == "fixed"
    checks = [
        ("policy.lifetime", config.lifetime is None, "none: it counts the local mode's reports"),
        ("curator.theta", (table.theta is not None) == is_fixed, "θ, with method = 'fixed' only"),
        (
            "curator.readings",
            (table.readings is None) == is_fixed,
            "how many readings θ is chosen from; none with method = 'fixed'",
        ),
        (
            "curator.share",
            (table.share is not None) == (table.method == "quantile"),
            "a share between 0 and 1, with method = 'quantile' only",
        ),
        (
            "curator.theta_epsilon",
            not is_fixed or table.theta_epsilon is None,
            "nothing with method = 'fixed': a public θ costs nothing",
        ),
    ]
    for at, stream in enumerate(config.streams):
        is_never_below = stream.quantity not in SIGNED
        checks += [
            (f"streams[{at}].quantity", is_never_below, "one that is never below 0"),
            (f"streams[{at}].low", stream.low == 0, "0: a curated reading is at least 0"),
        ]
    faults = [(key, expected) for key, holds, expected in checks if not holds]
    if not faults:
        try:
            setups(config)
        except ParameterError as exc:
            return [(f"curator.{exc.name.replace(' ', '_')}", exc.expected)]
    return faults
