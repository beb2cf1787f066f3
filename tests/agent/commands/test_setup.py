"""What `agent setup` says where it cannot go on; all of it played: tests/integration."""

import io

import pytest

from agent.commands import setup
from agent.commands.setup import SetupError, Talk
from agent.main import main
from tests.agent.samples import DEVICE


class Terminal(io.StringIO):
    """A person, and what he types."""

    def isatty(self) -> bool:
        return True


def test_an_input_that_ends_is_told_and_that_nothing_was_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal("\n"))
    with pytest.raises(SetupError) as ended:
        Talk(is_silent=False).ask("the fleet's name", "--fleet")
    assert str(ended.value) == "setup: the input ended; nothing was written"
    assert capsys.readouterr().out == "the fleet's name: " * 2


def test_a_machine_without_a_serial_port_is_told_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: object
) -> None:
    monkeypatch.setattr(setup, "list_ports", list)
    options = ("--broker", "localhost", "--device", DEVICE, "--yes")
    assert main(["setup", "-c", f"{tmp_path}/agent.toml", *options]) == 4
    assert capsys.readouterr().err.endswith(
        "setup: no serial port is there; plug the meter's adapter in, or name it: --port"
        " /dev/ttyUSB0, --port socket://HOST:PORT\n"
    )
