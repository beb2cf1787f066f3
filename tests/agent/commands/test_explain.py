"""What a house is told of its reports: what was made, arrived and waits, and what a code says."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from agent.commands.explain import SHOWN, KeptReport, as_text, explain
from agent.commands.ledger_view import view
from agent.commands.plans import bounds
from edge_ldp.protocol.ledger import Window, charge, open_ledger
from edge_ldp.protocol.messages import StreamStatus
from edge_ldp.ratio import floor_ratio
from tests.agent.samples import SLOT, SLOT_S, T0, make_config, make_plan

PLAN = make_plan(2)
FIRST_SURVEY = PLAN.stream_mechanism.code_count
E1 = floor_ratio(1)


def account(created: int, expired: int = 0) -> StreamStatus:
    return StreamStatus(PLAN.stream_id, 0, 1, 0, created, expired)


def told(created: int, kept: list[KeptReport], *, expired: int = 0) -> dict[str, Any]:
    held = replace(open_ledger(Window(8, 97, 1), SLOT - 1000, lambda n: n // 2), silent_until=0)
    for step in range(created):
        held = charge(held, SLOT + step, T0 // 86_400, [E1])
    ledger = view(held, held.window, E1, SLOT_S, T0)
    facts = explain(ledger, [account(created, expired)], [PLAN], kept, SLOT_S)
    assert json.loads(json.dumps(facts)) == facts
    return facts


def report(slot: int, code: int, *, epoch: int = PLAN.epoch, packed: bool = False) -> KeptReport:
    return KeptReport(PLAN.stream_id, slot, epoch, code, packed)


def test_every_report_made_has_arrived_waits_or_was_given_up() -> None:
    facts = told(7, [report(SLOT, 3), report(SLOT + 1, 4, packed=True)], expired=1)
    (stream,) = facts["streams"]
    assert (stream["created"], stream["arrived"]) == (7, 4)
    assert (stream["waiting"], stream["expired"]) == (2, 1)
    text = as_text(facts, {PLAN.stream_id: 1})
    assert (
        "7 made, 4 arrived, 1 sent (no receipt yet), 1 waiting here, 1 given up unconfirmed" in text
    )
    assert "Today (UTC) 7 random codes were made" in as_text(facts)


def test_a_code_is_shown_with_what_it_says_alone_and_how_wrong_that_may_be() -> None:
    facts = told(2, [report(SLOT, 3), report(SLOT + 1, FIRST_SURVEY + 5, packed=True)])
    sums, survey = facts["kept"]
    assert (sums["kind"], survey["kind"]) == ("sum", "survey")
    assert sums["alone"] == round(PLAN.stream_mechanism.decode(3))
    assert survey["alone"] == round(PLAN.survey_mechanism.decode(5))
    assert sums["give_or_take"] == round(2 * PLAN.stream_mechanism.worst_variance**0.5)
    text = as_text(facts)
    assert "not sent yet; read alone" in text
    assert "sent; read alone" in text


def test_a_report_of_an_earlier_plan_is_shown_by_its_code_alone() -> None:
    facts = told(1, [report(SLOT, 3, epoch=PLAN.epoch - 1)])
    assert facts["kept"][0]["alone"] is None
    assert "code     3  not sent yet, under an earlier plan" in as_text(facts)


def test_only_the_newest_are_shown_but_all_are_counted() -> None:
    facts = told(40, [report(SLOT + at, at % 3) for at in range(40)])
    assert [row["from_s"] for row in facts["kept"]] == [
        (SLOT + at) * SLOT_S for at in range(40 - SHOWN, 40)
    ]
    assert facts["streams"][0]["waiting"] == 40


def test_a_house_that_sent_nothing_is_told_so() -> None:
    ledger = view(None, Window(8, 97, 1), E1, SLOT_S, T0)
    text = as_text(explain(ledger, [], [], [], SLOT_S))
    assert "Nothing was ever sent." in text
    assert "0 random codes were made" in text


def test_a_stream_without_a_plan_any_more_is_named_by_its_number() -> None:
    ledger = view(None, Window(8, 97, 1), E1, SLOT_S, T0)
    facts = explain(ledger, [account(3)], [], [report(SLOT, 9)], SLOT_S)
    assert (
        f"stream {PLAN.stream_id}: 3 made, 2 arrived, 0 sent (no receipt yet), 1 waiting"
        in as_text(facts)
    )


def test_when_a_receipt_is_due_is_said_where_reports_are_still_here() -> None:
    facts = told(2, [report(SLOT, 3, packed=True)])
    assert "until the aggregator's receipt, due every 1 h, confirms" in as_text(facts)
    assert "receipt, due every 1 min 30 s, confirms" in as_text(facts, receipt_s=90.0)


def test_what_a_plan_may_ask_names_the_report_that_its_error_is_of() -> None:
    facts = told(1, [])
    facts["plans"] = {"power": bounds(make_config(Path("s.db")).policies()[0])}
    said = " ".join(as_text(facts).split())
    assert re.search(r"of reports at most\. A report of a sum errs by [\d,]+ W at the least", said)
