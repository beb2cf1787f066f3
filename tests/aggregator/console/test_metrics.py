"""Metrics: few series, right figures, and alerts that fire for their own fault alone."""

from __future__ import annotations

import json
import re
import subprocess
import time
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from aggregator.console.metrics import metrics_text
from aggregator.console.summary import alarms
from tests import needs
from tests.integration.conftest import free_port

if TYPE_CHECKING:
    from tests.aggregator.console.small_fleet import Fleet

ROOT = Path(__file__).parents[3]
RULES = ROOT / "config" / "prometheus-alerts.yml"
CONSOLE = {"answers_total": 3.0, "answering_seconds_total": 1.5, "viewers": 2.0}
STREAM: dict[str, Any] = {
    "stream": "power",
    "unit": "W",
    "retired_s": None,
    "plan": {"epoch": 2, "theta": 900, "issued_s": 0, "expires_s": 10_000_000},
    "alarms": [],
    **dict.fromkeys(("created", "counted"), 1000),
    **dict.fromkeys(("rejected", "expired", "pending", "duplicates", "conflicts"), 0),
}
FINE: dict[str, Any] = {
    "fleet": "demo",
    "now_s": 1_000_000,
    "last_commit_s": 999_990,
    "quiet_s": 7200,
    "devices": {
        "enrolled": 100,
        "online": 95,
        "silent": 3,
        "revoked": 1,
        "held": 1,
        "refusing": 0,
        "marked": 0,
    },
    "streams": [STREAM],
    "refused": [{"reason": "late", "messages": 2, "reports": 20}],
}


def _faulty(**change: Any) -> dict[str, Any]:
    found = deepcopy(FINE)
    for path, value in change.items():
        at: Any = found
        *way, last = path.split("__")
        for step in way:
            at = at[int(step) if step.isdecimal() else step]
        at[last] = value
    return found


# a fault (docs/faults.md names them), what is then so, and the one alarm it must raise
FAULTS = {
    "NothingCounted": _faulty(last_commit_s=990_000),
    "DevicesSilent": _faulty(devices__silent=11),
    "PlansRefused": _faulty(devices__refusing=1),
    "DevicesMarked": _faulty(devices__marked=2),
    "LookAlarm": _faulty(streams__0__alarms=["too many at the top"]),
    "NoPlan": _faulty(streams__0__plan=None),
    "ReportsExpired": _faulty(streams__0__expired=40),
}


def test_a_fleet_that_is_well_raises_no_alarm() -> None:
    assert list(alarms(FINE, "a.toml")) == []


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_raises_its_alarm_alone_and_says_what_to_do(name: str) -> None:
    (found,) = alarms(FAULTS[name], "a.toml")
    assert found["name"] == name
    assert found["command"].startswith(("edge-ldp aggregator ", "systemctl "))


def test_prometheus_reads_them_and_fires_the_same_alerts(tmp_path: Path) -> None:
    promtool = needs.program("promtool", "apt-get install --no-install-recommends prometheus")
    states = {**FAULTS, "StoreUnreadable": None, "ReportsRefused": _faulty()}
    tests = []
    for name, state in {**states, "": FINE}.items():
        before = series(metrics_text(FINE, CONSOLE))
        after = series(metrics_text(state, CONSOLE))
        if name == "ReportsRefused":
            after['edge_ldp_refused_total{what="messages"}'] = "500"
        rows = [
            {"series": one, "values": f"{before[one]}x20 {_then(after.get(one))}"} for one in before
        ]
        rows += [
            {"series": one, "values": f"_x20 {value}x40"}
            for one, value in after.items()
            if one not in before
        ]
        tests.append(
            {
                "interval": "1m",
                "name": name or "well",
                "input_series": rows,
                "alert_rule_test": [
                    {
                        "eval_time": "40m",
                        "alertname": alert,
                        "exp_alerts": [{}] if alert == name else [],
                    }
                    for alert in re.findall(r"alert: (\w+)", RULES.read_text())
                ],
            }
        )
    # an alert's own labels and texts are not what is tested
    text = RULES.read_text()
    rules = tmp_path / "rules.yml"
    rules.write_text(
        re.sub(
            r"expr: (.*)\n.*\n.*",
            lambda found: f"expr: 'max({found[1]})'\n        for: 5m",
            text,
        )
    )
    file = tmp_path / "test.yml"
    file.write_text(json.dumps({"rule_files": [str(rules)], "tests": tests}))
    done = subprocess.run(
        [promtool, "test", "rules", str(file)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (
        subprocess.run(
            [promtool, "check", "rules", str(RULES)], capture_output=True, check=False
        ).returncode
        == 0
    )
    assert len(FAULTS) + 2 == text.count("alert:")


def _then(value: str | None) -> str:
    return "stale _x39" if value is None else f"{value}x40"


def series(text: str) -> dict[str, str]:
    return dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))


