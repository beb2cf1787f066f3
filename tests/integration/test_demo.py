"""The whole main job by its command: every process real, every report counted, no reading found."""

import json
import os
import re
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from edge_ldp import cli
from firmware_stubs.demo.children import Crew
from firmware_stubs.demo.scenario import BASE_WH
from tests import needs

pytestmark = pytest.mark.timeout(1200)
DEMO = [sys.executable, "-m", "edge_ldp.cli", "demo"]
SMALL = ("--weeks", "1", "--homes", "60", "--seconds", "42")
SAID = "demo.err"
PNG = b"\x89PNG\r\n\x1a\n"


def run_demo(tmp_path: Path, *flags: str) -> dict[str, Any]:
    """Run the demo in its own temporary directory and return its JSON."""
    done = subprocess.run(
        [*DEMO, "--json", "--output", str(tmp_path / "report"), *flags],
        capture_output=True,
        check=False,
        timeout=1100,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
    (line,) = done.stdout.decode().splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


def check_counts(found: dict[str, Any], *, homes: int, weeks: int) -> None:
    account = found["accounting"]
    assert account["exact"]
    assert account["created"] == account["counted"]
    # agents give up the slot they start in; homes report every slot, and each day's sum
    of_homes = homes * weeks * (672 + 7)
    assert of_homes <= account["created"] <= of_homes + 2 * weeks * 672
    assert (found["shipped"]["homes"], found["shipped"]["days"]) == (homes, 7 * weeks)
    assert found["held"] >= 15
    assert found["search"]["files"] >= 2 * 3 * 3  # agents × files × looks
    assert found["theta"][0]["survey_share"] == 1
    assert all(row["theta"] < 43_470 for row in found["theta"][1:])
    assert len(found["theta"]) >= 2


@pytest.mark.parametrize(
    ("homes", "weeks", "flags"),
    [
        pytest.param(400, 7, (), id="whole", marks=pytest.mark.slow),
        pytest.param(20, 1, ("--homes", "20", "--weeks", "1", "--seconds", "10"), id="small"),
    ],
)
def test_prv_03_prv_05_the_main_job(
    tmp_path: Path, homes: int, weeks: int, flags: tuple[str, ...]
) -> None:
    """Also S1 and S3: searched for readings, and every report accounted for."""
    needs.program("mosquitto")
    found = run_demo(tmp_path, *flags)
    assert found["ok"]
    assert found["search"]["readings_found"] == 0
    check_counts(found, homes=homes, weeks=weeks)
    assert found["run"]["broker"] == "mosquitto"
    assert found["run"]["readings"] == (homes + 2) * weeks * 672
    report = tmp_path / "report"
    assert (report / "demo.png").read_bytes().startswith(PNG)
    html = (report / "demo.html").read_text()
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!data:)""", html)
    assert json.loads((report / "demo.json").read_text()) == found
    assert [path.name for path in tmp_path.iterdir()] == ["report"]


@contextmanager
def small_demo(tmp_path: Path, *flags: str) -> Iterator[subprocess.Popen[bytes]]:
    """Give a demo that plays: all of its processes run; end it in any case."""
    flags = (*(flags or SMALL), "--output", str(tmp_path / "report"))
    with (
        (tmp_path / SAID).open("wb") as err,
        subprocess.Popen(
            [*DEMO, *flags],
            stdout=subprocess.DEVNULL,
            stderr=err,
            env={**os.environ, "TMPDIR": str(tmp_path)},
        ) as demo,
    ):
        try:
            deadline = time.monotonic() + 240
            while "playing" not in (said := (tmp_path / SAID).read_text()):
                assert demo.poll() is None, said
                assert time.monotonic() < deadline, said
                time.sleep(0.05)
            yield demo
        finally:
            demo.terminate()


def ended(demo: subprocess.Popen[bytes], tmp_path: Path) -> tuple[int, str]:
    return demo.wait(240), (tmp_path / SAID).read_text()


def place_of(tmp_path: Path, part: str) -> Path:
    """Return a part's directory in the newest run: one that begins too late is begun again."""
    return max(tmp_path.glob(f"edge-ldp-demo-*/**/{part}"), key=lambda path: len(path.parts))


def processes_in(directory: Path) -> set[int]:
    """Return the processes whose working directory lies under `directory`."""
    found = set()
    for entry in os.scandir("/proc"):
        try:
            if entry.name.isdecimal() and Path(entry.path, "cwd").readlink().is_relative_to(
                directory
            ):
                found.add(int(entry.name))
        except OSError:
            continue
    return found


