"""probe, record and replay as a user meets them: exit codes, JSON, Ctrl-C, files and modes."""

import asyncio
import json
import re
import signal
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

import pytest

from agent.main import main
from agent.ports.probe import LISTENED
from agent.ports.recording import RECEIVED, WARNING, line_events
from edge_ldp.service.clock import Clock
from firmware_stubs.meters import PtyPort, Series, modbus, play
from tests.integration.agent_bench import until

pytestmark = pytest.mark.integration

EDGE_LDP = (sys.executable, "-m", "edge_ldp.cli", "agent")
UNDERSTOOD = "--i-understand-this-stores-readings"
FAST = Clock(origin_s=1_767_571_200, started_s=0, rate=1.0)  # every telegram is due
HEADER = '{"format": "edge-ldp recording", "version": 1, "meter": {"port": "x"}}\n'
SHOWN = (
    "dsmr at 115200 baud, 8 data bits, no parity; it shows power, power_export, "
    "energy_import, energy_export, power_net and tells its time"
)
POWERS = [378, -120, 7353]
SERIES = Series(POWERS, 1_767_571_200, 900, "E0099000000000001", base_wh=6_657_459)


@asynccontextmanager
async def started(*args: object) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *EDGE_LDP, *map(str, args), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def ended(process: asyncio.subprocess.Process) -> tuple[int | None, str, str]:
    out, err = await asyncio.wait_for(process.communicate(), 60)
    return process.returncode, out.decode(), err.decode()


async def record(pty: PtyPort, file: Path, *, interrupt: bool = True) -> tuple[str, str]:
    """Record a series; return what was printed and said."""
    args = ["record", "--port", pty.link, UNDERSTOOD, file]
    async with started(*args, *([] if interrupt else ["--seconds", "10"])) as process:
        await asyncio.wait_for(pty.wait_for_reader(), 60)
        await play(pty, SERIES, FAST)
        if interrupt:
            async with asyncio.timeout(300):
                while not is_whole(file):  # noqa: ASYNC110 (another process)
                    await asyncio.sleep(0.05)
            process.send_signal(signal.SIGINT)
        code, out, err = await ended(process)
    assert code == 0
    return out, err


def is_whole(file: Path) -> bool:
    """Say whether the last telegram's last byte is in the recording."""
    if not file.exists():
        return False
    passed = line_events(file.read_text().splitlines(keepends=True)[1:], str(file))
    octets = b"".join(one.octets for one in passed if one.mark == RECEIVED)
    return octets.count(b"!") == len(POWERS) and octets.endswith(b"\r\n")


@pytest.mark.parametrize("interrupt", [True, False])
async def test_what_is_recorded_is_replayed(
    pty: PtyPort, tmp_path: Path, capsys: pytest.CaptureFixture[str], *, interrupt: bool
) -> None:
    file = tmp_path / "tape"
    out, err = await record(pty, file, interrupt=interrupt)
    assert out == ""
    assert err == f"{file}: 3 telegrams; bytes discarded: none\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert WARNING in file.read_text().splitlines()[0]
    assert main(["replay", "--json", str(file)]) == 0
    shown = capsys.readouterr()
    assert [json.loads(line)["power_w"] for line in shown.out.splitlines()] == [378, 0, 7353]
    assert json.loads(shown.err) == {"telegrams": 3, "discarded_bytes": {}}
    assert main(["replay", "--summary", str(file)]) == 0
    assert capsys.readouterr() == ("", err)
    assert main(["replay", str(file)]) == 0
    times = [line for line in capsys.readouterr().out.splitlines() if line[:5] == "time "]
    assert all(re.fullmatch(r"time 20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", line) for line in times)
    assert main(["replay", "--zone", "Asia/Kolkata", str(file)]) == 0
    local = [line for line in capsys.readouterr().out.splitlines() if line[:5] == "time "]
    assert {line[-6:] for line in local} == {"+05:30"}
    moments = [[datetime.fromisoformat(line[5:]) for line in part] for part in (times, local)]
    assert moments[0] == moments[1] != []
    assert main(["replay", "--zone", "Mars", str(file)]) == 2
    assert "--zone: expected a time zone" in capsys.readouterr().err


