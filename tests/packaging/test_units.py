"""The systemd units, by systemd's own tools: exposure, meaning, and what they must not loosen."""

import re
import subprocess
import sys
from configparser import RawConfigParser
from pathlib import Path

import pytest

from aggregator.commands.common import EXIT_RIVAL
from tests import needs
from tests.processes import run_told

ROOT = Path(__file__).parents[2]
DROP_INS = [ROOT / f"config/systemd/edge-ldp-agent-{of}.conf" for of in ("share", "page")]
UNITS = sorted((ROOT / "config" / "systemd").glob("*.service"))
NAMES = [unit.stem for unit in UNITS]
STAYING = UNITS[:3]  # what runs for ever; compaction and export end by themselves
THRESHOLD = "20"  # exposure 2.0


def analyze(*args: str) -> subprocess.CompletedProcess[str]:
    return run_told([needs.program("systemd-analyze"), *args])


def lines_of(unit: Path) -> list[str]:
    return [line for line in unit.read_text().splitlines() if line and not line.startswith("#")]


def test_there_are_two_units_and_those_of_workers_two_jobs_and_the_console() -> None:
    services = ["agent", "aggregator", "aggregator@", "compact", "console", "export"]
    assert [name.removeprefix("edge-ldp-") for name in NAMES] == services


@pytest.mark.parametrize(("at", "when"), [(3, "hourly"), (5, "*-*-* 04:00")])
def test_a_job_is_held_in_as_the_aggregator_is_and_started_by_its_timer(at: int, when: str) -> None:
    alone, job = lines_of(UNITS[1]), lines_of(UNITS[at])
    own = {line.partition("=")[0] for line in job if line not in alone}
    of_a_job = {"Type", "ExecStart", "TimeoutStartSec", "Nice", "IOSchedulingClass"}
    assert own == {"Description", "After"} | of_a_job
    timer = lines_of(UNITS[at].with_suffix(".timer"))
    assert f"OnCalendar={when}" in timer
    assert "Persistent=true" in timer


def test_the_console_may_write_nowhere_and_read_no_key() -> None:
    console = lines_of(UNITS[4])
    keys = {line.partition("=")[0] for line in console}
    assert not keys & {"StateDirectory", "RuntimeDirectory", "CacheDirectory", "ReadWritePaths"}
    assert "ProtectSystem=strict" in console
    assert "ReadOnlyPaths=/var/lib/edge-ldp-aggregator" in console
    hidden = {
        path
        for line in console
        if line.startswith("InaccessiblePaths=")
        for path in line.partition("=")[2].split()
    }
    secret = (
        "plan.key",
        "aggregator.password",
        "aggregator.key",
        "store.password",
        "simulator.password",
    )
    assert hidden == {f"-/etc/edge-ldp/{name}" for name in secret} | {"-/var/lib/edge-ldp/archive"}
    assert [line for line in console if line.startswith("IPAddress")] == [
        "IPAddressDeny=any",
        "IPAddressAllow=localhost",
    ]
    done = analyze("security", "--offline=true", "--no-pager", "--threshold=15", str(UNITS[4]))
    assert done.returncode == 0, done.stdout[-400:]


def test_a_worker_runs_as_the_aggregator_does_under_its_name() -> None:
    alone, worker = (lines_of(unit) for unit in UNITS[1:3])
    own = [line for line in worker if line not in alone]
    assert [line.partition("=")[0] for line in own] == ["Description", "Conflicts", "ExecStart"]
    (started,) = (line for line in alone if line.startswith("ExecStart="))
    assert own[1:] == ["Conflicts=edge-ldp-aggregator.service", f"{started} --worker %i"]
    assert len([line for line in alone if line not in worker]) == 2


@pytest.mark.parametrize("unit", UNITS, ids=NAMES)
def test_SVC_01_the_exposure_is_at_most_2(unit: Path) -> None:
    done = analyze(
        "security", "--offline=true", "--no-pager", f"--threshold={THRESHOLD}", str(unit)
    )
    assert done.returncode == 0, done.stdout[-400:]


def test_SVC_01_the_drop_ins_of_share_and_page_allow_a_port_each_and_nothing_else(
    tmp_path: Path,
) -> None:
    allowed = [line for one in DROP_INS for line in lines_of(one) if line != "[Service]"]
    assert len(allowed) == 2
    assert all(re.fullmatch(r"SocketBindAllow=tcp:\d+", line) for line in allowed)
    shared = tmp_path / "edge-ldp-agent.service"
    more = "\n".join(["[Service]", *allowed])
    shared.write_text(UNITS[0].read_text().replace("[Service]", more, 1))
    done = analyze("security", "--offline=true", f"--threshold={THRESHOLD}", str(shared))
    assert done.returncode == 0, done.stdout[-400:]


