"""A plan as a store keeps it, read: what is damaged is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aggregator.shell.store import StoreError
from edge_ldp.plan import Plan, parse_plan
from edge_ldp.strict_json import MessageError

if TYPE_CHECKING:
    from aggregator.shell.store import PlanRow


def stored_plan(row: PlanRow, remedy: str = "restore a backup") -> Plan:
    """Return the plan of a row; raises StoreError for one that does not parse."""
    try:
        return parse_plan(row.payload)
    except MessageError as exc:
        reason = f"holds a damaged plan (stream {row.stream}, epoch {row.epoch}: {exc})"
        raise StoreError("plans", reason, remedy) from exc
