"""Metrics: few series, right figures, and alerts that fire for their own fault alone."""

import json
import re
import subprocess
import time
from pathlib import Path

import httpx
import pytest
from msgspec.structs import replace

from aggregator.answers.fleet.alarms import ALARMS, SEVERITIES
from aggregator.console.metrics import metrics_text
from tests import needs
from tests.aggregator.answers.test_alarms import FINE
from tests.aggregator.console.small_fleet import Fleet
from tests.integration.conftest import free_port

ROOT = Path(__file__).parents[3]
RULES = ROOT / "config" / "prometheus-alerts.yml"
CONSOLE = {"answers": 3.0, "seconds": 1.5, "viewers": 2.0}


def test_each_alarm_is_a_rule_and_each_rule_an_alarm() -> None:
    rules = re.findall(
        r"alert: (\w+)\n +expr: (.*)\n.*\n +labels: {severity: (\w+)}", RULES.read_text()
    )
    told = [
        ("StoreUnreadable", "edge_ldp_store_up == 0", "critical"),
        ("ConsoleDown", "absent(edge_ldp_store_up)", "critical"),
    ]
    for name, severity in ALARMS.items():
        ring = f'edge_ldp_alarm{{name="{name}"}}'
        if severity:
            told.append((name, f"{ring} > 0", severity))
        else:
            told += [(name, f"{ring} == {at}", one) for at, one in enumerate(SEVERITIES, 1)]
    assert sorted(rules) == sorted(told)
    promtool = needs.program("promtool", "apt-get install --no-install-recommends prometheus")
    command = [promtool, "check", "rules", str(RULES)]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0


def series(text: str) -> dict[str, str]:
    return dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))


def test_there_are_at_most_50_series_whatever_the_fleets_size(fleet: Fleet, console: str) -> None:
    text = httpx.get(f"{console}/metrics").text
    found = series(text)
    assert len(found) <= 50
    assert "north" not in text
    status = fleet.json("status")
    assert found['edge_ldp_reports_total{what="counted"}'] == str(status["streams"][0]["counted"])
    assert found['edge_ldp_devices{what="enrolled"}'] == str(status["devices"]["enrolled"])
    assert found["edge_ldp_store_up"] == "1"
    many = replace(FINE, streams=FINE.streams * 256)
    assert len(series(metrics_text(many, {}, CONSOLE))) == len(
        series(metrics_text(FINE, {}, CONSOLE))
    )


def test_who_asks_for_openmetrics_gets_it_as_prometheus_itself_reads_it(
    console: str, tmp_path: Path
) -> None:
    wants = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3"
    reply, plain = (
        httpx.get(f"{console}/metrics", headers={"accept": one}) for one in (wants, "text/plain")
    )
    assert reply.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert plain.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert series(reply.text).keys() == series(plain.text).keys()
    promtool = needs.program("promtool", "apt-get install --no-install-recommends prometheus")
    timed = re.sub(r"^(edge_ldp.*)$", r"\1 1700000000", reply.text, flags=re.MULTILINE)
    file = tmp_path / "metrics"
    command = [promtool, "tsdb", "create-blocks-from", "openmetrics", str(file), str(tmp_path)]
    for text, code in ((timed, 0), (timed.replace("# EOF\n", ""), 1)):
        file.write_text(text)
        assert subprocess.run(command, capture_output=True, check=False).returncode == code


def test_the_dashboard_asks_for_metrics_that_there_are() -> None:
    there = {name.partition("{")[0] for name in series(metrics_text(FINE, {}, CONSOLE))}
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
        with httpx.Client(base_url=f"http://{address}/api/v1", timeout=300) as client:
            left = {*asked}
            while left:  # a rate needs two scrapes; the test's own limit ends it
                left = {expr for expr in left if not _has_data(client, expr)}
            rules = client.get("rules").json()["data"]["groups"][0]["rules"]
    finally:
        process.terminate()
        process.wait(300)
    assert len(rules) == RULES.read_text().count("- alert:")
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
