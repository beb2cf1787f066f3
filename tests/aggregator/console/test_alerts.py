"""Faults of docs/faults.md, each in a store of its own: Prometheus fires the alert that fits."""

import fcntl
import json
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec.json import decode

from aggregator.answers.fleet.alarms import ALARMS, LINK_S, SEVERITIES, Lately, alarms
from aggregator.answers.fleet.status import LATE_S
from aggregator.answers.fleet.status_answer import FleetSummary
from aggregator.console.answering import Desk
from aggregator.console.metrics import metrics_text
from aggregator.plans.screen import Screened
from aggregator.store.opening import open_store
from aggregator.store.rows import BeatRow, BeatTimes
from aggregator.store.sqlite.reader import lock_of
from edge_ldp.protocol.messages import Status, StreamStatus, topic
from edge_ldp.protocol.plan import Plan
from edge_ldp.service.mqtt import Message
from tests import needs
from tests.aggregator.console.small_fleet import (
    DAY_S,
    END_S,
    Fleet,
    add_looks,
    add_plans,
    add_reports,
    frame,
    make_fleet,
    send,
    status,
)
from tests.aggregator.console.test_metrics import CONSOLE, ROOT, RULES, series
from tests.integration.conftest import free_port
from tests.processes import run_told

HOMES = [f"north-{at:04d}" for at in range(20)]
HOUR_S = 3600
NOTICE = ROOT / "config" / "alertmanager.yml"


@dataclass
class Case:
    """A fleet whose service runs and says this of itself, `passed_s` after END_S."""

    fleet: Fleet
    plan: Plan
    runs: bool = True
    health: str = "ok"
    passed_s: int = 0
    beat_age_s: int = 0
    lost_s: int | None = None
    valid_s: int | None = 400 * DAY_S
    lately: Lately = field(default_factory=Lately)

    def goes_on(self, seconds: int) -> None:
        """Let the fleet's clock show so much more."""
        self.passed_s += seconds
        text = re.sub(r"origin_s = .*", f"origin_s = {END_S + self.passed_s}", self.text)
        self.fleet.file.write_text(text)

    @property
    def text(self) -> str:
        return self.fleet.file.read_text()

    def becomes(self, **so: Any) -> None:
        """Let the service be so."""
        for name, value in so.items():
            setattr(self, name, value)

    def send(self, *messages: Message) -> None:
        send(self.fleet, self.plan, messages, now_s=END_S + self.passed_s)

    def beat(self) -> None:
        now_s = END_S + self.passed_s
        lost_s = None if self.lost_s is None else now_s - self.lost_s
        valid_s = None if self.valid_s is None else now_s + self.valid_s
        times = BeatTimes(link_s=END_S if lost_s is None else None, lost_s=lost_s, valid_s=valid_s)
        store = open_store(self.fleet.config, str(self.fleet.file))
        store.beat(BeatRow("", now_s - self.beat_age_s, self.health, times))
        store.close()


def _logins_refused(case: Case) -> None:
    """A day later three of twenty have not been heard of again."""
    case.goes_on(DAY_S + HOUR_S)
    case.send(*(status(name) for name in HOMES[3:]))


def _lies_at_the_top(case: Case) -> None:
    screened = Screened("survey", 0, 900, 9, rings=True, share=0.1, warnings=("too many",))
    add_looks(case.fleet, (900.0, 600.0), screen=[screened])


def _killed_while_planning(case: Case) -> None:
    """A stream was added, and the service ended before it had issued a plan of it."""
    text = case.text
    added = text[text.index("[[streams]]") :].replace('"power"', '"heat"')
    case.fleet.file.write_text(text + added.replace("id = 1", "id = 2"))


def _receipts_do_not_come(case: Case) -> None:
    """A device has a thousand reports that wait, and makes one in a day."""
    for made, seconds in ((1000, HOUR_S), (1001, DAY_S)):
        case.goes_on(seconds)
        one = StreamStatus(1, first=1, next=900, oldest=1, created=made, expired=0)
        told = Status("online", "test", (one,)).to_json()
        whose = Message(topic("demo", "status", "north-0099"), told)
        case.send(whose, *(status(name) for name in HOMES))
        case.beat()
        _scraped(case, case.lately)


def _junk(plan: Plan) -> Message:
    return Message(frame(plan, HOMES[0], [1]).topic, b"\xff" * 20)


def _damaged(case: Case) -> None:
    assert case.fleet.config.store.path is not None
    file = Path(case.fleet.config.store.path)
    file.write_bytes(file.read_bytes()[:100] + b"\xff" * 8000)


