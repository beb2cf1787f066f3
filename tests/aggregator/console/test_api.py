"""The API over HTTP, against a running console: what the commands print, to the bit."""

import csv
import hashlib
import io
import json
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pyarrow.ipc
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aggregator.console.questions import QUESTIONS, parameters
from aggregator.store.opening import open_store
from aggregator.store.rows import BeatRow, BeatTimes
from tests import needs
from tests.aggregator.commands.test_keys import HELPS
from tests.aggregator.console.small_fleet import (
    END_S,
    Fleet,
    add_plans,
    make_fleet,
    send,
    serving,
    status,
)
from tests.processes import children, run_told

ROOT = Path(__file__).parents[3]
SINCE = str(END_S - 86_400)
ASKED: list[tuple[str, list[tuple[str, str]]]] = [
    ("status", []),
    ("completeness", []),
    ("completeness", [("device", "north-0003"), ("incomplete", "true")]),
    ("query", []),
    ("query", [("group", "north"), ("by", "day"), ("quantile", "0.5"), ("quantile", "0.9")]),
    ("query", [("group", "south")]),
    ("query", [("since", SINCE), ("range", "0:500")]),
    ("quantiles", [("quantile", "0.9")]),
    ("sums", []),
    ("ranges", [("range", "0:500"), ("range", "500:1000")]),
    ("load-curve", []),
    ("load-curve", [("by", "day"), ("group", "south")]),
    ("load-curve", [("by", "week"), ("zone", "Europe/Berlin")]),
    ("load-curve", [("since", str(END_S + 10**6))]),
    ("released", []),
    ("theta", [("stream", "power")]),
    ("plan", []),
    ("plan/propose", []),
    ("plan/propose", [("stream", "power")]),
    ("announced", []),
    ("check", []),
    ("devices", [("group", "south"), ("only", "enrolled")]),
    ("device", [("device", "north-0003")]),
    ("device", [("device", "south-0001"), ("zone", "Europe/Berlin")]),
    ("groups", []),
    ("streams", []),
    ("audit", []),
    ("audit", [("since", SINCE)]),
]


def test_every_answer_is_what_the_command_prints(fleet: Fleet, console: str) -> None:
    commands = []
    for name, options in ASKED:
        words = [f"--{key}" if value == "true" else f"--{key}={value}" for key, value in options]
        commands.append(fleet.aggregator(*QUESTIONS[name].words, *words))
    forecast = [("homes", "30,400"), ("window", "every")]
    commands.append(["forecast", "--json", *(f"--{key}={value}" for key, value in forecast)])
    commands.append(["dossier", "-c", str(fleet.file), "--json"])
    expected = fleet.ask(*commands)
    every = zip([*ASKED, ("forecast", forecast), ("dossier", [])], expected, strict=True)
    with httpx.Client(base_url=f"{console}/api/v1", timeout=300) as client:
        for (name, options), (code, printed) in every:
            reply = client.get(name, params=urlencode(options))
            assert (reply.status_code, reply.text) == (200, printed), (name, options)
            assert reply.headers["edge-ldp-exit-code"] == str(code), (name, options)


def test_every_question_was_asked_above() -> None:
    """But for what is a file: the next test has it."""
    files = {"plan/message", "plan/certificate"}
    assert {name for name, _ in ASKED} | {"forecast", "dossier"} | files == set(QUESTIONS)


NOT_ASKED = {  # commands that print JSON, and why the API has no question for them
    "they change the store, or files": {
        *("setup", "renew", "migrate", "backup", "restore", "export"),
        *("streams retire", "streams reinstate", "devices erase", "devices rename"),
        *(f"devices {one}" for one in ("enrol", "revoke", "reinstate", "group", "quarantine")),
        *(f"devices {one}" for one in ("release", "invite", "import", "expire")),
        *(f"plan {one}" for one in ("publish", "repair", "hold", "release")),
    }
}


def test_every_command_that_only_reads_has_a_question() -> None:
    asked = {" ".join(one.words) for one in QUESTIONS.values() if one.program == "aggregator"}
    others = set().union(*NOT_ASKED.values())
    assert set(HELPS) == asked | others
    assert not asked & others


