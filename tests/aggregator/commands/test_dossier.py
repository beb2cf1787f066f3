"""The dossier: every number in it computed again, another way."""

import json
import re
import sys
from copy import deepcopy
from fractions import Fraction
from math import exp, log
from pathlib import Path
from typing import Any

import pytest
from msgspec import convert

from aggregator.answers.dossier import DossierAnswer, dossier_text
from aggregator.commands.dossier import main
from aggregator.plans.keys import make_key
from edge_ldp.mechanisms import Mechanism, from_plan
from edge_ldp.version import __version__
from tests.aggregator.console.small_fleet import add_plans, add_reports, make_fleet
from tests.processes import run_told

PLAIN = {"archive": False, "tls": False, "signed_plans": False, "console_tokens": False}
ROOT = Path(__file__).parents[3]
NUMBER = r"\d[\d.,]*\d|\d"
# the command where the packages of the extra `console` cannot be imported
WITHOUT_CONSOLE = """
import sys
for name in ("jinja2", "starlette", "uvicorn"):
    sys.modules[name] = None
from edge_ldp.cli import main
code = main(["dossier", "-c", sys.argv[1]])
assert not [name for name in sys.modules if name.startswith("aggregator.console")]
sys.exit(code)
"""


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Give the dossier's JSON of a fleet as it begins."""
    fleet = make_fleet(tmp_path_factory.mktemp("plain"))
    view: dict[str, Any] = json.loads(fleet.ask(["dossier", "-c", str(fleet.file), "--json"])[0][1])
    return view


def test_its_numbers_are_those_of_the_plans_integers(tmp_path: Path) -> None:
    fleet = make_fleet(tmp_path)
    issued = add_plans(fleet, 1)
    add_reports(fleet, issued, {"north": 3}, 1, slots=2)
    message = json.loads(issued.to_json())
    file = tmp_path / "plan.json"
    file.write_bytes(issued.to_json())
    (_, printed), (_, proof), (_, text) = fleet.ask(
        ["dossier", "-c", str(fleet.file), "--json"],
        ["certify", "--plan", str(file), "--json"],
        ["dossier", "-c", str(fleet.file)],
    )
    view, proved = json.loads(printed), json.loads(proof)
    ratio = Fraction(0)
    stream, survey = (from_plan(message[f"{name}_mechanism"]) for name in ("stream", "survey"))
    for mechanism in (stream, survey):
        laws = [mechanism.probabilities(value) for value in (0, 1, 137, mechanism.high)]
        for column in zip(*laws, strict=True):
            ratio = max(ratio, max(column) / min(column))
    assert ratio <= Fraction(exp(1))
    a_day = 96 * 8 / 107  # slots of a quarter of an hour; 8 reports in any 97, a period of 107
    plan = {
        "epoch": message["epoch"],
        "holds": proved["holds"],
        "digest": proved["digest"],
        "ratio": f"{ratio.numerator}/{ratio.denominator}",  # the ends are among those values
        "epsilon": pytest.approx(log(ratio), rel=1e-12),
        "guess": pytest.approx(float(ratio / (ratio + 1)), rel=1e-12),
        "failed": [],
        "mechanisms": [message[f"{name}_mechanism"]["mechanism"] for name in ("stream", "survey")],
        "codes": len(stream.probabilities(0)) + len(survey.probabilities(0)),
        **_reach(stream),
    }
    told = {
        "stream": "power",
        "unit": "W",
        "low": 0,
        "ceiling": 5000,
        "slot_seconds": 900,
        "home_sums": None,
        "asked": "1",
        "epsilon": {
            "report": 1,
            "slots_a_day": 96,
            "default_window": {"reports": 8, "slots": 97, "period": 107},
            "window": 8,
            "day": pytest.approx(a_day),
            "year": pytest.approx(365 * a_day),
            "every_slot": 96,
        },
        "epsilon_changes": [],
        "plan": plan,
    }
    (found,) = view["streams"]
    assert found == told
    devices = len(fleet.json("devices", "list")["devices"])
    assert view == {
        "fleet": "demo",
        "version": __version__,
        "devices": devices,
        "streams": [told],
        "retention": {
            **dict.fromkeys(("bucket_days", "hour_days", "day_days")),
            "resend_days": 35,
            "archive": False,
        },
        "access": {
            "least_devices": 10,
            "enrolment": "open",
            "quarantine": "off",
            "tls": False,
            "signed_plans": False,
            "console_tokens": False,
        },
        "curated": 0,
        "summed": 0,
        "attacker": view["attacker"],  # the next test has it
    }
    bound, moved = plan["ratio"], plan["shift_per_percent"].expected
    shown = [
        *(f"{devices:,} devices", f"edge-ldp {__version__}", "every 900 s, 0 to 5,000 W"),
        "ε 1 a report. With the window that ships (8 reports in any 97 slots): ε 8 in any window,",
        f"{a_day:.2f} a day, {365 * a_day:,.0f} a year. Every slot, where an owner allows it: 96 a",
        f"plan {message['epoch']} in force; every claim of its certificate holds",
        (
            f"more than {bound} times likelier under one value than under another, ε ="
            f" {log(ratio):.6f}. Certificate {proved['digest']}."
        ),
        f"at most {100 * float(ratio / (ratio + 1)):.1f} % of cases (50 % without it)",
        f"moves a mean by at most {moved:,.1f} W",
        *("again for 35 days", "fewer than 10 devices"),
        f"The total of a year, {365 * a_day:,.0f} with",
        *("NIST SP 800-226, part by part", "March 2025", "Western Power Distribution, 2018"),
        "ε of a report: power 1;",
        f"Mechanisms: {', '.join(sorted(plan['mechanisms']))}: tables",
    ]
    heads = [line for line in text.splitlines() if line.startswith("#")]
    assert len(heads) == 9
    assert "{" not in text
    assert [one for one in shown if one not in text] == []
    assert "at most 3,000 W, errs about it (root mean square in simulation" in text
    # and no number is in it but these and the attacker's
    known = {*re.findall(NUMBER, " ".join(shown + _attackers(view["attacker"])))}
    assert {*re.findall(NUMBER, text)} - known == set()