def test_there_are_at_most_40_series_whatever_the_fleets_size(fleet: Fleet, console: str) -> None:
    text = httpx.get(f"{console}/metrics").text
    found = series(text)
    assert len(found) <= 40
    assert "north" not in text
    status = fleet.json("status")
    assert found['edge_ldp_reports_total{what="counted"}'] == str(status["streams"][0]["counted"])
    assert found['edge_ldp_devices{what="enrolled"}'] == str(status["devices"]["enrolled"])
    assert found["edge_ldp_store_up"] == "1"
    many = {**FINE, "streams": [{**STREAM, "stream": f"s{at}"} for at in range(256)]}
    assert len(series(metrics_text(many, CONSOLE))) == len(series(metrics_text(FINE, CONSOLE)))


def test_the_dashboard_asks_for_metrics_that_there_are() -> None:
    there = {name.partition("{")[0] for name in series(metrics_text(FINE, CONSOLE))}
    board = json.loads((ROOT / "config" / "grafana-dashboard.json").read_text())
    asked = {
        name
        for panel in board["panels"]
        for target in panel["targets"]
        for name in re.findall(r"edge_ldp_\w+", target["expr"])
    }
    assert asked <= there
    asked = set(re.findall(r"edge_ldp_\w+", RULES.read_text()))
    assert asked <= there


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_panel_of_the_dashboard_shows_something(console: str, tmp_path: Path) -> None:
    """A live Prometheus that scrapes the console takes each expression, and has data of it."""
    prometheus = needs.program("prometheus")
    job = {"job_name": "edge-ldp", "static_configs": [{"targets": [console.partition("//")[2]]}]}
    file = tmp_path / "prometheus.yml"
    scraping = {"global": {"scrape_interval": "1s"}, "scrape_configs": [job]}
    file.write_text(json.dumps({**scraping, "rule_files": [str(RULES)]}))
    command = [prometheus, f"--config.file={file}", f"--storage.tsdb.path={tmp_path / 'data'}"]
    address = f"127.0.0.1:{free_port()}"
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen([*command, f"--web.listen-address={address}"], stderr=log)
    board = json.loads((ROOT / "config" / "grafana-dashboard.json").read_text())
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    try:
        with httpx.Client(base_url=f"http://{address}/api/v1", timeout=60) as client:
            left = {*asked}
            while left:  # a rate needs two scrapes; the test's own limit ends it
                left = {expr for expr in left if not _has_data(client, expr)}
            rules = client.get("rules").json()["data"]["groups"][0]["rules"]
    finally:
        process.terminate()
        process.wait(60)
    assert len(rules) == RULES.read_text().count("alert:")
    assert {rule["health"] for rule in rules} <= {"ok", "unknown"}  # unknown: not its turn yet


def _has_data(client: httpx.Client, expr: str) -> bool:
    time.sleep(0.2)
    try:
        reply = client.get("query", params={"query": expr})
    except httpx.ConnectError:  # it is starting
        return False
    if reply.status_code == 503:  # here too
        return False
    assert reply.status_code == 200, reply.text  # 400: it is no expression
    return bool(reply.json()["data"]["result"])