def test_recording_needs_its_flag(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "tape"
    assert main(["record", "--port", "/dev/null", str(file)]) == 2
    assert UNDERSTOOD in capsys.readouterr().err
    assert not file.exists()


def test_recording_writes_over_nothing_and_follows_no_link(
    pty: PtyPort, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "kept"
    kept.write_text("keep")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "elsewhere")
    for file in (kept, link, tmp_path / "no" / "directory"):
        assert main(["record", "--port", str(pty.link), UNDERSTOOD, str(file)]) == 4
        assert str(file) in capsys.readouterr().err
    assert kept.read_text() == "keep"
    assert not (tmp_path / "elsewhere").exists()


def test_a_port_that_is_none_leaves_no_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "tape"
    for command in (["record", UNDERSTOOD, str(file)], ["probe"]):
        assert main([command[0], "--port", str(tmp_path), *command[1:]]) == 4
        assert "is a directory" in capsys.readouterr().err
    assert not file.exists()


async def test_a_meter_that_is_asked_is_recorded_and_replayed(
    pty: PtyPort, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "tape"
    answers: list[tuple[int, int, int]] = []

    def shown_now() -> tuple[int, int, int]:
        answers.append((378, 1000, 0))
        return answers[-1]

    serving = asyncio.create_task(modbus.serve(pty, shown_now))
    args = ["record", "--port", pty.link, "--protocol", "modbus", "--set", "poll_ms = 200"]
    async with started(*args, UNDERSTOOD, "--json", file) as process:
        await until(lambda: len(answers) > 20)  # a telegram takes a few
        process.send_signal(signal.SIGINT)
        code, _, err = await ended(process)
    serving.cancel()
    assert code == 0
    assert main(["replay", "--json", str(file)]) == 0
    shown = capsys.readouterr()
    assert shown.err == err
    assert json.loads(err)["telegrams"] == len(shown.out.splitlines()) > 3
    assert {json.loads(line)["power_w"] for line in shown.out.splitlines()} == {378}


async def test_a_silent_line_gives_a_recording_and_exit_code_3(
    pty: PtyPort, tmp_path: Path
) -> None:
    file = tmp_path / "tape"
    args = ["record", "--port", pty.link, UNDERSTOOD, "--seconds", "0.7", file]
    async with started(*args) as process:
        assert (await ended(process))[0] == 3
    assert len(file.read_text().splitlines()) == 2  # a header, and one line for all the silence


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "line 1"),
        ("{}\n", "line 1"),
        ("[" * 100_000, "line 1"),
        (HEADER.replace("1", "2"), "version"),
        (HEADER.replace('"x"', "5"), "line 1"),
        (HEADER.replace('"x"', '"x", "protocol": "morse"'), "meter.protocol"),
        (HEADER + "hello\n", "line 2"),
    ],
)
def test_a_file_that_is_no_recording_exits_with_2_and_says_where(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, line: str
) -> None:
    file = tmp_path / "tape"
    file.write_text(text)
    assert main(["replay", str(file)]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(f"edge-ldp agent: {file}: ")
    assert line in shown.err
    assert main(["replay", str(tmp_path / "none")]) == 2


async def test_a_meter_is_probed_and_what_to_write_is_shown(pty: PtyPort) -> None:
    async with started("probe", "--port", pty.link, "--seconds", "60") as process:
        await asyncio.wait_for(pty.wait_for_reader(), 60)
        await play(pty, SERIES, FAST)
        code, out, err = await ended(process)
    assert code == 0
    assert out.splitlines() == [
        SHOWN,
        "[meter]",
        f'port = "{pty.link}"',
        'protocol = "dsmr"',
        "baud = 115200",
        "data_bits = 8",
        'parity = "N"',
    ]
    assert err == "listening at 115200 baud, 8 data bits, no parity\n"
    assert "7353" not in out


async def test_what_nobody_understands_is_probed_with_exit_code_3(pty: PtyPort) -> None:
    async def mumble() -> None:
        while True:
            await pty.write(b"\x9b\x80\xff" * 20)
            await asyncio.sleep(0.02)

    mumbling = asyncio.create_task(mumble())
    async with started("probe", "--port", pty.link, "--seconds", "0.2", "--json") as process:
        code, out, err = await ended(process)
    mumbling.cancel()
    facts = json.loads(out)
    assert (code, facts["found"], len(facts["tried"])) == (3, False, len(LISTENED))
    assert "no known meter answers here" in err


@pytest.mark.parametrize("command", ["read", "probe"])
async def test_an_interrupt_ends_a_command_without_a_traceback(pty: PtyPort, command: str) -> None:
    async with started(command, "--port", pty.link) as process:
        await asyncio.wait_for(pty.wait_for_reader(), 60)
        process.send_signal(signal.SIGINT)
        code, out, err = await ended(process)
    assert (code, out) == (130, "")
    assert "Traceback" not in err


@pytest.mark.parametrize("seconds", ["0", "-1", "x", "nan", "1e9"])
def test_seconds_that_are_none_are_wrong_usage(
    seconds: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as refused:
        main(["probe", "--port", "x", "--seconds", seconds])
    assert refused.value.code == 2
    assert "--seconds" in capsys.readouterr().err


def test_a_full_disk_ends_a_recording_with_4(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pty = PtyPort(tmp_path / "meter")
    pty.plug()
    try:
        assert main(["record", "--port", str(pty.link), UNDERSTOOD, "/dev/full"]) == 4
    finally:
        pty.unplug()
    assert "/dev/full" in capsys.readouterr().err
