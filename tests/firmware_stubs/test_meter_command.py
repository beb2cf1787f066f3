"""The command `edge-ldp simulate meter`, started as people start it."""

import asyncio
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from agent.commands.commissioning import read_meter
from agent.meters.section import MeterTable
from edge_ldp import ParameterError
from firmware_stubs.meters.meter_command import EXIT_USAGE, load_series, main
from tests.integration.conftest import free_port

COMMAND = [sys.executable, "-m", "edge_ldp.cli", "simulate", "meter"]
# the port goes away a second after the last telegram, which a busy reader has not read yet
LINGERING = (
    "import sys, firmware_stubs.meters.meter_command as m; m.LINGER_S = 8.0;"
    " exit(m.main(sys.argv[1:]))"
)


def test_the_series_that_can_be_named(tmp_path: Path) -> None:
    file = tmp_path / "own.npz"
    np.savez(file, power_w=np.array([1, -2, 3]), float_w=np.array([1.5]), two=np.eye(2, dtype=int))
    assert list(islice(load_series("constant:-378"), 3)) == [-378] * 3
    assert load_series(f"{file}:power_w") == [1, -2, 3]
    assert len(list(load_series("uci"))) == len(list(load_series("uci:1"))) == 8064
    assert list(load_series("uci")) != list(load_series("uci:1"))
    assert len(list(load_series("swiss:399"))) == 4704
    for wrong in (
        "constant:x",
        "constant:",
        "uci:2",
        "swiss:400",
        "nothing",
        f"{file}:none",
        f"{file}:float_w",
        f"{file}:two",
        f"{tmp_path}/none.npz:power_w",
    ):
        with pytest.raises(ParameterError, match="--data: expected constant:W"):
            load_series(wrong)


@pytest.mark.parametrize("flag", ["--step", "--count", "--rate"])
def test_wrong_numbers_are_refused_with_the_usage(
    flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--link", "x", flag, "0"])
    assert stopped.value.code == EXIT_USAGE
    assert flag in capsys.readouterr().err


def test_a_link_that_is_a_file_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    link = tmp_path / "file"
    link.touch()
    assert main(["--link", str(link), "--data", "constant:1"]) == EXIT_USAGE
    assert "exists and is no symbolic link" in capsys.readouterr().err


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.integration
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_order(tmp_path: Path, number: signal.Signals) -> None:
    link = tmp_path / "meter"
    command = [*COMMAND, "--link", str(link), "--data", "constant:378", "--step", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as meter:
        assert meter.stdout
        assert meter.stdout.readline().startswith(f"meter at {link} (/dev/pts/")
        meter.send_signal(number)
        assert meter.wait(300) == 0
    assert not link.is_symlink()


@pytest.mark.integration
def test_a_reader_gets_the_whole_series_and_the_clock_to_share(tmp_path: Path) -> None:
    link = tmp_path / "meter"
    start = ["--start", "2026-01-05T00:00:00Z", "--rate", "90000", "--count", "3", "--wait"]
    data = ["--data", "constant:400", "--base-wh", "5"]
    command = [sys.executable, "-c", LINGERING, "--link", str(link), *data, *start]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as meter:
        wait_until(link.is_symlink)
        seen: list[str] = []
        said: list[str] = []
        table = MeterTable(port=str(link))
        asyncio.run(read_meter(table, as_json=True, out=seen.append, err=said.append))
        assert meter.wait(300) == 0
        assert meter.stdout
        printed = meter.stdout.read()
    assert [re.findall(r'"(?:time_s|power_w|energy_import_wh)": (\d+)', line) for line in seen] == [
        ["1767571200", "400", "5"],
        ["1767572100", "400", "105"],
        ["1767573000", "400", "205"],
    ]
    assert said
    assert "gone" in said[0]
    assert '[clock]\ntrust = "assume"\norigin_s = 1767571200.0\nstarted_s = ' in printed
    assert printed.endswith("rate = 90000.0\n")


@pytest.mark.integration
@pytest.mark.parametrize("hours", [-30, 30])
def test_a_meter_that_shares_anothers_clock_begins_by_that_clock(
    tmp_path: Path, hours: int
) -> None:
    link, origin_s = tmp_path / "meter", int(time.time()) + hours * 3600
    clock = ["--origin", str(origin_s), "--started", str(time.time()), "--rate", "900"]
    options = ["--data", "constant:400", "--step", "900", "--count", "1", "--wait"]
    command = [sys.executable, "-c", LINGERING, "--link", str(link), *options, *clock]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as meter:
        wait_until(link.is_symlink)
        seen: list[str] = []
        table = MeterTable(port=str(link))
        asyncio.run(read_meter(table, as_json=True, out=seen.append, err=lambda _: None))
        assert meter.wait(300) == 0
    (told,) = seen
    assert 0 <= json.loads(told)["time_s"] - origin_s // 900 * 900 < 24 * 3600


@pytest.mark.parametrize(
    "options",
    [
        ["--link", "x", "--protocol", "modbus"],
        ["--listen", "5020", "--protocol", "dsmr"],
        ["--listen", "5020", "--protocol", "iec62056-21-request"],
    ],
)
def test_modbus_tcp_is_of_a_modbus_meter_in_the_network(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*options, "--framing", "tcp", "--data", "constant:1"]) == EXIT_USAGE
    assert "--framing: expected rtu, unless with --listen" in capsys.readouterr().err


@pytest.mark.parametrize("where", ["0", "65536", "host:x"])
def test_an_address_to_listen_at_is_a_port(where: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--listen", where])
    assert "--listen" in capsys.readouterr().err


@pytest.mark.integration
@pytest.mark.parametrize("framing", ["pty", "tcp"])
def test_a_modbus_meter_answers_with_the_steps_values(tmp_path: Path, framing: str) -> None:
    port = str(tmp_path / "meter")
    table = MeterTable(port=port, protocol="modbus", model="sdm630")
    where = ["--link", port]
    if framing == "tcp":
        where = ["--listen", str(free_port()), "--framing", "tcp"]
        table = replace(table, port=f"socket://127.0.0.1:{where[1]}", framing="tcp")
    command = [*COMMAND, *where, "--data", "constant:-400", "--protocol", "modbus"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as meter:
        assert meter.stdout
        assert meter.stdout.readline().startswith("meter at ")
        seen: list[str] = []
        read = read_meter(table, once=True, as_json=True, out=seen.append)
        assert asyncio.run(read) == 0
        meter.send_signal(signal.SIGTERM)
        assert meter.wait(300) == 0
    found = json.loads(seen[0])
    assert (found["power_w"], found["power_export_w"]) == (0, 400)
    assert found["energy_import_wh"] == 1_000_000


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--product", "esphome", "--listen", "1"), "expected --broker"),
        (("--product", "shelly-gen1", "--broker", "1"), "expected --listen"),
        (("--product", "homewizard-v2", "--listen", "1"), "made by: openssl req"),
        (("--broker", "1"), "--broker: expected nothing, unless"),
    ],
)
def test_a_product_says_where_it_can_be(
    options: tuple[str, ...], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*options, "--data", "constant:1"]) == EXIT_USAGE
    assert expected in capsys.readouterr().err