def test_the_plan_and_its_certificate_are_the_files_that_certify_takes(
    fleet: Fleet, console: str, tmp_path: Path
) -> None:
    found = httpx.get(f"{console}/api/v1/plan/message", params={"stream": "power"})
    with closing(sqlite3.connect(fleet.config.store.path or "")) as db:
        rows = db.execute("SELECT payload FROM plans ORDER BY epoch").fetchall()
    assert found.content == rows[-1][0]
    plan, saved = tmp_path / "plan.json", tmp_path / "saved.json"
    plan.write_bytes(found.content)
    certificate = tmp_path / "certificate-power.json"
    certificate.write_bytes(httpx.get(f"{console}/api/v1/plan/certificate").content)
    ((made, _), (checked, text)) = fleet.ask(
        ["certify", "--plan", str(plan), "--save", str(saved)],
        ["certify", "--check", str(certificate)],
    )
    assert (made, checked) == (0, 0), text
    assert saved.read_bytes() == certificate.read_bytes()


def test_without_a_plan_there_is_none_to_keep(tmp_path: Path) -> None:
    with serving(make_fleet(tmp_path)) as (address, _):
        names = ("plan/message", "plan/certificate")
        replies = [httpx.get(f"{address}/api/v1/{name}") for name in names]
    for reply in replies:
        assert reply.status_code == 404
        assert reply.json() == {"error": "power: no plan was issued yet: start the service"}


@pytest.mark.parametrize(
    ("path", "status", "reason"),
    [
        ("query?by=month", 400, "invalid choice"),
        ("query?stream=nothing", 400, "expected one of power"),
        ("query?stream=power&stream=power", 400, "given too often"),
        ("query?config=/etc/passwd", 400, "config: expected one of"),
        ("query?json=1", 400, "json: expected one of"),
        ("query?since=2000000000&until=1900000000", 400, "expected a time after --since"),
        ("query?stream=--help", 400, "expected one of power"),
        ("completeness?incomplete=perhaps", 400, "true or false"),
        ("completeness?device=nobody", 404, "nothing is known of device"),
        ("device?device=nobody", 404, "no device nobody"),
        ("device", 400, "--device"),
        ("theta?format=xml", 400, "json, csv, arrow, parquet"),
        ("dossier?format=csv", 400, "of what has rows"),
        ("dossier?stream=power", 400, "stream: expected one of nothing"),
        ("plan/message?stream=nothing", 400, "expected one of power"),
        ("plan/message?quantile=0.5", 400, "quantile: expected one of stream"),
        ("forecast?values=/etc/passwd:x", 400, "values: expected one of"),
        ("forecast?picture=/tmp/x.png", 400, "picture: expected one of"),
        ("forecast?homes=many", 400, "expected 1 to 20 whole numbers"),
        ("nothing", 404, "expected one of status"),
        ("status/", 404, "expected one of status"),
    ],
)
def test_what_is_not_understood_is_said(console: str, path: str, status: int, reason: str) -> None:
    reply = httpx.get(f"{console}/api/v1/{path}")
    assert reply.status_code == status
    assert reason in reply.json()["error"]


def test_tables_are_the_rows_of_the_answer(console: str) -> None:
    ranges = {"range": ["0:500", "500:1000"]}
    for name, keys, asked in [
        ("load-curve", "hours", {}),
        ("completeness", "devices", {}),
        ("devices", "devices", {}),
        ("quantiles", "quantiles", {"quantile": ["0.9"]}),
        ("ranges", "ranges", ranges),
    ]:
        rows = httpx.get(f"{console}/api/v1/{name}", params=asked).json()[keys]
        reply = httpx.get(f"{console}/api/v1/{name}", params={**asked, "format": "csv"})
        assert reply.headers["edge-ldp-exit-code"] == "0"
        table = list(csv.DictReader(io.StringIO(reply.text)))
        assert len(table) == len(rows) > 0
        for row, line in zip(rows, table, strict=True):
            for key, value in row.items():
                shown = json.dumps(value) if isinstance(value, list) else value
                assert line[key] == ("" if value is None else str(shown))


