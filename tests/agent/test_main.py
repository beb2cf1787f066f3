"""The commands as a user meets them: exit codes, one-line errors, and what the service imports."""

import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from agent.claims.batches import pack
from agent.claims.gauges import round_half_up
from agent.claims.pipeline import Claim, Report
from agent.commands.house import rounding
from agent.main import main
from agent.meters.scale import NANO, rounded
from agent.running.health_file import STOPPED, forget_health, note_health, read_health
from agent.state.journal import Journal
from agent.state.plan_journal import StoredPlan
from edge_ldp.protocol.ledger import Ledger, Window, charge, open_ledger
from edge_ldp.ratio import floor_ratio
from tests.agent.config.test_config import BAD, EXAMPLE, GOOD, SECRET
from tests.agent.samples import (
    SLOT_S,
    StillClock,
    begun,
    config_text,
    make_plan,
    numbered,
)
from tests.agent.state.device_bench import Bench
from tests.processes import run_told

Says = Callable[..., str]
EDGE_LDP = (sys.executable, "-m", "edge_ldp.cli")


def command(*args: str | Path, seconds: float = 300) -> subprocess.CompletedProcess[str]:
    return run_told([*EDGE_LDP, "agent", *map(str, args)], timeout=seconds)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "agent.toml"
    file.write_text(config_text(tmp_path / "state.db", window=(8, 97)))
    return file


@pytest.fixture
def says(config: Path, capsys: pytest.CaptureFixture[str]) -> Says:
    """Give what runs a command on the configuration and returns what it prints or complains of."""

    def run(*words: str, code: int = 0) -> str:
        assert main([words[0], "-c", str(config), *words[1:]]) == code
        heard = capsys.readouterr()
        return heard.err if code else heard.out

    return run


def test_check_says_in_words_what_a_configuration_means(says: Says) -> None:
    shown = says("check")
    assert "8 in any 97 slots" in shown
    assert re.search(r"epsilon_per_window +7\.99", shown)
    assert re.search(r"epsilon_per_day +7\.17", shown)
    assert "without TLS" in shown
    facts = json.loads(says("check", "--json"))
    assert (facts["device"], facts["streams"]) == ("street/home-7", "power")
    assert facts["epsilon_per_report"] == pytest.approx(1, abs=1e-4)
    assert main(["check", "-c", str(EXAMPLE)]) == 0


@pytest.mark.parametrize("name", ["check", "explain"])
def test_check_and_explain_say_how_reports_are_counted_and_when_they_end(
    config: Path, tmp_path: Path, says: Says, name: str
) -> None:
    """AGT-22, AGT-23 and AGT-27 in the words of a household."""
    Journal(tmp_path / "state.db").close()
    shown = " ".join(says(name).split())
    assert "counted from 1970 (UTC); another length begins a new window" in shown
    assert "at most 8 reports in 97 slots of elapsed time, too, whatever the clock says" in shown
    assert "lifetime" not in shown
    config.write_text(config.read_text() + "[policy.lifetime]\nreports = 9000\nepsilon = 2000\n")
    shown = " ".join(says(name).split())
    assert re.search("lifetime:? 9,000 reports or ε = 2000, then silence", shown)


