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

from aggregator.console.alarms import ALARMS, STEP_S, Lately, alarms
from aggregator.console.metrics import metrics_text
from tests import needs
from tests.integration.conftest import free_port

if TYPE_CHECKING:
    from tests.aggregator.console.small_fleet import Fleet

ROOT = Path(__file__).parents[3]
RULES = ROOT / "config" / "prometheus-alerts.yml"
CONSOLE = {"answers": 3.0, "seconds": 1.5, "viewers": 2.0}
NOTHING = (0, 0)  # expired and refused lately
STREAM: dict[str, Any] = {
    "stream": "power",
    "unit": "W",
    "retired_s": None,
    "plan": {"epoch": 2, "theta": 900, "issued_s": 0, "expires_s": 10_000_000},
    "look": None,
    **dict.fromkeys(("created", "counted"), 1000),
    **dict.fromkeys(("rejected", "expired", "pending", "duplicates", "conflicts"), 0),
}
LOOK = {"alarms": [{"warnings": ["too many at the top"]}]}
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


# the alarm, and what is then so; and what is not yet so
STATES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "NothingCounted": (_faulty(last_commit_s=992_799), _faulty(last_commit_s=992_800)),
    "DevicesSilent": (_faulty(devices__silent=11), _faulty(devices__silent=10)),
    "PlansRefused": (_faulty(devices__refusing=1), FINE),
    "DevicesMarked": (_faulty(devices__marked=2), FINE),
    "LookAlarm": (
        _faulty(streams__0__look=LOOK),
        _faulty(streams__0__look=LOOK, streams__0__retired_s=999_000),
    ),
    "NoPlan": (
        _faulty(streams__0__plan=None),
        _faulty(streams__0__plan=None, streams__0__retired_s=999_000),
    ),
    "ReportsExpired": (_faulty(streams__0__expired=1), FINE),
    "ReportsRefused": (_faulty(refused__0__messages=103), _faulty(refused__0__messages=102)),
}


@pytest.mark.parametrize("name", ALARMS)
def test_each_alarm_is_raised_alone_at_its_threshold_and_says_what_to_do(name: str) -> None:
    wrong, fine = STATES[name]
    lately = Lately()
    assert list(alarms(FINE, lately.note(FINE), "a.toml")) == []
    assert list(alarms(fine, lately.note(fine), "a.toml")) == []
    (found,) = alarms(wrong, lately.note(wrong), "a.toml")
    assert found["name"] == name
    assert found["command"].startswith(("edge-ldp aggregator ", "systemctl "))


def test_what_expired_or_was_refused_is_an_alarm_for_a_day_or_an_hour() -> None:
    lately, begun_s, hour, day = Lately(), FINE["now_s"], 3600, 86_400
    assert lately.note(_faulty(streams__0__expired=10**6)) == NOTHING  # before anybody looked

    def noted(age_s: int) -> tuple[int, int]:
        after = {"streams__0__expired": 10**6 + 40, "refused__0__messages": 500}
        return lately.note(_faulty(now_s=begun_s + age_s, **after))

    assert noted(600) == noted(3500) == (40, 498)
    assert noted(600 + hour) == noted(day) == (40, 0)
    assert noted(600 + day) == NOTHING
    for age_s in range(2 * day, 4 * day, 60):
        noted(age_s)
    assert len(lately) <= day // STEP_S + 2
    assert lately.note(FINE) == NOTHING  # set back, and another store


def test_each_alarm_is_a_rule_and_each_rule_an_alarm() -> None:
    text = RULES.read_text()
    rules = re.findall(r"alert: (\w+)\n +expr: (.*)", text)
    told = {name: f'edge_ldp_alarm{{name="{name}"}} > 0' for name in ALARMS}
    assert dict(rules) == {"StoreUnreadable": "edge_ldp_store_up == 0", **told}
    promtool = needs.program("promtool", "apt-get install --no-install-recommends prometheus")
    command = [promtool, "check", "rules", str(RULES)]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0


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
    assert len(series(metrics_text(many, (), CONSOLE))) == len(
        series(metrics_text(FINE, (), CONSOLE))
    )


def test_the_dashboard_asks_for_metrics_that_there_are() -> None:
    there = {name.partition("{")[0] for name in series(metrics_text(FINE, (), CONSOLE))}
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