def test_arrow_and_parquet_have_the_rows_and_the_numbers_to_the_bit(console: str) -> None:
    for name, key, asked in [
        ("load-curve", "hours", {}),
        ("load-curve", "hours", {"group": "south"}),  # withheld: no figure in any row
        ("query", "groups", {"by": "day"}),
        ("quantiles", "quantiles", {}),
        ("quantiles", "quantiles", {"group": "south"}),  # withheld: no row
        ("ranges", "ranges", {"range": "0:500"}),
        ("completeness", "devices", {}),
        ("devices", "devices", {"group": "nobody"}),
    ]:
        printed = httpx.get(f"{console}/api/v1/{name}", params=asked)
        found = printed.json()
        rows = found.get(key, [])
        if name == "query":
            rows = [{"group": "whole", **found["whole"]}, *rows]
        reply = httpx.get(f"{console}/api/v1/{name}", params={**asked, "format": "arrow"})
        if not reply.is_success:
            assert "error" in found
            continue
        code = reply.headers["edge-ldp-exit-code"]
        assert code == printed.headers["edge-ldp-exit-code"]
        assert reply.headers["content-type"] == "application/vnd.apache.arrow.stream"
        table = pyarrow.ipc.open_stream(reply.content).read_all()
        file = httpx.get(f"{console}/api/v1/{name}", params={**asked, "format": "parquet"})
        assert file.headers["content-type"] == "application/vnd.apache.parquet"
        read = pyarrow.parquet.read_table(pyarrow.BufferReader(file.content))
        assert read.equals(table, check_metadata=True)
        for row, line in zip(rows, table.to_pylist(), strict=True):
            for column, value in row.items():
                shown = json.dumps(value) if isinstance(value, list) else value
                if column == "group" and shown is not None:
                    shown = str(shown)
                assert (line[column], type(line[column])) == (shown, type(shown)), (name, column)
        if "mean" in table.column_names:
            assert table.schema.field("mean").type == pyarrow.float64()
            assert json.loads(table.schema.metadata[b"unit"]) == "W"


def test_the_documented_client_returns_a_data_frame_with_intervals(
    fleet: Fleet, console: str
) -> None:
    _, _, part = (ROOT / "docs/console.md").read_text().partition("## A client\n")
    code = part.partition("```python\n")[2].partition("```")[0]
    address = "http://127.0.0.1:8420"
    assert address in code
    found: dict[str, Any] = {}
    exec(code.replace(address, console), found)  # noqa: S102 (our own page's lines)
    curve, day = found["curve"], fleet.json("load-curve", "--by", "day")["days"]
    for name in ("mean", "low", "high"):
        assert curve[name].tolist() == [row[name] for row in day]
    assert [time.timestamp() for time in curve.index] == [row["from_s"] for row in day]
    whole = fleet.json("query", "--no-density")["whole"]
    assert found["whole"] == (whole["mean"], whole["low"], whole["high"])


def test_openapi_names_what_can_be_asked(console: str) -> None:
    found = httpx.get(f"{console}/api/v1/openapi.json").json()
    assert set(found["paths"]) == {f"/api/v1/{name}" for name in QUESTIONS}
    for name, question in QUESTIONS.items():
        path = found["paths"][f"/api/v1/{name}"]["get"]
        told = {one["name"] for one in path["parameters"]}
        assert told == {*parameters(question), *(["format"] if question.rows else [])}
        assert len(path["responses"]["200"]["content"]) == (4 if question.rows else 1)
        assert not told & {"config", "json", "file", "help", "values", "picture"}


SCHEMATHESIS = Path(__file__).parents[3] / ".schemathesis/bin/schemathesis"
TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
VALUES = st.one_of(
    TEXT, st.sampled_from(["power", "day", "1", "-1", "0.5", "1:2", "true", "", "9" * 30])
)