def _attackers(found: dict[str, Any]) -> list[str]:
    """Return what the dossier tells of the attacker's numbers; the next test compares these."""
    told = [f"{one['error_w']:g} W after {one['days']:,} day" for one in found["errors"]]
    told += [one["load"] for one in found["errors"]]
    ceiling = f"{found['ceiling']:,}"
    return [
        *told,
        ceiling,
        f"{found['reports_a_day']} a day",
        "base load is at most 3,000 W, errs about it",
    ]


def _reach(mechanism: Mechanism) -> dict[str, Any]:
    """Return how far one report, and each per cent of them, moves a mean: over every code."""
    low, high = mechanism.low, mechanism.high
    decoded = [mechanism.decode_exact(code) for code in range(mechanism.code_count)]
    for value in (
        low,
        high,
    ):  # honest ones are right on average, so the decoder is the one there is
        law = mechanism.probabilities(value)
        assert sum(p * y for p, y in zip(law, decoded, strict=True)) == value
    sent = [
        y
        for at, y in enumerate(decoded)
        if any(mechanism.probabilities(v)[at] for v in (low, high))
    ]
    furthest = max(abs(2 * (y - low) / (high - low) - 1) for y in sent)
    # a liar at one end in the place of an honest device at the other
    moved = max(max(sent) - low, high - min(sent)) / 100
    return {
        "influence": pytest.approx(float(furthest), rel=1e-12),
        "shift_per_percent": pytest.approx(float(moved), rel=1e-12),
    }


def test_what_is_configured_stands_in_it(tmp_path: Path) -> None:
    kept = "[retention]\nbucket_days = 40\nhour_days = 400\nday_days = 4000\n"
    fleet = make_fleet(tmp_path, least=7, console=f"{kept}[intake]\nresend_window_s = 216000")
    (_, printed), (_, text) = fleet.ask(
        ["dossier", "-c", str(fleet.file), "--json"], ["dossier", "-c", str(fleet.file)]
    )
    view = json.loads(printed)
    assert view["retention"] == {
        "bucket_days": 40,
        "hour_days": 400,
        "day_days": 4000,
        "resend_days": 2.5,
        "archive": False,
    }
    assert view["access"]["least_devices"] == 7
    for shown in (
        "by time bucket 40 days, by hour 400 days, by day 4,000 days",
        *("again for 2.5 days", "fewer than 7 devices", "0 devices"),
    ):
        assert shown in text


