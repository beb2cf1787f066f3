"""Counts before anyone plans by them: the alarm on each histogram, and what it makes us leave out.

One histogram is the counts of one mechanism. Where the alarm rings, the filter says which share of
each code's reports some honest density can explain; that share is kept, for θ only: nothing stored
is changed, and sums and densities that are asked for go by the counts as they came. The draws are
seeded by the counts: same counts, same verdict. Sources: docs/methods.md, Poisoned reports,
docs/poisoning.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2s
from typing import Any

import numpy as np

from edge_ldp import Mechanism
from edge_ldp.arrays import Floats, Ints
from edge_ldp.poisoning.alarm import FALSE_ALARM, alarm
from edge_ldp.poisoning.filter import clean
from edge_ldp.protocol.plan import is_survey

LEAST = 1000  # reports: fewer move no θ, and are looked at once there are more
SEED_BYTES = 16


@dataclass(frozen=True, slots=True)
class Screened:
    """The verdict on one histogram: `kind` survey or sums, of values clamped to [low, high].

    `share`: of its reports taken out, 0 where nothing was; `warnings`: of the filter, in words.
    """

    kind: str
    low: int
    high: int
    reports: int
    rings: bool
    share: float
    warnings: tuple[str, ...]

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> "Screened":
        """Return what `dataclasses.asdict` made a table of; raises TypeError, KeyError."""
        return cls(**{**fields, "warnings": tuple(fields["warnings"])})

    def __str__(self) -> str:
        """Say it as people read it."""
        what = f"{self.kind} {self.low} to {self.high}: {self.reports:,} reports"
        if not self.rings:
            return f"{what}, no alarm"
        return f"{what}, ALARM, {self.share:.2%} left out"


def screened(mechanism: Mechanism, counts: Ints) -> tuple[Floats, Screened | None]:
    """Return the share of each code's reports to keep, and the verdict; None: too few to look at.

    Cost: up to half a second for a wave of a thousand codes; the last 64 are remembered.
    """
    if counts.sum() < LEAST:
        return np.ones(len(counts)), None
    return _screened(mechanism, np.ascontiguousarray(counts, np.int64).tobytes())


def seeded(*parts: bytes) -> "np.random.Generator":
    """Return a generator of sampling noise (never privacy noise) that these bytes alone decide."""
    digest = blake2s(digest_size=SEED_BYTES)
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return np.random.default_rng(int.from_bytes(digest.digest(), "little"))


@lru_cache(maxsize=64)
def _screened(mechanism: Mechanism, counted: bytes) -> tuple[Floats, Screened]:
    counts = np.frombuffer(counted, np.int64)
    verdict = alarm(mechanism, counts, rng=seeded(counted), false_alarm=FALSE_ALARM)
    keep, share = np.ones(len(counts)), 0.0
    warnings: tuple[str, ...] = ()
    if verdict.rings:
        found = clean(mechanism, counts, verdict)
        keep = np.divide(found.counts, counts, out=keep, where=counts > 0)
        share, warnings = found.share, found.warnings
    keep.setflags(write=False)
    kind = "survey" if is_survey(mechanism) else "sums"
    outcome = Screened(
        kind=kind,
        low=mechanism.low,
        high=mechanism.high,
        reports=int(counts.sum()),
        rings=verdict.rings,
        share=share,
        warnings=warnings,
    )
    return keep, outcome