@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.data())
def test_nothing_that_is_asked_ends_in_an_error_of_ours(console: str, data: Any) -> None:
    name = data.draw(
        st.sampled_from(["theta", "load-curve", "completeness", "devices", "released"])
    )
    known = sorted(parameters(QUESTIONS[name]))
    keys = st.one_of(st.sampled_from(known), TEXT) if known else TEXT
    options = data.draw(st.lists(st.tuples(keys, VALUES), max_size=4))
    reply = httpx.get(f"{console}/api/v1/{name}", params=options)
    assert reply.status_code in (200, 400, 404)
    assert reply.headers["content-type"].startswith(("application/json", "text/csv"))


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_schemathesis_finds_nothing_but_values_that_it_cannot_know(fleet: Fleet) -> None:
    """All of its checks but one: that whatever has the right form has an answer.

    A stream that there is not, or a time that is none, is refused with 400, as is documented.
    """
    if not SCHEMATHESIS.exists():
        needs.missing("schemathesis in .schemathesis", "sh tools/install_tools.sh")
    command = [str(SCHEMATHESIS), "run", "--max-examples=25", "--seed=1", "--request-timeout=300"]
    command += ["--generation-deterministic", "--exclude-checks=positive_data_acceptance"]
    with serving(fleet) as (address, _):
        done = run_told([*command, f"{address}/api/v1/openapi.json"], cwd=fleet.file.parent)
        assert done.returncode == 0, done.stdout[-4000:]
        assert f"Tested: {len(QUESTIONS)}" in done.stdout


def test_the_overview_tells_how_old_link_and_reports_are_AGG_27(tmp_path: Path) -> None:
    fleet = make_fleet(tmp_path)
    times = BeatTimes(report_s=END_S - 900, link_s=END_S - 7200)
    with closing(open_store(fleet.config, "test")) as store:
        store.beat(BeatRow("one", END_S, "ok", times))
    with serving(fleet) as (address, _):
        page = " ".join(httpx.get(f"{address}/").text.split())
        (worker,) = httpx.get(f"{address}/api/v1/status").json()["service"]["workers"]
    told = "one: ok, heartbeat 0 s ago, link up for 2 h, last report 15 min ago, no receipt since"
    assert told in page
    assert worker["ages"] == {"report_s": 900, "receipt_s": None, "link_s": 7200, "lost_s": None}


def test_every_age_is_told_alike_and_a_worker_without_a_name_is_the_service(tmp_path: Path) -> None:
    fleet = make_fleet(tmp_path)
    told = status("home-1", health="meter lost", ages={"receipt_s": 7300})
    send(fleet, add_plans(fleet, 1), [told])
    with closing(open_store(fleet.config, "test")) as store:
        store.beat(BeatRow("", END_S, "ok", BeatTimes(report_s=END_S)))
    text = fleet.file.read_text()
    fleet.file.write_text(text.replace(f"origin_s = {END_S}", f"origin_s = {END_S + 40_941}"))
    with serving(fleet) as (address, _):
        page, devices = (
            " ".join(httpx.get(address + path).text.split()) for path in ("/", "/devices")
        )
    assert ">service: does not answer, was ok, heartbeat 11 h ago, last report 11 h ago" in page
    assert ", 11 h ago." in page
    assert "last receipt 2 h before its status." in devices


def test_the_store_is_opened_for_reading_alone_and_stays_as_it_is(tmp_path: Path) -> None:
    fleet = make_fleet(tmp_path)
    add_plans(fleet, 1)
    before = hashlib.sha256((tmp_path / "a.db").read_bytes()).digest()
    with serving(fleet) as (address, process):
        for path in ("/", "/stream", "/devices", "/privacy", "/plans", "/dossier", "/metrics"):
            assert httpx.get(address + path).status_code == 200
        flags = _open_flags(process.pid, str(tmp_path / "a.db"))
    assert flags  # each answering process that was asked has it open
    assert {flag & 0o3 for flag in flags} == {0}  # O_RDONLY
    assert hashlib.sha256((tmp_path / "a.db").read_bytes()).digest() == before


def _open_flags(pid: int, file: str) -> list[int]:
    """Return how a process and those below it have a file open."""
    found = []
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            if str(link.resolve()) == file:
                info = Path(f"/proc/{pid}/fdinfo/{link.name}").read_text().splitlines()
                found += [int(line.split()[1], 8) for line in info if line.startswith("flags")]
    for child in children(pid):
        found += _open_flags(child, file)
    return found
