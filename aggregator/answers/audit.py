"""What operators changed, as the store keeps it: when, who, by which command; plans by whom."""

from __future__ import annotations

from datetime import UTC, tzinfo
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from aggregator.answers.units import clock_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from aggregator.plans.revision import Revision
    from aggregator.store.contract import Reader
    from aggregator.store.rows import AuditRow
    from edge_ldp.protocol.plan import Plan

MOST_S = 60  # between an order and its plan: the proof, and what is asked back
VERBS = {"publish": "published by", "repair": "issued anew by"}
SOMEBODY = "published by an operator"
_STREAM = "--stream"
_LEAST = len("--st")  # no other option begins so


def read_audit(reader: Reader, fleet: str, since_s: int = 0) -> dict[str, Any]:
    """Return the JSON of `audit`.

    fleet; audit[], oldest first: at_s (seconds UTC, by the fleet's clock), who (user@host, or "anna
    as root@host"), command (as it was typed, at most 1,000 characters of it).
    """
    return {"fleet": fleet, "audit": [row._asdict() for row in reader.audit(since_s)]}


def audit_text(view: Mapping[str, Any], zone: tzinfo = UTC) -> str:
    """Return the log as people read it."""
    rows = [(clock_text(one["at_s"], zone), one["who"], one["command"]) for one in view["audit"]]
    width = max((len(who) for _, who, _ in rows), default=0)
    lines = [f"{at}  {who:{width}}  {command}\n" for at, who, command in rows]
    return "".join(lines) or "nothing was changed by a command\n"


def orders(
    name: str,
    first: str,
    plans: Mapping[int, Plan],
    revisions: Sequence[Revision],
    log: Iterable[AuditRow],
) -> dict[int, tuple[str, ...]]:
    """Return by whom a stream's plan was issued, in words, of those that an operator issued.

    `first`: the stream that is meant without --stream. Where the log lacks an order, a plan shows
    it that asks something else than the one before and that no revision speaks of.
    """
    looks = {(one.epoch, one.at_s) for one in revisions}
    seen = {one.epoch for one in revisions}
    found: dict[int, tuple[str, ...]] = {
        epoch: (SOMEBODY,)
        for before, epoch in pairwise(sorted(plans))
        if epoch not in seen and _asks(plans[before]) != _asks(plans[epoch])
    }
    ours = {e: plan.issued_s for e, plan in plans.items() if (e, plan.issued_s) not in looks}
    for row in log:
        told = _issued(row, name, first)
        apart_s, epoch = min(
            ((abs(at_s - row.at_s), e) for e, at_s in ours.items()), default=(0, 0)
        )
        if told is not None and epoch and apart_s <= MOST_S:
            found[epoch] = (told,)
    return found


def _asks(plan: Plan) -> tuple[object, ...]:
    return plan.share, plan.stream_mechanism, plan.survey_mechanism


def _issued(row: AuditRow, name: str, first: str) -> str | None:
    """Return what a command did, and who, if it issued a plan of the stream of this name."""
    words = row.command.replace("=", " ").split()  # names need no quotes
    verb = VERBS.get(words[1]) if words[:1] == ["plan"] and len(words) > 1 else None
    meant = first
    for word, value in pairwise(words):
        if len(word) >= _LEAST and _STREAM.startswith(word):
            meant = value
    return f"{verb} {row.who}" if verb is not None and meant == name else None