def test_one_of_a_kind_takes_no_s(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "agent.toml"
    plans, ends = "days = 1\nreports = 1\nrange_days = 2", "[policy.lifetime]\nreports = 1\n"
    file.write_text(config_text(tmp_path / "state.db", window=(1, 1), plans=plans) + ends)
    assert main(["check", "-c", str(file)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "after 1 day and 1 report, θ after 2 days" in shown
    assert "1 in any 1 slot " in shown
    assert "1 report in 1 slot of elapsed time" in shown
    assert "1 report, then silence" in shown


READERS = ("run", "status", "ledger", "explain")  # of the file that `check` reads, too


@pytest.mark.parametrize(
    ("row", "name"),
    [
        *((row, "check") for row in BAD),
        *((BAD[0], name) for name in READERS),
        *(pytest.param(row, name, marks=pytest.mark.slow) for row in BAD[1:] for name in READERS),
    ],
)
def test_a_bad_file_exits_with_2_and_one_line_AGT_12(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], row: tuple[str, str, str, str], name: str
) -> None:
    old, new, key, expected = row
    file = tmp_path / "agent.toml"
    file.write_text(GOOD.replace(old, new, 1))
    assert main([name, "-c", str(file)]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(f"edge-ldp agent: {file}: {key}: expected ")
    assert expected in shown.err
    _, *others = shown.err.splitlines()
    assert all(line.startswith(f"{file}: ") and ": expected " in line for line in others)
    assert SECRET not in shown.err


@pytest.mark.parametrize(
    "args", [[], ["fly"], ["check"], ["check", "-c"], ["read"], ["run", "--loud"]]
)
def test_wrong_usage_exits_with_2(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(args)
    assert ended.value.code == 2
    assert "usage: edge-ldp agent" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("tls = true\nca_file = ", "broker.ca_file: expected a file that can be used"),
        ('username = "me"\npassword_file = ', "chmod 600"),
    ],
)
def test_check_and_run_refuse_a_file_that_is_none_or_that_others_may_read_AGT_12(
    config: Path, tmp_path: Path, says: Says, lines: str, said: str
) -> None:
    file = tmp_path / "file"
    file.write_text(SECRET)
    file.chmod(0o644)
    text = config.read_text()
    config.write_text(text.replace("[broker]\n", f'[broker]\n{lines}"{file}"\n'))
    for name in ("check", "run"):
        shown = says(name, code=2)
        assert said in shown
        assert SECRET not in shown
    config.write_text(text.replace("[broker]\n", f'[broker]\n{lines}"credential:it"\n'))
    says("check")


def test_status_of_a_stopped_device_is_shown(tmp_path: Path, says: Says) -> None:
    Journal(tmp_path / "state.db").close()
    facts = shown_ledger(says)
    assert (facts["state"], facts["total"]["reports"], facts["ratios"]) == ("none", 0, [])
    told = json.loads(says("status", "--json"))
    assert told.pop("reporting").startswith("no ledger yet")
    assert told == {
        "health": "stopped",
        "telegram_s_ago": None,
        "commit_s_ago": None,
        "link_s_ago": None,
        "receipt_s_ago": None,
        "streams": [],
        "waiting_reports": 0,
        "batches_kept": 0,
        "given_up_for_size": 0,
        "reports_ever": 0,
        "epsilon_spent": 0.0,
        "plans": {"power": None},
    }
    shown = says("status")
    assert "reports_ever" in shown
    assert "plan of power           none yet, so nothing is reported" in shown


def test_what_rounding_adds_to_a_day_is_said_and_is_the_most_that_it_adds(says: Says) -> None:
    """All pairs of readings in tenths: a slot's mean, and a register's rise, whole and exact."""
    tenths = range(40)
    whole = [rounded(tenth * NANO // 10) for tenth in tenths]
    pairs = list(product(tenths, repeat=2))
    means = [abs(Fraction(a + b, 20) - round_half_up(whole[a] + whole[b], 2)) for a, b in pairs]
    rises = [abs(Fraction(b - a, 10) - (whole[b] - whole[a])) for a, b in pairs]
    assert max(means) == 1  # W, of each hour of a day
    assert Fraction(4, 5) < max(rises) <= 1  # Wh, of a day: its slots' rises add up to one
    told = rounding(["W", "Wh"])
    assert "a day without gaps is wrong by at most 24 Wh" in told["W"]["rounding"]
    assert "a day without gaps is wrong by at most 1 Wh" in told["Wh"]["rounding"]
    shown = says("check")
    assert "to whole W: a day without gaps is wrong by at most 24 Wh, before any noise" in shown


def test_a_strict_status_fails_unless_an_agent_runs_and_is_well(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The health file names the process that runs: this one, here."""
    strict = ["status", "-c", str(config), "--strict"]
    state = tmp_path / "state.db"
    with closing(Journal(state)):
        assert main(strict) == 4
        for health, code in (("ok", 0), ("degraded: stale", 4)):
            note_health(state, health)
            assert main(strict) == code
            assert f"health                  {health}\n" in capsys.readouterr().out
        forget_health(state)
    assert main(strict) == 4


def test_status_shows_each_streams_plan_and_what_was_made(
    config: Path, tmp_path: Path, says: Says
) -> None:
    plan = make_plan(3)
    with closing(Journal(tmp_path / "state.db")) as journal:
        journal.save_plan(StoredPlan("power", plan.epoch, plan.to_json()))
    assert "plan of power           epoch 3, θ 1000 W\n" in says("status")
    found = json.loads(says("status", "--json"))["plans"]
    in_force = {"epoch": 3, "theta": 1000, "unit": "W", "issued_s": plan.issued_s}
    assert found == {"power": {**in_force, "refused": None}}
    allowed = config.read_text()
    config.write_text(allowed.replace("[policy]\n", "[policy]\nepsilon = 0.5\n"))
    shown = says("status")
    assert "epoch 3, θ 1000 W; refused: ratio, e^" in shown
    assert "(the plan asks ε 1, this home allows 0.5); so nothing is reported\n" in shown
    config.write_text(allowed)
    with closing(Journal(tmp_path / "state.db")) as journal:
        journal.save_plan(StoredPlan("power", 4, b"{}"))
    assert "none yet" in says("status")


# explain


def test_a_house_is_told_what_left_it_and_what_waits(tmp_path: Path, says: Says) -> None:
    plan = make_plan(3)
    now_slot = int(time.time()) // SLOT_S
    ledger = replace(open_ledger(WINDOW, now_slot - 400, lambda n: n // 2), silent_until=0)
    reports = tuple(Report(plan.stream_id, now_slot - 3 + at, plan.epoch, at) for at in range(3))
    charged = charge(ledger, now_slot - 1, now_slot * SLOT_S // 86_400, [E1] * 3)
    with closing(Journal(tmp_path / "state.db")) as journal:
        journal.save_plan(StoredPlan("power", plan.epoch, plan.to_json()))
        journal.commit(
            Claim(charged, reports[:2]),
            pack(reports[:2], numbered(plan.stream_id)),
            begun(plan.stream_id),
        )
        journal.commit(Claim(charged, reports[2:]), [])
    shown = says("explain")
    assert "power: 3 made, 0 arrived, 2 sent (no receipt yet), 1 waiting here, 0" in shown
    assert shown.count("read alone:") == 3
    assert shown.count("not sent yet") == 1
    assert [row["code"] for row in json.loads(says("explain", "--json"))["kept"]] == [0, 1, 2]


# ledger


WINDOW = Window(8, 97, 1)
E1, E2 = floor_ratio(1), floor_ratio(2)


def spent_ledger(days_ago: int = 0) -> Ledger:
    """Return a ledger of 30 reports at ε 1 and one at ε 2, the last three made today."""
    now_slot = int(time.time()) // SLOT_S - 96 * days_ago
    held = replace(open_ledger(WINDOW, now_slot - 400, lambda n: n // 2), silent_until=0)
    day = now_slot * SLOT_S // 86_400
    held = charge(held, now_slot - 300, day - 4, [E2])
    for slot in range(now_slot - 130, now_slot - 103):
        held = charge(held, slot, day - 1, [E1])
    for slot in range(now_slot - 3, now_slot):
        held = charge(held, slot, day, [E1])
    return held


def files_in(directory: Path) -> dict[str, tuple[bytes, int]]:
    """Return each file's bytes and time of writing, but for the scratch file of readers."""
    return {
        path.name: (
            b"" if path.name.endswith("-shm") else path.read_bytes(),
            path.stat().st_mtime_ns,
        )
        for path in directory.iterdir()
    }


def shown_ledger(says: Says) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(says("ledger", "--json"))
    return found


def test_the_ledger_of_a_stopped_device_is_shown_and_nothing_is_touched_PRV_11(
    config: Path, tmp_path: Path, says: Says, capsys: pytest.CaptureFixture[str]
) -> None:
    journal = Journal(tmp_path / "state.db")
    journal.save_ledger(spent_ledger())
    journal.close()
    before = files_in(tmp_path)
    facts = shown_ledger(says)
    assert facts["total"] == {
        "reports": 31,
        "epsilon": pytest.approx(30 * E1.epsilon + E2.epsilon, abs=1e-6),
    }
    assert facts["today"]["reports"] == 3
    assert facts["state"] == "reporting"
    assert main(["ledger", "-c", str(config)]) == 0
    text = capsys.readouterr().out
    assert "31 reports, ε 32.00" in text
    assert "In plain words" in text
    shown = says("status")
    assert "health                  stopped\n" in shown
    assert "reporting               not while the agent is stopped\n" in shown
    assert files_in(tmp_path) == before


def test_the_ledger_is_shown_beside_a_running_agent_which_goes_on_AGT_14(
    tmp_path: Path, says: Says
) -> None:
    journal = Journal(tmp_path / "state.db")
    held = spent_ledger()
    journal.save_ledger(held)
    before = files_in(tmp_path)
    assert shown_ledger(says)["total"]["reports"] == 31
    assert files_in(tmp_path) == before
    journal.save_ledger(charge(held, held.floor + 1, held.day, [E1]))
    assert shown_ledger(says)["total"]["reports"] == 32


def test_the_ledger_of_a_device_that_never_ran_says_so_and_creates_nothing(
    config: Path, tmp_path: Path, says: Says
) -> None:
    assert f"{tmp_path / 'state.db'}: there is no state" in says("status", code=4)
    said = says("ledger", code=4)
    assert f"{tmp_path / 'state.db'}: there is no state, so nothing is known of what was" in said
    assert "nothing was spent" not in said
    assert "no agent ran with it yet, or it was deleted; the agent begins with a silence" in said
    assert said.count("\n") == 1
    assert list(tmp_path.iterdir()) == [config]


@pytest.mark.parametrize("damage", ["junk", "empty", "directory", "other version"])
def test_a_state_that_cannot_be_read_exits_with_4_and_one_line(
    tmp_path: Path, says: Says, damage: str
) -> None:
    state = tmp_path / "state.db"
    if damage == "directory":
        state.mkdir()
    elif damage == "other version":
        with closing(sqlite3.connect(state)) as db:
            db.execute("PRAGMA user_version = 99")
    else:
        state.write_bytes(b"x" * 5000 if damage == "junk" else b"")
    before = files_in(tmp_path) if damage != "directory" else {}
    said = says("ledger", code=4)
    assert said.startswith(f"edge-ldp agent: {state}: ")
    assert said.count("\n") == 1
    assert not before or files_in(tmp_path) == before


def test_a_damaged_ledger_is_not_shown_as_nothing_spent(tmp_path: Path, says: Says) -> None:
    journal = Journal(tmp_path / "state.db")
    journal.save_ledger(spent_ledger())
    with journal.reading() as db:
        db.execute("UPDATE ledger SET value = x'7b7d'")
    journal.close()
    for command in ("ledger", "status"):
        assert "nothing is known of what was spent until now" in says(command, code=4)


# randomness


SPOILT = """
import os, sys
def broken(size):
    raise OSError("no entropy")
os.urandom = {"constant": lambda size: bytes(size), "broken": broken}[sys.argv.pop(1)]
from edge_ldp.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.integration
def test_on_a_source_that_repeats_itself_the_agent_stops_with_4_and_says_so_AGT_11(
    config: Path, tmp_path: Path
) -> None:
    config.write_text(config.read_text().replace("/dev/null", str(tmp_path / "no-meter")))
    journal = Journal(tmp_path / "state.db")
    held = spent_ledger()
    journal.save_ledger(replace(held, window=Window(1, 2, 1), cells=(0,)))  # so it must be redrawn
    journal.close()
    done = run_told([sys.executable, "-c", SPOILT, "constant", "agent", "run", "-c", config])
    assert done.returncode == 4
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("edge-ldp agent: ")]
    assert "the source of randomness repeats itself" in line
    assert "Traceback" not in done.stderr
    journal = Journal(tmp_path / "state.db")
    assert journal.ledger() == replace(held, window=Window(1, 2, 1), cells=(0,))
    assert journal.waiting() == []
    assert journal.keys() == []


@pytest.mark.integration
def test_without_randomness_the_agent_waits_and_says_so_once_AGT_11(
    config: Path, tmp_path: Path
) -> None:
    config.write_text(config.read_text().replace("/dev/null", str(tmp_path / "no-meter")))
    log = tmp_path / "agent.log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-c", SPOILT, "broken", "agent", "run", "-c", config], stderr=file
        )
    wait_for(tmp_path / "state.db")
    deadline = time.monotonic() + 60
    while "no randomness" not in log.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(2)  # it reaches for a broker that is not there, again and again
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert process.wait(300) == 0
    assert log.read_text().count("no randomness") == 1
    journal = Journal(tmp_path / "state.db")
    assert journal.ledger() is None


@pytest.mark.integration
@pytest.mark.parametrize("kind", ["file", "directory", "state.db"])
def test_run_on_a_port_or_state_that_is_none_exits_with_4_and_one_line_SER_23(
    config: Path, tmp_path: Path, kind: str
) -> None:
    path = tmp_path / kind
    if kind == "file":
        path.write_text("")
    else:
        path.mkdir()
    if kind != "state.db":
        config.write_text(config.read_text().replace("/dev/null", str(path)))
    done = command("run", "-c", config)
    assert done.returncode == 4
    assert f"edge-ldp agent: {path}: " in done.stderr
    assert "Traceback" not in done.stderr


def wait_for(state: Path) -> None:
    """Return once an agent serves with the state file: it minds signals and tells how it is."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        time.sleep(0.05)
        if read_health(state) != STOPPED:
            return
    pytest.fail("the agent did not start")


@pytest.fixture
def deaf() -> Iterator[int]:
    """Give a port where connecting hangs: its queue of callers is full."""
    with socket.socket() as sock, socket.socket() as one, socket.socket() as two:
        sock.bind(("127.0.0.1", 0))
        sock.listen(0)
        for caller in (one, two):
            caller.setblocking(False)
            caller.connect_ex(sock.getsockname())
        yield sock.getsockname()[1]


# who waited for the end of connecting would wait for ten minutes
CONNECTING = """
from dataclasses import replace
from agent.link import uplink
from edge_ldp.cli import main

broker = uplink._broker
uplink._broker = lambda *told: replace(broker(*told), connect_timeout_s=600.0)
raise SystemExit(main())
"""


@pytest.mark.integration
def test_a_signal_ends_it_within_5_s_also_while_it_connects_to_a_deaf_host_AGT_04(
    config: Path, tmp_path: Path, deaf: int
) -> None:
    text = config.read_text().replace("/dev/null", str(tmp_path / "no-meter"))
    config.write_text(text.replace("port = 1883", f"port = {deaf}"))
    process = subprocess.Popen(
        [sys.executable, "-c", CONNECTING, "agent", "run", "-c", config], stderr=subprocess.PIPE
    )
    wait_for(tmp_path / "state.db")
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=240)[1].decode()
    assert process.returncode == 0
    assert "Traceback" not in said


@pytest.mark.integration
def test_a_damaged_state_is_said_and_a_hangup_is_ignored_AGT_04_AGT_07(
    config: Path, tmp_path: Path
) -> None:
    (tmp_path / "state.db").write_bytes(b"x" * 5000)
    config.write_text(config.read_text().replace("/dev/null", str(tmp_path / "no-meter")))
    process = subprocess.Popen([*EDGE_LDP, "agent", "run", "-c", config], stderr=subprocess.PIPE)
    wait_for(tmp_path / "state.db")
    process.send_signal(signal.SIGHUP)
    time.sleep(0.3)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=240)[1].decode()
    assert process.returncode == 0
    assert f"damaged state set aside as {tmp_path / 'state.db.damaged-1'}" in said
    assert (tmp_path / "state.db.damaged-1").read_bytes() == b"x" * 5000


def test_the_service_imports_no_numpy_and_nothing_of_the_other_commands() -> None:
    script = (
        "import sys, agent.main\n"
        "try: agent.main.main(['run', '-c', 'none'])\n"
        "finally: print(*sorted(sys.modules))"
    )
    done = run_told([sys.executable, "-c", script], check=True)
    loaded = set(done.stdout.split())
    assert "agent.state.journal" in loaded
    assert not loaded & {"numpy", "scipy", "serial.tools.list_ports", "rich"}
    assert not [name for name in loaded if name.startswith(("agent.commands", "studies"))]


def listen(ear: socket.socket, heard: list[str]) -> None:
    while heard[-1] != "STOPPING=1":
        heard.append(ear.recv(4096).decode())


def test_the_manager_hears_when_the_agent_is_ready_how_it_is_and_when_it_stops(
    tmp_path: Path,
) -> None:
    config = tmp_path / "agent.toml"
    config.write_text(config_text(tmp_path / "state.db", port=tmp_path / "unplugged"))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear:
        ear.bind(str(tmp_path / "notify"))
        ear.settimeout(300)
        heard: list[str] = []
        process = subprocess.Popen(
            [*EDGE_LDP, "agent", "run", "-c", config],
            stderr=subprocess.DEVNULL,
            env={
                **os.environ,
                "NOTIFY_SOCKET": str(tmp_path / "notify"),
                "WATCHDOG_USEC": "4000000",
            },
        )
        try:
            while "WATCHDOG=1" not in heard or not any("port gone" in line for line in heard):
                heard.append(ear.recv(4096).decode())
            # a socket that is full, as nobody reads it meanwhile, would drop the last word
            listening = Thread(target=listen, args=(ear, heard))
            listening.start()
            shown = command("status", "-c", config)
            process.terminate()
            listening.join(300)
        finally:
            process.kill()
            process.wait(300)
    assert (heard[0], heard[-1]) == ("READY=1", "STOPPING=1")
    assert "degraded: link down, port gone" in shown.stdout
    assert "stopped" in command("status", "-c", config).stdout


def test_a_silence_after_a_wrong_clock_shows_in_status_ledger_and_check_AGT_23(
    tmp_path: Path, says: Says
) -> None:
    """The state's clock was in 2060 for one slot; every command reads today's."""
    Bench(tmp_path / "s.db", clock=StillClock(2_840_400_000)).journal.close()
    config = tmp_path / "agent.toml"
    config.write_text(config_text(tmp_path / "s.db"))
    for command, words in (
        ("status", "silent_because          the clock had been ahead"),
        ("ledger", "UTC: the clock had been ahead"),
        ("check", "silent_because          the clock had been ahead"),
    ):
        assert words in says(command)


def test_a_plan_that_asks_more_than_the_owner_allows_is_told_by_check_status_and_health_PLN_20(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "agent.toml"
    file.write_text(config_text(tmp_path / "s.db", policy="epsilon = 0.5"))
    bench = Bench(tmp_path / "s.db", policy="epsilon = 0.5")
    assert bench.device.accept_plan("power", make_plan().to_json()) == "ratio"
    assert bench.device.health == "degraded: no plan that this home allows (power)"
    bench.journal.close()
    for verb, text in (("check", "plan of power           refused"), ("status", "none: refused")):
        assert main([verb, "-c", str(file)]) == 0
        shown = capsys.readouterr().out
        assert text in shown
        assert "so nothing is reported: ratio, e^" in shown
