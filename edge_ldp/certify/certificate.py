"""A certificate: what was proved of which integers, in one encoding that is the same everywhere.

Integers, and fractions as "num/den": no float, so the digest is the same on every machine. It is
the first half of the SHA-256 of the canonical JSON, which is what `certify --save` writes.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from hashlib import sha256

from edge_ldp.protocol.plan import CERTIFICATE_DIGITS

VERSION = 1

Figure = int | Fraction | None


@dataclass(frozen=True, slots=True)
class ProvedClaim:
    """One claim: `name` is a stable key, `proof` a sentence for people."""

    name: str
    holds: bool
    proof: str


@dataclass(frozen=True, slots=True)
class Certificate:
    """What was proved of one subject: a mechanism, an oracle, or a plan with its two mechanisms.

    `subject`: the integers, as in a plan. `nominal`: the ε that was asked for, if one was. `parts`:
    certificates of what a plan is made of.
    """

    subject: Mapping[str, object]
    nominal: Fraction | None
    figures: Mapping[str, Figure]
    claims: tuple[ProvedClaim, ...]
    channels: Sequence[Mapping[str, int | str]] = ()
    parts: Mapping[str, "Certificate"] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        """Whether every claim holds, of all parts too."""
        return all(claim.holds for claim in self.claims) and all(
            part.holds for part in self.parts.values()
        )

    @property
    def ratio(self) -> Fraction:
        """The largest ratio that was proved; 0 where there is none."""
        return Fraction(self.figures["ratio"] or 0)

    def fields(self) -> dict[str, object]:
        """Return the certificate as JSON values."""
        return {"certificate": VERSION, "subject": dict(self.subject), **self.proved()}

    def proved(self) -> dict[str, object]:
        """Return what was proved, without the integers that it was proved of."""
        found: dict[str, object] = {
            "nominal": written(self.nominal),
            "figures": {name: written(figure) for name, figure in self.figures.items()},
            "claims": {claim.name: claim.holds for claim in self.claims},
            "channels": [dict(channel) for channel in self.channels],
        }
        if self.parts:
            found["parts"] = {name: part.proved() for name, part in self.parts.items()}
        return found

    def to_json(self) -> bytes:
        """Return the canonical encoding: sorted keys, no spaces, ASCII."""
        return canonical(self.fields())

    @property
    def digest(self) -> str:
        """The first 32 hex digits of the SHA-256 of the canonical encoding."""
        return sha256(self.to_json()).hexdigest()[:CERTIFICATE_DIGITS]


def canonical(fields: Mapping[str, object]) -> bytes:
    """Return the one encoding of JSON values."""
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def written(figure: Figure) -> int | str | None:
    """Return a figure as JSON holds it: fractions as "num/den"."""
    if isinstance(figure, Fraction):
        return f"{figure.numerator}/{figure.denominator}"
    return figure