def test_SVC_01_the_control_a_loosened_unit_is_found(tmp_path: Path) -> None:
    loose = tmp_path / "edge-ldp-agent.service"
    text = UNITS[0].read_text()
    loose.write_text(text.replace("ProtectSystem=strict", "").replace("NoNewPrivileges=yes", ""))
    done = analyze("security", "--offline=true", f"--threshold={THRESHOLD}", str(loose))
    assert done.returncode == 1


@pytest.mark.parametrize("unit", UNITS, ids=NAMES)
def test_systemd_knows_every_key(unit: Path, tmp_path: Path) -> None:
    text = unit.read_text().replace("/opt/edge-ldp/bin/edge-ldp", "/bin/true")
    copy = tmp_path / unit.name
    copy.write_text(text)
    done = analyze("verify", "--recursive-errors=no", "--man=no", str(copy))
    assert unit.name not in done.stderr, done.stderr


@pytest.mark.parametrize("unit", UNITS, ids=NAMES)
def test_PRV_04_no_core_is_dumped(unit: Path) -> None:
    assert "LimitCORE=0" in lines_of(unit)


def test_PRV_04_the_agents_memory_is_never_swapped_out() -> None:
    assert "MemorySwapMax=0" in lines_of(UNITS[0])


def test_the_agent_may_read_whether_the_clock_is_synchronised() -> None:
    """ProtectClock= would forbid adjtimex(2) even to read, and the agent would wait for ever."""
    lines = lines_of(UNITS[0])
    assert not any(line.startswith("ProtectClock") for line in lines)
    assert lines.index("SystemCallFilter=adjtimex clock_adjtime clock_adjtime64") > lines.index(
        "SystemCallFilter=~@privileged @resources"
    )


@pytest.mark.parametrize("unit", STAYING, ids=NAMES[:3])
def test_SVC_02_SVC_03_a_hang_is_ended_and_a_wait_never_hits_the_start_limit(unit: Path) -> None:
    parser = RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(unit.read_text())
    assert parser["Unit"]["StartLimitIntervalSec"] == "0"
    service = parser["Service"]
    assert (service["Type"], service["Restart"]) == ("notify", "always")
    assert int(service["WatchdogSec"]) <= 120
    others = f" {EXIT_RIVAL}" if "aggregator" in unit.name else ""
    assert service["RestartPreventExitStatus"] == f"2{others}"


@pytest.mark.parametrize("unit", UNITS, ids=NAMES)
def test_SVC_07_no_secret_stands_in_arguments_or_environment(unit: Path) -> None:
    for line in lines_of(unit):
        assert not line.startswith(("Environment", "PassEnvironment", "EnvironmentFile"))
        assert "password" not in line.lower() or line.startswith("InaccessiblePaths=")


def test_the_installer_is_posix_shell() -> None:
    script = ROOT / "packaging" / "install.sh"
    assert subprocess.run(["sh", "-n", str(script)], check=False).returncode == 0
    told = run_told(["sh", str(script)])
    assert told.returncode == 2
    assert "install.sh agent" in told.stdout
    for words in (["agent", "--with", "oidc"], ["aggregator", "--with", "oidc,odic"]):
        told = run_told(["sh", str(script), *words])
        assert told.returncode == 2
        assert told.stderr == f"install.sh: --with: {words[0]} has no {words[2][-4:]}\n"


@pytest.mark.parametrize(
    ("given", "package", "says"),
    [
        # nobody listens at the discard port of this machine
        (["--retries", "1", "--index-url", "http://127.0.0.1:9/"], "cryptography", "no network"),
        (["--no-index"], "cryptography", "goes on without"),
        (["--no-index"], "edge-ldp-of-nowhere", "fails"),
    ],
)
def test_the_installer_tells_a_failed_download_from_a_missing_package(
    tmp_path: Path, given: list[str], package: str, says: str
) -> None:
    told = tmp_path / "told"
    with told.open("wb") as file:
        pip = [sys.executable, "-m", "pip", "download", "--isolated", "--no-deps", *given, package]
        subprocess.run(pip, cwd=tmp_path, stderr=file, stdout=file, check=False)
    script = (ROOT / "packaging" / "install.sh").read_text()
    functions = re.findall(
        r"^(?:lacks|could_reach_the_index)\(\) \{.*?^\}$", script, re.MULTILINE | re.DOTALL
    )
    assert len(functions) == 2
    decides = [
        f"told={told}",
        "fail() { echo no network; exit; }",
        *functions,
        "could_reach_the_index",
        "if lacks cryptography cffi; then echo goes on without; else echo fails; fi",
    ]
    found = subprocess.run(["sh", "-euc", "\n".join(decides)], capture_output=True, check=True)
    assert found.stdout.decode().strip() == says
