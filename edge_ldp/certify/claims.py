"""What a proof says: named claims, each of which holds or fails, with how it was found."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProvedClaim:
    """One claim: `name` is a stable key, `proof` a sentence for people."""

    name: str
    holds: bool
    proof: str
