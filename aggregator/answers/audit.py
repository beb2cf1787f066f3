"""What operators changed, as the store keeps it: when, who, by which command; plans by whom."""

from __future__ import annotations

from datetime import UTC, tzinfo
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from aggregator.answers.units import clock_text
from aggregator.plans.orders import apart_s, issued_by

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from aggregator.config import AggregatorConfig, StreamTable
    from aggregator.plans.revision import Revision
    from aggregator.store.contract import Reader
    from aggregator.store.rows import AuditRow
    from edge_ldp.protocol.plan import Plan

SOMEBODY = "published by an operator"


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
    config: AggregatorConfig,
    stream: StreamTable,
    plans: Mapping[int, Plan],
    revisions: Sequence[Revision],
    log: Iterable[AuditRow],
) -> dict[int, tuple[str, ...]]:
    """Return by whom a stream's plan was issued, in words, of those that an operator issued.

    Where the log lacks an order, a plan shows it that asks something else than the one before and
    that no revision speaks of.
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
        told = issued_by(row, config, stream)
        apart = [(abs(at_s - row.at_s), epoch) for epoch, at_s in ours.items()]
        if told is not None and apart and min(apart)[0] <= apart_s(config):
            found[min(apart)[1]] = (told,)
    return found


def _asks(plan: Plan) -> tuple[object, ...]:
    return plan.share, plan.stream_mechanism, plan.survey_mechanism
