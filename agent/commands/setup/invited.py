"""What an invitation may say by itself, and what its owner has to say to.

It comes from whoever wrote it, and what it asks decides what leaves the home: how often (the slot),
how sharply one value is asked for (the span of the stream), and who may listen (TLS). Within these
bounds it is taken; beyond them the person is asked, and where nobody is there it is refused, with
the option that allows it. Pure. Source: docs/faults.md, PLN-19, PLN-20.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

from agent.config.doubts import span_w
from agent.meters.reading import GAS
from edge_ldp.protocol.invitation import Invitation
from edge_ldp.service.broker import LOOPBACK

USUAL_FUSE_W = 43_470
"""Where the owner states none: 3 × 63 A at 230 V. A wider span hides one value better."""

LEAST_SLOT_S = 300
"""As often as most fleets ask: with the usual window and ε 1 it makes ε 24 a day."""


@dataclass(frozen=True, slots=True)
class OwnersBounds:
    """What the owner stated: the connection's largest power, the least slot, whether plain text."""

    fuse_w: int
    least_slot_s: int = LEAST_SLOT_S
    allows_plaintext: bool = False


class Objection(NamedTuple):
    """What goes beyond the owner's bounds, and the option by which the owner allows it."""

    text: str
    option: str


def objections(found: Invitation, bounds: OwnersBounds) -> Iterator[Objection]:
    """Yield what an invitation asks beyond the owner's bounds."""
    broker, seconds = found.broker, found.streams[0].slot_seconds
    if not broker.tls and broker.host not in LOOPBACK and not bounds.allows_plaintext:
        text = (
            f"it says that {broker.host} is reached without TLS: anyone on the way reads this "
            "device's password and codes, and can send in its name"
        )
        yield Objection(text, "--allow-plaintext")
    if seconds < bounds.least_slot_s:
        text = (
            f"it asks for slots of {seconds} s: so short ones show single appliances, and there "
            f"are {bounds.least_slot_s / seconds:.3g} times as many reports as with "
            f"{bounds.least_slot_s} s"
        )
        yield Objection(text, f"--least-slot {seconds}")
    for stream in found.streams:
        if stream.quantity != GAS and (span := span_w(stream)) < bounds.fuse_w:
            text = (
                f"stream {stream.name} counts {stream.low:,} to {stream.ceiling:,} {stream.unit}, "
                f"{span:,} W of the {bounds.fuse_w:,} W of the connection: the narrower that is, "
                "the more sharply its plans may ask for a value in it"
            )
            yield Objection(text, f"--fuse {span}")


def needed_epsilon(found: Invitation | None) -> Decimal | None:
    """Return the ε that every plan of the fleet fits, or None where the invitation is silent."""
    told = [Decimal(one.epsilon) for one in found.streams if one.epsilon] if found else []
    return max(told, default=None)


def doubt_of_refusing(given: Decimal | int, needed: Decimal | None) -> str:
    """Return what a smaller ε than the fleet's means, or ""."""
    if needed is None or given >= needed:
        return ""
    return (
        f"the fleet's plans need ε {needed}: with ε {given} this home refuses every one, and "
        "nothing is ever reported, until the operator asks for less"
    )
