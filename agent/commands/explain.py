"""What left this house, for its people: from outbox, ledger and plans, which hold nothing else.

A code is shown with what an outsider could read from it alone, and how wrong that may be.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from agent.commands.ledger_view import span
from agent.home_time import home_time, local
from edge_ldp.protocol.messages import StreamStatus
from edge_ldp.protocol.plan import Plan

SHOWN = 12  # of the reports kept: the newest
RECEIPT_S = 3600
_WIDTH = 90
_NONE: Mapping[int, int] = {}
NEVER = (
    "Readings, values, counts of them and whatever else depends on them stay in this device's "
    "memory, and are gone when their slot ends. Whether and when a report is sent does not depend "
    "on them either."
)


@dataclass(frozen=True, slots=True)
class KeptReport:
    """A report that is still here: waiting to be packed, or in a batch without a receipt."""

    stream: int
    slot: int
    epoch: int
    code: int
    packed: bool


def explain(
    ledger: dict[str, Any],
    accounts: Sequence[StreamStatus],
    plans: Sequence[Plan],
    kept: Iterable[KeptReport],
    slot_seconds: int,
) -> dict[str, Any]:
    """Return what was made, arrived and waits, ready for JSON; `ledger` is `ledger_view.view`'s.

    Times in seconds since 1970; `kept` holds the newest reports, oldest first.
    """
    by_id = {plan.stream_id: plan for plan in plans}
    waiting = sorted(kept, key=lambda report: (report.slot, report.stream))
    here = {account.stream: 0 for account in accounts}
    for report in waiting:
        here[report.stream] = here.get(report.stream, 0) + 1
    return {
        "v": 1,
        "now_s": ledger["now_s"],
        "today": ledger["today"],
        "total": ledger["total"],
        "streams": [_stream(a, by_id.get(a.stream), here[a.stream]) for a in accounts],
        "plans": {},
        "rules": {},
        "kept": [report_facts(r, by_id.get(r.stream), slot_seconds) for r in waiting[-SHOWN:]],
        "never": NEVER,
    }


def as_text(
    facts: dict[str, Any], sent: Mapping[int, int] = _NONE, receipt_s: float = RECEIPT_S
) -> str:
    """Return `explain`'s figures as lines for people.

    `sent`: how many of a stream's reports wait for nothing but a receipt, due every `receipt_s`.
    """
    today, total = facts["today"], facts["total"]
    lines = [
        (
            f"Today (UTC) {_codes(today['reports'])} made from your readings, "
            f"ε {today['epsilon_at_most']:,.2f} at most; {total['reports']:,} since it began."
        ),
        "",
        *(_stream_line(stream, sent.get(stream["stream"], 0)) for stream in facts["streams"]),
    ]
    if not facts["streams"]:
        lines.append("Nothing was ever sent.")
    if facts["kept"]:
        due = f"the aggregator's receipt, due every {span(max(1, round(receipt_s)))}"
        lines += ["", f"Kept here until {due}, confirms them (the newest):"]
        lines += [_report_line(report) for report in facts["kept"]]
    if facts["rules"]:
        lines += ["", "How reports are counted:"]
        for name, rule in facts["rules"].items():
            lines += wrap(f"{name}: {rule}", _WIDTH, initial_indent="  ", subsequent_indent="    ")
    for name, plans in facts["plans"].items():
        asks = (
            f"{plans['plans_may_ask']}. A report of a sum errs by {plans['a_sum_report_errs_by']}."
        )
        changes = f"A plan changes {plans['plans_change']}."
        lines += ["", f"What plans of {name} may ask:", *wrap(f"{asks} {changes}", _WIDTH)]
    lines += ["", "What never leaves:", *wrap(facts["never"], _WIDTH)]
    return "\n".join(lines) + "\n"


def _stream(account: StreamStatus, plan: Plan | None, here: int) -> dict[str, Any]:
    return {
        "stream": account.stream,
        "name": plan.stream if plan else None,
        "created": account.created,
        "arrived": account.created - account.expired - here,
        "waiting": here,
        "expired": account.expired,
        "codes": plan.reporter().code_count if plan else None,
        "survey_share": list(plan.share) if plan else None,
        "theta": plan.theta if plan else None,
        "unit": plan.unit if plan else None,
    }


def report_facts(report: KeptReport, plan: Plan | None, slot_seconds: int) -> dict[str, Any]:
    """Return one report, decoded if the plan it was made under is still the one in force."""
    found: dict[str, Any] = {
        "stream": report.stream,
        "from_s": report.slot * slot_seconds,
        "to_s": (report.slot + 1) * slot_seconds,
        "code": report.code,
        "sent": report.packed,
        "kind": None,
        "alone": None,
        "give_or_take": None,
        "unit": plan.unit if plan else None,
    }
    if plan is None or plan.epoch != report.epoch:
        return found
    stream, survey = plan.stream_mechanism, plan.survey_mechanism
    first = stream.code_count
    kind, mechanism = ("survey", survey) if report.code >= first else ("sum", stream)
    code = report.code - first if kind == "survey" else report.code
    give_or_take = round(2 * mechanism.worst_variance**0.5)
    return found | {
        "kind": kind,
        "alone": round(mechanism.decode(code)),
        "give_or_take": give_or_take,
    }


def _codes(count: int) -> str:
    return "1 random code was" if count == 1 else f"{count:,} random codes were"


def _stream_line(stream: dict[str, Any], sent: int) -> str:
    name = stream["name"] or f"stream {stream['stream']}"
    counts = (
        f"{stream['created']:,} made, {stream['arrived']:,} arrived, {sent:,} sent (no receipt "
        f"yet), {stream['waiting'] - sent:,} waiting here, {stream['expired']:,} given up "
        "unconfirmed"
    )
    if stream["codes"] is None:
        return f"  {name}: {counts}"
    return f"  {name}: {counts}; each is one of {stream['codes']:,} codes"


def _report_line(report: dict[str, Any]) -> str:
    span = f"{local(report['from_s']):%Y-%m-%d %H:%M}–{home_time(report['to_s'], '%H:%M')}"
    sent = "sent" if report["sent"] else "not sent yet"
    if report["kind"] is None:
        return f"  {span}  code {report['code']:>5}  {sent}, under an earlier plan"
    return (
        f"  {span}  code {report['code']:>5}  {sent}; read alone: {report['alone']:,} "
        f"{report['unit']}, give or take {report['give_or_take']:,}"
    )