def test_gas_of_which_homes_give_sums_alone_is_promised_no_report(tmp_path: Path) -> None:
    fleet = make_fleet(tmp_path, units="W dm3")
    text = fleet.file.read_text()
    fleet.file.write_text(text.replace('"dm3"', '"dm3"\nhome_sums = { share = 0.125, days = 7 }'))
    (_, printed), (_, text) = fleet.ask(
        ["dossier", "-c", str(fleet.file), "--json"], ["dossier", "-c", str(fleet.file)]
    )
    view = json.loads(printed)
    power, gas = view["streams"]
    assert (gas["epsilon"], gas["plan"]) == (None, None)
    assert (gas["home_sums"]["days"], gas["home_sums"]["share"]) == (7, "0.125")
    assert power["epsilon"]["report"] == 1
    assert "power1" not in view["attacker"]["unlike"]
    told = [line for line in text.splitlines() if line.startswith("- power1: ")]
    assert len(told) == 3
    assert "summed on the device and given noise there before a sum is stored" in told[0]
    assert "asked for their sums of 7 days, at 0.125 of a window's ε; each home's owner" in told[1]
    assert told[2].endswith("no device that is invited reports a single value of it.")
    alone = deepcopy(view) | {"streams": [gas]}
    text = dossier_text(convert(alone, DossierAnswer))
    assert "The total of a year" not in text
    assert "of no report" in text


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("archive", True, "Every counted report is archived."),
        ("archive", False, "No single report is archived."),
        ("tls", True, "The link to the broker is encrypted; plans"),
        ("tls", False, "The link to the broker is NOT encrypted; plans"),
        ("signed_plans", True, "plans are signed; the"),
        ("signed_plans", False, "plans are NOT signed; the"),
        ("console_tokens", True, "the console asks for a token."),
        ("console_tokens", False, "the console asks no token, on this machine alone."),
        ("least_devices", 1, "[query] min_devices is 1."),
        ("quarantine", "marked", "Quarantine of marked devices: marked."),
        ("enrolment", "listed", "Who may report: listed."),
        ("enrolment", "store", "Who may report: store."),
        ("curated", 1234, "1,234 devices publish a stream of their own under central privacy."),
        ("summed", 1234, "1,234 series are of homes' own sums of whole periods, given noise"),
    ],
)
def test_every_sentence_that_depends_is_said_so_and_otherwise_not(
    key: str, value: object, said: str, plain: dict[str, Any]
) -> None:
    """The rest of the dossier stays as it is, and so it is where nothing of the kind is."""
    view = deepcopy(plain)
    at = next((part for part in (view["access"], view["retention"]) if key in part), view)
    at[key] = value
    text = dossier_text(convert(view, DossierAnswer))
    assert said in text
    changed = {*text.splitlines()} ^ {*dossier_text(convert(plain, DossierAnswer)).splitlines()}
    assert len(changed) == (0 if value == PLAIN.get(key) else 1 if key in view else 2)


def test_what_is_configured_beside_the_defaults_is_said(tmp_path: Path) -> None:
    key, archive = tmp_path / "plan.key", tmp_path / "archive"
    make_key(key)
    more = f"""tokens_file = "{tmp_path / "tokens"}"
[plans]
signing_key_file = "{key}"
[archive]
path = "{archive}"
[intake]
enrolment = ["home-1"]
[guard]
quarantine = "marked"
"""
    fleet = make_fleet(tmp_path, console=more)
    text = fleet.file.read_text()
    fleet.file.write_text(text.replace("[broker]", "[broker]\ntls = true"))
    (_, printed), (_, text) = fleet.ask(
        ["dossier", "-c", str(fleet.file), "--json"], ["dossier", "-c", str(fleet.file)]
    )
    view = json.loads(printed)
    assert view["retention"]["archive"]
    assert view["access"] == {
        "least_devices": 10,
        "enrolment": "listed",
        "quarantine": "marked",
        "tls": True,
        "signed_plans": True,
        "console_tokens": True,
    }
    link = "The link to the broker is encrypted; plans are signed; the console asks for a token."
    for said in (link, "Every counted report is archived.", "Who may report: listed."):
        assert said in text


def test_the_attackers_errors_are_those_of_the_study_PLN_14(tmp_path: Path) -> None:
    """A slow test of tests/studies/prying computes the study's table again."""
    table = (ROOT / "docs/results/prying.md").read_text()
    fleet = make_fleet(tmp_path)
    (_, printed), (_, text) = fleet.ask(
        ["dossier", "-c", str(fleet.file), "--json"], ["dossier", "-c", str(fleet.file)]
    )
    found = json.loads(printed)["attacker"]
    assert "ε = 1, 8 reports a day" in table
    assert (found["epsilon"], found["reports_a_day"], found["ceiling"]) == (1, 8, 43_470)
    for one in found["errors"]:
        row = f"| {one['load']} | {one['days']:,} | {one['reports']:,} |"
        (line,) = (line for line in table.splitlines() if line.startswith(row))
        assert f" {one['error_w']:,.1f} W | {one['honest_w']:,.1f} W |" in line
        assert f"{one['error_w']:g} W after {one['days']:,} day" in text
    assert found["unlike"] == ["power"]  # whose values end at 5,000 W


def test_without_a_plan_or_a_store_it_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet = make_fleet(tmp_path)
    assert main(["-c", str(fleet.file)]) == 0
    assert "no plan was issued yet" in capsys.readouterr().out
    (tmp_path / "a.db").unlink()
    assert main(["-c", str(fleet.file)]) == 4
    assert "does not exist" in capsys.readouterr().err
    assert main(["-c", str(tmp_path / "none.toml")]) == 2


def test_it_is_written_without_the_packages_of_the_console(tmp_path: Path) -> None:
    fleet = make_fleet(tmp_path)
    command = [sys.executable, "-c", WITHOUT_CONSOLE, str(fleet.file)]
    done = run_told(command)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("# Privacy dossier of the fleet demo")