# both are one handler's: SIGTERM with the slow tests
@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_an_interrupt_ends_every_process_it_started(tmp_path: Path, number: int) -> None:
    with small_demo(tmp_path) as demo:
        started = processes_in(tmp_path)
        assert len(started) >= 7  # broker, aggregator, homes, two meters, two agents
        demo.send_signal(number)
        code, told = ended(demo, tmp_path)
    assert code == 130
    assert "interrupted" in told
    assert processes_in(tmp_path) == set()


def test_processes_that_die_end_the_demo_with_the_last_words_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All but the broker die at once here; an agent that is killed, with the slow tests."""
    start = Crew.start

    def dying(crew: Crew, name: str, command: list[str], *place: Any, **options: Any) -> Any:
        dies = ["sh", "-c", "echo no such port >&2; exit 9"]
        return start(crew, name, command if name == "broker" else dies, *place, **options)

    monkeypatch.setattr(Crew, "start", dying)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("signal.signal", lambda *_: None)  # the tests' own process keeps its own
    assert cli.main(["demo", *SMALL, "--output", str(tmp_path / "report")]) == 1
    told = capsys.readouterr().err  # of whichever the machine let die first, and of no other
    ended_early = r"edge-ldp demo: [a-z]+(-\d)? ended early with exit code 9; its last words:\n"
    assert re.search(ended_early + r"no such port\n\Z", told)
    assert told.count("ended early") == 1
    assert processes_in(tmp_path) == set()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_s1_on_pips_broker_a_reading_in_an_agents_file_and_only_that_fails_the_demo(
    tmp_path: Path,
) -> None:
    flags = ("--broker", "iotcore", "--weeks", "2", "--homes", "60", "--seconds", "8")
    with small_demo(tmp_path, *flags) as demo:
        leak = place_of(tmp_path, "agent-2") / "leak.bin"
        leak.write_bytes(b"?" + struct.pack(">I", BASE_WH[1]))
        code, told = ended(demo, tmp_path)
    assert code == 1
    assert (tmp_path / "report" / "demo.json").exists(), told
    found = json.loads((tmp_path / "report" / "demo.json").read_text())
    assert found["reasons"] == ["a reading in agent-2/leak.bin: >I Wh at byte 1"]
    assert found["run"]["broker"] == "iotcore"
    check_counts(found, homes=60, weeks=2)


@pytest.mark.parametrize("flags", [["--weeks", "8"], ["--homes", "0"], ["--broker", "nats"]])
def test_wrong_usage_ends_with_two(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["demo", *flags])
    assert ended.value.code == 2
    assert "usage" in capsys.readouterr().err


@pytest.mark.slow
def test_the_homes_go_on_and_the_console_tells_that_all_is_well_until_it_is_told(
    tmp_path: Path,
) -> None:
    flags = ["--json", "--weeks", "1", "--homes", "20", "--seconds", "10", "--stay"]
    answer = tmp_path / "demo.json"
    with (
        answer.open("wb") as out,
        subprocess.Popen(
            [*DEMO, *flags, "--output", str(tmp_path / "report")],
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": str(tmp_path)},
        ) as demo,
    ):
        try:
            said = _read_until(demo, "look around: ")
            address = said.rpartition("look around: ")[2].split()[0]
            counted = _counted(address)
            while _counted(address) == counted:
                time.sleep(0.5)  # until the homes' next day is over
            while "All is well." not in (page := httpx.get(address, timeout=240).text):
                time.sleep(0.5)  # until the service's next heartbeat
            month = re.search(r'id="day-month".*?since=(\d+)&amp;until=(\d+)', page)
            assert month is not None
            asked = {"since": month[1], "until": month[2]}
            found = httpx.get(f"{address}api/v1/query", params=asked, timeout=240).json()
        finally:
            demo.send_signal(signal.SIGINT)
    assert demo.returncode == 0
    assert counted >= json.loads(answer.read_text())["accounting"]["counted"] - 20 * 7  # sums
    assert found["whole"]["devices"] == 22


def _counted(address: str) -> int:
    status = httpx.get(f"{address}api/v1/status", timeout=240).json()
    return sum(stream["counted"] for stream in status["streams"])


def _read_until(process: subprocess.Popen[str], words: str) -> str:
    """Return what a process says on standard error up to the line with these words."""
    assert process.stderr is not None
    said = ""
    while words not in said:
        line = process.stderr.readline()
        assert line, said
        said += line
    return said