# as in docs/console.md
FAULTS: dict[str, tuple[str, Callable[[Case], None]]] = {
    "AGG-12": ("StoreUnreadable", _damaged),
    "console": ("ConsoleDown", lambda _: None),
    "AGG-27": ("ServiceDown", lambda case: case.becomes(runs=False)),
    "frozen": ("ServiceDown", lambda case: case.becomes(beat_age_s=LATE_S + 1)),
    "broker": (
        "LinkLost",
        lambda case: case.becomes(lost_s=LINK_S, health="degraded: link down"),
    ),
    "silence": ("NothingCounted", lambda case: case.goes_on(3 * HOUR_S)),
    "held": ("ServiceDegraded", lambda case: case.becomes(health="degraded: store held")),
    "room": ("RoomLow", lambda _: None),
    "certificate": ("CertificateExpires", lambda case: case.becomes(valid_s=6 * DAY_S)),
    # it had issued a plan when its clock was days ahead
    "PLN-18": ("PlanAhead", lambda case: case.goes_on(-3 * DAY_S)),
    "NET-11": ("DevicesSilent", _logins_refused),
    "PLN-03": ("PlansRefused", lambda case: case.send(status(HOMES[0], refusals=("ratio",)))),
    "REP-10": ("DevicesMarked", lambda case: case.send(frame(case.plan, "liar", [0] * 90))),
    "look": ("LookAlarm", _lies_at_the_top),
    "AGG-17": ("NoPlan", _killed_while_planning),
    "receipts": ("ReportsPending", _receipts_do_not_come),
    "AGT-16": ("ReportsExpired", lambda case: case.send(status("north-0099", expired=40))),
    "REP-01": ("ReportsRefused", lambda case: case.send(*[_junk(case.plan)] * 101)),
}
LIVENESS = [name for name, severity in ALARMS.items() if severity == "critical"]


@contextmanager
def _served(case: Case) -> Iterator[None]:
    """Hold the store, as its service does."""
    assert case.fleet.config.store.path is not None
    with lock_of(Path(case.fleet.config.store.path)).open("w") as lock:
        if case.runs:
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _scraped(case: Case, lately: Lately) -> tuple[dict[str, str], set[str]]:
    """Return the series of the metrics, and the alarms that the overview shows."""
    with _served(case):
        desk = Desk(str(case.fleet.file))
        reply = desk.make("summary", ())
        desk.close()
    found = None if reply.code else decode(reply.out, type=FleetSummary)
    rings = [] if found is None else alarms(found, lately.note(found), "a.toml")
    raised = {one["name"]: one["severity"] for one in rings}
    return series(metrics_text(found, raised, CONSOLE)), {*raised}


def test_a_rehearsals_clock_that_runs_fast_raises_no_alarm_before_it_is_time(
    tmp_path: Path,
) -> None:
    fleet = make_fleet(tmp_path)
    case = Case(fleet, add_plans(fleet, 1))
    add_reports(fleet, case.plan, {"north": 3}, 1, slots=2)
    case.goes_on(3 * DAY_S)
    case.beat()
    slow = fleet.file.read_text()
    assert _scraped(case, Lately())[1] == {"NothingCounted"}
    fleet.file.write_text(slow.replace("rate = 1e-9", "rate = 17280.0"))
    assert _scraped(case, Lately())[1] == set()
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
    asked: list[dict[str, object]] = [
        {"eval_time": at, "alertname": alert, "exp_alerts": [{}] if alert == name else []}
        for alert in ("StoreUnreadable", "ConsoleDown", *ALARMS)
        for at in (("23m", "40m") if alert in LIVENESS else ("40m",))
    ]
    return {"interval": "1m", "name": name, "input_series": rows, "alert_rule_test": asked}


def _then(value: str | None) -> str:
    return "stale _x39" if value is None else f"{value}x40"


