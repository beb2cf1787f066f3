"""The table of wrong turns in docs/first-hour-household.md: each says what, and what to do.

What a broker really answers in these cases is tried by tests/integration/test_check_live.py.
"""

import errno
import io
from collections.abc import Callable
from contextlib import redirect_stderr, suppress
from pathlib import Path

import pytest

from agent.commands.commissioning import advice
from agent.commands.live import judged
from agent.commands.setup import Talk
from agent.config import load_config, parse_config
from agent.config.doubts import doubts_of
from agent.errors import AgentError
from agent.link.trouble import LinkTrouble
from agent.ports.serial_port import explain
from edge_ldp import cli
from edge_ldp.device.errors import EdgeLdpError
from edge_ldp.protocol.invitation import parse_invitation
from edge_ldp.service import mqtt
from edge_ldp.service.broker import Broker
from tests.agent.config.test_config import GOOD
from tests.agent.samples import StillClock, config_text, make_config, make_plan

PAGE = Path(__file__).parents[2] / "docs" / "first-hour-household.md"
STATE = Path("/var/lib/x.db")


def table() -> dict[str, tuple[str, str]]:
    """Return message and remedy of each row of the page."""
    rows = [line.split("|")[1:-1] for line in PAGE.read_text().splitlines() if line[:2] == "| "]
    cells = [[cell.strip() for cell in row] for row in rows]
    return {
        turn.replace("`", ""): (said.strip("`"), remedy.strip("`"))
        for turn, said, remedy in cells
        if said != "it says" and set(said) != {"-"}
    }


def port(path: str, number: int) -> str:
    return str(explain(path, OSError(number, "no")))


def config(old: str, new: str) -> str:
    with pytest.raises(AgentError) as refused:
        parse_config(GOOD.replace(old, new), "agent.toml")
    return str(refused.value)


def doubt(**changes: str | int) -> str:
    (told,) = doubts_of(parse_config(config_text(STATE, **changes), "agent.toml"))  # type: ignore[arg-type]
    return told


def link(reason: str, *, tls: bool = False, times: int = 1) -> str:
    trouble = LinkTrouble()
    for at in range(times):
        trouble.note(reason, float(at), was_up=False)
    return trouble.explained(reason, Broker("broker.example", 1883, "x", tls=tls))


def missing(path: Path) -> str:
    with pytest.raises(AgentError) as refused:
        load_config(path)
    return str(refused.value)


def forbidden() -> str:
    """Root may read everything, so the system's answer is put in its place."""

    class Forbidden(type(Path())):  # type: ignore[misc] # the system's own kind of path
        def read_text(self, *_: object, **__: object) -> str:
            raise PermissionError(errno.EACCES, "Permission denied")

    return missing(Forbidden("agent.toml"))


def open_password(tmp_path: Path) -> str:
    (tmp_path / "secret").write_text("x")
    (tmp_path / "secret").chmod(0o644)
    lines = f'username = "a"\npassword_file = "{tmp_path / "secret"}"'
    (tmp_path / "agent.toml").write_text(config_text(STATE, broker=lines))
    with pytest.raises(AgentError) as refused:
        load_config(tmp_path / "agent.toml")
    return str(refused.value)


def dear_plan() -> str:
    config, payload = make_config(STATE), make_plan(epsilon=2).to_json()
    return judged(config, 0, payload, None, StillClock()).text()


def torn_invitation() -> str:
    with pytest.raises(EdgeLdpError) as refused:
        parse_invitation(b"edge-ldp:eyJ2ZXJz!")
    return str(refused.value)


def silent_setup() -> str:
    with pytest.raises(AgentError) as refused:
        Talk(is_silent=True).ask("largest power, in W", "--ceiling")
    return str(refused.value)


def mistyped(*command: str) -> str:
    said = io.StringIO()
    with redirect_stderr(said), suppress(SystemExit):
        cli.main(command)
    return said.getvalue()


TURNS: dict[str, Callable[[Path], str]] = {
    "a misspelled command": lambda _: mistyped("agnet", "check"),
    "a misspelled verb": lambda _: mistyped("agent", "chek"),
    "/dev/ forgotten": lambda _: port("ttyUSB0", errno.ENOENT),
    "the adapter is not plugged in": lambda _: port("/dev/ttyUSB0", errno.ENOENT),
    "another program has the port": lambda _: port("/dev/ttyUSB0", errno.EBUSY),
    "not in the group dialout": lambda _: port("/dev/ttyUSB0", errno.EACCES),
    "another speed or parity": lambda _: advice(500, {"noise": 500}),
    "the P1 port does not speak": lambda _: advice(0, {}),
    "a DSMR 2.2 or 3 meter": lambda _: advice(500, {"crc": 500}),
    "registers of no standard's width": lambda _: advice(500, {"width": 500}),
    "the wrong Modbus model": lambda _: advice(5, {"refused": 5}, "modbus"),
    "meter_id of another meter": lambda _: advice(500, {"identity": 500}),
    "watts of a Linky": lambda _: config("[meter]", '[meter]\nprotocol = "linky"'),
    "a protocol by another name": lambda _: config("[meter]", '[meter]\nprotocol = "smll"'),
    "a unit that is not the quantity's": lambda _: config('unit = "W"', 'unit = "Wh"'),
    "a ceiling of 9 W": lambda _: doubt(ceiling=9),
    "ε above 8": lambda _: doubt(policy="epsilon = 9"),
    "no configuration there": lambda path: missing(path / "agent.toml"),
    "a configuration of another user": lambda _: forbidden(),
    "a configuration in a home, under sudo -u": lambda _: forbidden(),
    "a password that others may read": open_password,
    "TLS against a plain port": lambda _: link("Connection reset by peer", tls=True),
    "no TLS against a TLS port": lambda _: link("closed before it answered"),
    "a private authority, and no ca_file": lambda _: link(
        "TLS: unable to get local issuer certificate", tls=True
    ),
    "another name than the certificate's": lambda _: link(
        "TLS: Hostname mismatch, certificate is not valid for 'x'.", tls=True
    ),
    "the broker does not run": lambda _: link("Connection refused"),
    "the broker's name is unknown": lambda _: link("Name or service not known"),
    "the broker stopped while we talked": lambda _: link(mqtt.GONE),
    "a wrong password": lambda _: link("not authorized"),
    "a second agent under the same name": lambda _: link("session taken over", times=3),
    "a plan that asks for more ε than you allow": lambda _: dear_plan(),
    "an invitation that was cut off": lambda _: torn_invitation(),
    "a setup where nobody can be asked": lambda _: silent_setup(),
}


def test_the_page_has_every_turn_and_no_other() -> None:
    assert list(table()) == list(TURNS)


@pytest.mark.parametrize("turn", TURNS)
def test_a_wrong_turn_says_what_and_what_to_do(turn: str, tmp_path: Path) -> None:
    said, remedy = table()[turn]
    told = TURNS[turn](tmp_path)
    assert said in told, told
    assert remedy in told, told
