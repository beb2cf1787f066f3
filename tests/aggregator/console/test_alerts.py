"""Faults of docs/faults.md, each in a store of its own: Prometheus fires the alert that fits."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

from msgspec.json import decode

from aggregator.answers.alarms import ALARMS, Lately, alarms
from aggregator.answers.fleet import FleetSummary
from aggregator.console.answering import Desk
from aggregator.console.metrics import metrics_text
from edge_ldp.protocol.plan import Plan
from edge_ldp.service.mqtt import Message
from tests import needs
from tests.aggregator.console.small_fleet import (
    DAY_S,
    END_S,
    Fleet,
    add_plans,
    add_reports,
    frame,
    make_fleet,
    send,
    status,
)
from tests.aggregator.console.test_metrics import CONSOLE, RULES, series

HOMES = [f"north-{at:04d}" for at in range(20)]


def _goes_on(fleet: Fleet, seconds: int) -> None:
    """Let the fleet's clock show so much more."""
    text = fleet.file.read_text()
    fleet.file.write_text(text.replace(f"origin_s = {END_S}", f"origin_s = {END_S + seconds}"))


def _no_service(fleet: Fleet, _plan: Plan) -> None:
    _goes_on(fleet, 3 * 3600)


def _logins_refused(fleet: Fleet, plan: Plan) -> None:
    """A day later three of twenty have not been heard of again."""
    _goes_on(fleet, DAY_S + 3600)
    send(fleet, plan, [status(name) for name in HOMES[3:]], now_s=END_S + DAY_S + 3600)


def _ratio_above_the_policys(fleet: Fleet, plan: Plan) -> None:
    send(fleet, plan, [status(HOMES[0], refusals=("ratio",))])


def _one_code(fleet: Fleet, plan: Plan) -> None:
    send(fleet, plan, [frame(plan, "north-0099", [0] * 90)])


def _killed_while_planning(fleet: Fleet, _plan: Plan) -> None:
    """A stream was added, and the service ended before it had issued a plan of it."""
    text = fleet.file.read_text()
    added = text[text.index("[[streams]]") :].replace('"power"', '"heat"')
    fleet.file.write_text(text + added.replace("id = 1", "id = 2"))


def _weeks_offline(fleet: Fleet, plan: Plan) -> None:
    send(fleet, plan, [status("north-0099", expired=40)])


def _malformed(fleet: Fleet, plan: Plan) -> None:
    at = frame(plan, HOMES[0], [1]).topic
    send(fleet, plan, [Message(at, b"\xff" * 20)] * 101)


def _damaged(fleet: Fleet, _plan: Plan) -> None:
    assert fleet.config.store.path is not None
    file = Path(fleet.config.store.path)
    file.write_bytes(file.read_bytes()[:100] + b"\xff" * 8000)


# as in docs/console.md
FAULTS: dict[str, tuple[str, Callable[[Fleet, Plan], None]]] = {
    "AGG-12": ("StoreUnreadable", _damaged),
    "AGG-27": ("NothingCounted", _no_service),
    "NET-11": ("DevicesSilent", _logins_refused),
    "PLN-03": ("PlansRefused", _ratio_above_the_policys),
    "REP-10": ("DevicesMarked", _one_code),
    "AGG-17": ("NoPlan", _killed_while_planning),
    "AGT-16": ("ReportsExpired", _weeks_offline),
    "REP-01": ("ReportsRefused", _malformed),
}


def _scraped(fleet: Fleet, lately: Lately) -> tuple[dict[str, str], set[str]]:
    """Return the series of the metrics, and the alarms that the overview shows."""
    desk = Desk(str(fleet.file))
    reply = desk.make("summary", ())
    desk.close()
    found = None if reply.code else decode(reply.out, type=FleetSummary)
    raised = [] if found is None else alarms(found, lately.note(found), "a.toml")
    names = {one["name"] for one in raised}
    return series(metrics_text(found, names, CONSOLE)), names


def test_a_rehearsals_clock_that_runs_fast_raises_no_alarm_before_it_is_time(
    tmp_path: Path,
) -> None:
    fleet = make_fleet(tmp_path)
    add_reports(fleet, add_plans(fleet, 1), {"north": 3}, 1, slots=2)
    _goes_on(fleet, 3 * DAY_S)
    slow = fleet.file.read_text()
    assert _scraped(fleet, Lately())[1] == {"NothingCounted", "DevicesSilent"}
    fleet.file.write_text(slow.replace("rate = 1e-9", "rate = 17280.0"))
    assert _scraped(fleet, Lately())[1] == set()
    desk = Desk(str(fleet.file))
    found = json.loads(desk.make("devices", ()).out)
    desk.close()
    assert [row["state"] for row in found["rows"]] == ["online"] * 3


def _test_of(name: str, before: dict[str, str], after: dict[str, str]) -> dict[str, object]:
    """Return a test of promtool: well for twenty minutes, then the fault for as long."""
    rows = [
        {"series": one, "values": f"{before[one]}x20 {_then(after.get(one))}"} for one in before
    ]
    rows += [
        {"series": one, "values": f"_x20 {value}x40"}
        for one, value in after.items()
        if one not in before
    ]
    asked = [
        {"eval_time": "40m", "alertname": alert, "exp_alerts": [{}] if alert == name else []}
        for alert in ("StoreUnreadable", *ALARMS)
    ]
    return {"interval": "1m", "name": name, "input_series": rows, "alert_rule_test": asked}


def _then(value: str | None) -> str:
    return "stale _x39" if value is None else f"{value}x40"


def test_AGG_12_AGG_17_AGG_27_AGT_16_NET_11_PLN_03_REP_01_REP_10_fire_their_alert_alone(
    tmp_path: Path,
) -> None:
    promtool = needs.program("promtool", "apt-get install --no-install-recommends prometheus")
    tests = []
    for number, (name, happens) in FAULTS.items():
        place = tmp_path / number
        place.mkdir()
        fleet, lately = make_fleet(place), Lately()
        plan = add_plans(fleet, 1)
        add_reports(fleet, plan, {"north": len(HOMES)}, 1, slots=2)
        before, none = _scraped(fleet, lately)
        happens(fleet, plan)
        after, raised = _scraped(fleet, lately)
        assert none == set(), number
        assert raised == {name} - {"StoreUnreadable"}, number
        tests += [_test_of(name, before, after), _test_of("", before, before)]
    rules = tmp_path / "rules.yml"  # an alert's own labels and texts are not what is tested
    text = re.sub(r"expr: (.*)", r"expr: 'max(\1)'", RULES.read_text())
    rules.write_text(re.sub(r" +annotations: .*\n", "", text))
    file = tmp_path / "test.yml"
    file.write_text(json.dumps({"rule_files": [str(rules)], "tests": tests}))
    command = [promtool, "test", "rules", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