def test_AGG_12_AGG_17_AGG_27_AGT_16_NET_11_PLN_03_PLN_18_REP_01_REP_10_fire_their_alert_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    promtool = needs.program("promtool", "apt-get install --no-install-recommends prometheus")
    tests = []
    for number, (name, happens) in FAULTS.items():
        place = tmp_path / number
        place.mkdir()
        fleet = make_fleet(place)
        case = Case(fleet, add_plans(fleet, 1))
        add_reports(fleet, case.plan, {"north": len(HOMES)}, 1, slots=2)
        case.beat()
        before, none = _scraped(case, case.lately)
        happens(case)
        if name != "StoreUnreadable":
            case.beat()
        with monkeypatch.context() as context:
            if name == "RoomLow":
                context.setattr("aggregator.answers.fleet.alarms.LEAST_BYTES", 1 << 62)
            after, raised = _scraped(case, case.lately)
        assert none == set(), number
        assert raised == {name} - {"StoreUnreadable", "ConsoleDown"}, number
        after = {} if name == "ConsoleDown" else after
        tests += [_test_of(name, before, after), _test_of("", before, before)]
    rules = tmp_path / "rules.yml"  # an alert's own labels and texts are not what is tested
    text = re.sub(r"expr: (.*)", r"expr: 'max(\1)'", RULES.read_text())
    rules.write_text(re.sub(r" +(annotations|labels): .*\n", "", text))
    file = tmp_path / "test.yml"
    file.write_text(json.dumps({"rule_files": [str(rules)], "tests": tests}))
    command = [promtool, "test", "rules", str(file)]
    done = run_told(command)
    assert done.returncode == 0, done.stdout + done.stderr


def _told_receiver(severity: str) -> str:
    amtool = needs.program("amtool", "apt-get install prometheus-alertmanager")
    command = [amtool, "config", "routes", "test", f"--config.file={NOTICE}"]
    return run_told([*command, f"severity={severity}"], check=True).stdout.strip()


def test_alertmanager_wakes_somebody_for_what_is_critical_alone() -> None:
    told = {severity: _told_receiver(severity) for severity in SEVERITIES}
    assert told == {"critical": "pager", "warning": "desk", "info": "desk"}


# an instance's alerts, and which of them are told
TOLD: dict[str, tuple[set[str], set[str]]] = {
    "store": (
        {"StoreUnreadable", "ServiceDown", "DevicesSilent"},
        {"StoreUnreadable", "ServiceDown"},
    ),
    "service": (
        {"ServiceDown", "ServiceDegraded", "DevicesSilent", "ReportsPending", "RoomLow"},
        {"ServiceDown", "RoomLow"},
    ),
    "plan": ({"NoPlan", "NothingCounted", "PlansRefused"}, {"NoPlan"}),
    "silent": ({"DevicesSilent", "PlansRefused"}, {"DevicesSilent", "PlansRefused"}),
}


def test_AGG_27_alertmanager_tells_the_cause_and_not_what_follows(tmp_path: Path) -> None:
    program = needs.program("prometheus-alertmanager", "apt-get install prometheus-alertmanager")
    file, port = tmp_path / "alertmanager.yml", free_port()
    file.write_text(NOTICE.read_text().replace("127.0.0.1:9099", f"127.0.0.1:{free_port()}"))
    command = [program, f"--config.file={file}", f"--storage.path={tmp_path}"]
    ports = [f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address="]
    alerts = [
        {"alertname": name, "instance": at, "severity": ALARMS.get(name, "critical")}
        for at, (names, _) in TOLD.items()
        for name in names
    ]
    ending = {"alertname": "CertificateExpires", "instance": "certificate"}
    alerts += [{**ending, "severity": severity} for severity in SEVERITIES]
    told = {(at, name) for at, (_, names) in TOLD.items() for name in names}
    with (
        (tmp_path / "log").open("w") as log,
        subprocess.Popen([*command, *ports], stderr=log) as am,
    ):
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}/api/v2", timeout=60) as client:
                told |= {("certificate", "CertificateExpires")}
                _await_told(client, alerts, told)
                # of whatever else the utility watches, and of the intake, all is told
                gone = {"alertname": "ConsoleDown", "severity": "critical"}
                _await_told(client, [gone], {*told, ("", "ConsoleDown")})
        finally:
            am.terminate()


def _await_told(
    client: httpx.Client, alerts: list[dict[str, str]], told: set[tuple[str, str]]
) -> None:
    """Raise alerts, and wait until those, and no others, are told; the test's own limit ends it."""
    found: list[tuple[str, str]] = []
    while sorted(found) != sorted(told):
        with suppress(httpx.ConnectError):  # it starts
            client.post("alerts", json=[{"labels": one} for one in alerts]).raise_for_status()
            found = [
                (one["labels"].get("instance", ""), one["labels"]["alertname"])
                for one in client.get("alerts", params={"inhibited": "false"}).json()
            ]


def test_a_page_says_what_to_do_for_each_alert() -> None:
    page = (ROOT / "docs" / "console.md").read_text()
    rows = [line.split(" | ") for line in page.splitlines() if re.match(r"\| [A-Z]\w+", line)]
    said = {
        name for row in rows if len(row) == 4 for name in re.findall(r"\b[A-Z]\w+[a-z]\b", row[0])
    }
    assert {"ConsoleDown", "StoreUnreadable", *ALARMS} <= said
