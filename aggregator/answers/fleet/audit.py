"""What operators changed, as the store keeps it: when, who, by which command; ε; plans by whom."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, tzinfo
from itertools import pairwise

from aggregator.answers.parts import AnswerPart, Seconds
from aggregator.answers.units import clock_text
from aggregator.config import AggregatorConfig, StreamTable
from aggregator.plans.epsilons import epsilon_changes
from aggregator.plans.orders import apart_s, issued_by
from aggregator.plans.revision import Revision
from aggregator.store.contract import Reader, stored_plan
from aggregator.store.rows import AuditRow
from edge_ldp.protocol.plan import Plan

SOMEBODY = "published by an operator"
FILE = "a configuration"


class AuditEntry(AnswerPart, frozen=True, kw_only=True):
    """A change.

    at_s: by the fleet's clock; who: user@host, "anna as root@host", or "a configuration" for
    another ε in [[streams]]; command: as it was typed, at most 1,000 characters of it, or what
    became of ε.
    """

    at_s: Seconds
    who: str
    command: str


class AuditAnswer(AnswerPart, frozen=True, kw_only=True):
    """What `audit` answers.

    fleet; audit[], oldest first.
    """

    fleet: str
    audit: list[AuditEntry]


def read_audit(reader: Reader, fleet: str, since_s: int = 0) -> AuditAnswer:
    """Return what `audit` answers: commands, and where a configuration's plans changed ε."""
    by_stream: dict[int, dict[int, Plan]] = {}
    for row in reader.plans():
        by_stream.setdefault(row.stream, {})[row.epoch] = stored_plan(row)
    changed = [
        AuditRow(one.at_s, FILE, str(one))
        for plans in by_stream.values()
        for one in epsilon_changes(plans)
        if one.at_s >= since_s
    ]
    rows = reader.audit(since_s)  # in the order in which things were done, whatever the clock said
    for one in sorted(changed, key=lambda row: row.at_s, reverse=True):
        at = next((at for at, row in enumerate(rows) if row.at_s > one.at_s), len(rows))
        rows.insert(at, one)
    return AuditAnswer(fleet=fleet, audit=[AuditEntry.of(row) for row in rows])


def audit_text(view: AuditAnswer, zone: tzinfo = UTC) -> str:
    """Return the log as people read it."""
    rows = [(clock_text(one.at_s, zone), one.who, one.command) for one in view.audit]
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
    for change in epsilon_changes(plans):
        found[change.epoch] = (f"ε {change.before:g} → {change.after:g} by {FILE}",)
    ours = {e: plan.issued_s for e, plan in plans.items() if (e, plan.issued_s) not in looks}
    for row in log:
        told = issued_by(row, config, stream)
        apart = [(abs(at_s - row.at_s), epoch) for epoch, at_s in ours.items()]
        if told is not None and apart and min(apart)[0] <= apart_s(config):
            found[min(apart)[1]] = (told,)
    return found


def _asks(plan: Plan) -> tuple[object, ...]:
    return plan.share, plan.stream_mechanism, plan.survey_mechanism
