"""The table of wrong turns in docs/first-hour-household.md: each says what, and what to do.

Where it is cheap the turn is taken: with parsers, ports and brokers that are real.
"""

import asyncio
import io
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, redirect_stderr, suppress
from pathlib import Path
from typing import Any

import pytest

from agent.commands import live
from agent.commands.commissioning import advice
from agent.commands.live import judged
from agent.commands.setup.talk import Talk
from agent.config import load_config, parse_config
from agent.config.doubts import doubts_of
from agent.errors import AgentError, PortError
from agent.link.trouble import TWIN_TIMES, LinkTrouble
from agent.meters.crc import ARC, crc16
from agent.meters.reading import Asker, Discarded
from agent.meters.section import MeterTable
from agent.ports.meters import make_meter
from agent.ports.serial_port import open_serial
from edge_ldp import cli
from edge_ldp.service import mqtt
from edge_ldp.service.broker import Broker, LinkLostError
from edge_ldp.service.clock import Clock
from tests.agent.config.test_config import GOOD
from tests.agent.meters.samples import capture, sealed
from tests.agent.samples import DEVICE, StillClock, config_text, make_config, make_plan
from tests.integration.certificates import Authority
from tests.integration.conftest import OPEN, RealBroker, free_port, running
from tests.integration.test_check_live import guarded
from tests.integration.test_tls import LISTENER
from tests.unprivileged import close_to_others, told_to_nobody

PAGE = Path(__file__).parents[2] / "docs" / "first-hour-household.md"
STATE = Path("/var/lib/x.db")
WRONG = "wrong"
WATTS = capture("swedish_e360.raw")
NAMED = sealed("0-0:96.1.1(4530303939)", "1-0:1.7.0(00.378*kW)")


def table() -> dict[str, tuple[str, str]]:
    """Return message and remedy of each row of the page."""
    rows = [line.split("|")[1:-1] for line in PAGE.read_text().splitlines() if line[:2] == "| "]
    cells = [[cell.strip() for cell in row] for row in rows]
    return {
        turn.replace("`", ""): (said.strip("`"), remedy.strip("`"))
        for turn, said, remedy in cells
        if said != "it says" and set(said) != {"-"}
    }


def opened(path: str) -> str:
    with pytest.raises(PortError) as refused:
        open_serial(path, 115200, 8, "N", 1.0)
    return str(refused.value)


def opened_twice() -> str:
    master, slave = os.openpty()
    path = os.ttyname(slave)
    with closing(open_serial(path, 115200, 8, "N", 1.0)):
        told = opened(path)
    os.close(master)
    os.close(slave)
    return told


def heard(sent: bytes, **table: str) -> str:
    """Return what is said of a meter that sends these bytes and falls silent."""
    meter = make_meter(MeterTable(port="/dev/x", **table))  # type: ignore[arg-type]
    assert not isinstance(meter, Asker)
    events = [*meter.feed(sent), *meter.silence()]
    discarded = Counter[str]()
    for event in events:
        assert isinstance(event, Discarded)
        discarded[event.reason] += event.size
    return advice(len(sent), discarded)


def other_model() -> str:
    meter = make_meter(MeterTable(port="/dev/x", protocol="modbus", model="sdm72"))
    assert isinstance(meter, Asker)
    meter.tick(0)
    reply = bytes((1, 0x84, 2))  # exception 2 of function 4: illegal data address
    reply += crc16(reply, ARC, 0xFFFF).to_bytes(2, "little")
    (refused,) = (one for one in meter.feed(reply, 10) if isinstance(one, Discarded))
    return advice(len(reply), {refused.reason: refused.size}, "modbus")


def config(old: str, new: str) -> str:
    with pytest.raises(AgentError) as refused:
        parse_config(GOOD.replace(old, new), "agent.toml")
    return str(refused.value)


def doubt(**changes: str | int) -> str:
    text = config_text(STATE, window=(8, 97), **changes)  # type: ignore[arg-type]
    (told,) = doubts_of(parse_config(text, "agent.toml"))
    return told


def link(broker: Broker, *reasons: str, was_up: bool = False) -> str:
    """Return what the agent says after attempts, or links, that ended for these reasons."""
    trouble = LinkTrouble()
    for at, reason in enumerate(reasons):
        trouble.note(reason, float(at), was_up=was_up)
    return trouble.explained(reasons[-1], broker)


def met(place: Path, config: str = OPEN, **options: Any) -> str:
    """Return what the agent says of a real broker of this configuration."""
    with running(RealBroker(place, config)) as there:
        options = {"host": "127.0.0.1", "port": there.port, "client_id": "x", **options}
        broker = Broker(**options)
        return link(broker, asyncio.run(refusal(broker)))


async def refusal(broker: Broker) -> str:
    with pytest.raises(LinkLostError) as lost:
        await mqtt.open_link(broker)
    return lost.value.reason


def secured(place: Path, **options: Any) -> str:
    """Return the same of one with a certificate for broker.example, of an authority of its own."""
    authority = Authority(place / "ca")
    pair = authority.issue("good", "broker.example")
    if options.pop("is_known", False):
        options["ca_file"] = str(authority.ca)
    return met(place, LISTENER.format(pair=pair), **options)


def unsynchronised(place: Path) -> str:
    """Return what is said of a clock of which the kernel says so; no test may step a machine's."""
    kept = {"port": str(place / "none"), "broker_port": free_port(), "clock": 'trust = "kernel"'}
    text = config_text(place / "x.db", **kept)  # type: ignore[arg-type]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(live, "kernel_synchronised", lambda: False)
        found = asyncio.run(live.try_all(parse_config(text, "x"), None, None, Clock()))
    return "".join(one.text() for one in found if one.what == "clock")


def nobody() -> str:
    broker = Broker("127.0.0.1", free_port(), "x")
    return link(broker, asyncio.run(refusal(broker)))


def unknown() -> str:
    """Return what is said of a name that there never will be: RFC 6761, 6.4."""
    broker = Broker("broker.invalid", 1883, "x")
    told = link(broker, asyncio.run(refusal(broker)))
    if "Temporary failure" in told:  # packages may come by a proxy, where no name server is
        pytest.skip("no name server answers here, and no program brings one")
    return told


def stopped(place: Path) -> str:
    async def lose() -> str:
        open_ = await mqtt.open_link(broker)
        there.stop()
        with pytest.raises(LinkLostError) as lost:
            await open_.receive()
        return lost.value.reason

    with running(RealBroker(place)) as there:
        broker = Broker("127.0.0.1", there.port, "x")
        return link(broker, asyncio.run(lose()), was_up=True)


def twins(place: Path) -> str:
    async def lose() -> list[str]:
        reasons, first = [], await mqtt.open_link(broker)
        for _ in range(TWIN_TIMES):
            second = await mqtt.open_link(broker)
            with pytest.raises(LinkLostError) as lost:
                await first.receive()
            reasons.append(lost.value.reason)
            first = second
        await first.close()
        return reasons

    with running(RealBroker(place)) as there:
        broker = Broker("127.0.0.1", there.port, "x")
        return link(broker, *asyncio.run(lose()), was_up=True)


def missing(path: Path) -> str:
    with pytest.raises(AgentError) as refused:
        load_config(path)
    return str(refused.value)


def forbidden(*, home: bool = False) -> str:
    """Return what `check` says to a user who may not read the file, or not enter its directory."""
    with open_place() as place:
        file = place / "home" / "agent.toml"
        file.parent.mkdir()
        file.write_text(config_text(STATE))
        close_to_others(file.parent if home else file)
        none = str(place / "none.toml")
        return told_to_nobody("agent", ["check", "-c", none], ["check", "-c", str(file)])


def not_in_the_group() -> str:
    """Return what `read` says to a user who may not open the port."""
    master, slave = os.openpty()
    command = ("read", "--timeout", "1", "--port")
    try:
        close_to_others(Path(os.ttyname(slave)))
        return told_to_nobody("agent", [*command, "/dev/none"], [*command, os.ttyname(slave)])
    finally:
        os.close(master)
        os.close(slave)


@contextmanager
def open_place() -> Iterator[Path]:
    """Give a directory that every user may enter."""
    with tempfile.TemporaryDirectory(prefix="turn-", dir="/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)


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
    return mistyped("agent", "setup", "-c", "none.toml", "--invitation", '{"version": 1, "fl')


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
    "/dev/ forgotten": lambda _: opened("ttyUSB0"),
    "host:port of an adapter in the network": lambda _: config("/dev/ttyUSB0", "192.168.1.5:23"),
    "the adapter is not plugged in": lambda path: opened(str(path / "ttyUSB0")),
    "another program has the port": lambda _: opened_twice(),
    "not in the group dialout": lambda _: not_in_the_group(),
    "another speed or parity": lambda _: heard(bytes(b ^ 0x80 for b in WATTS)),
    "the P1 port does not speak": lambda _: heard(b""),
    "a DSMR 2.2 or 3 meter": lambda _: heard(b"/TST5\r\n\r\n1-0:1.7.0(00.378*kW)\r\n!\r\n"),
    "registers of no standard's width": lambda _: heard(sealed("1-0:1.8.0(1234567890.1*kWh)")),
    "the wrong Modbus model": lambda _: other_model(),
    "meter_id of another meter": lambda _: heard(NAMED, meter_id="another"),
    "watts of a Linky": lambda _: config("[meter]", '[meter]\nprotocol = "linky"'),
    "a protocol by another name": lambda _: config("[meter]", '[meter]\nprotocol = "smll"'),
    "a unit that is not the quantity's": lambda _: config('unit = "W"', 'unit = "Wh"'),
    "a ceiling of 9 W": lambda _: doubt(ceiling=9),
    "ε above 8": lambda _: doubt(policy="epsilon = 9"),
    "no configuration there": lambda path: missing(path / "agent.toml"),
    "a configuration of another user": lambda _: forbidden(),
    "a configuration in a home, under sudo -u": lambda _: forbidden(home=True),
    "a password that others may read": open_password,
    "TLS against a plain port": lambda path: met(path, tls=True),
    "no TLS against a TLS port": secured,
    "a private authority, and no ca_file": lambda path: secured(path, tls=True),
    "another name than the certificate's": lambda path: secured(path, tls=True, is_known=True),
    "an unsynchronised clock": unsynchronised,
    "the broker does not run": lambda _: nobody(),
    "the broker's name is unknown": lambda _: unknown(),
    "the broker stopped while we talked": stopped,
    "a wrong password": lambda path: met(path, guarded(path), username=DEVICE, password=WRONG),
    "a second agent under the same name": twins,
    "a plan that asks for more ε than you allow": lambda _: dear_plan(),
    "an invitation that was cut off": lambda _: torn_invitation(),
    "a setup where nobody can be asked": lambda _: silent_setup(),
}


def test_the_page_has_every_turn_and_no_other() -> None:
    assert list(table()) == list(TURNS)


@pytest.mark.parametrize("reason", ["session taken over", mqtt.GONE])
def test_a_twin_is_told_in_the_pages_words_whether_or_not_the_broker_names_it(reason: str) -> None:
    """One that speaks MQTT 5 may end the older link with 0x8E, or without a word."""
    said, remedy = table()["a second agent under the same name"]
    told = link(Broker("127.0.0.1", 1, "x"), *[reason] * TWIN_TIMES, was_up=True)
    assert said in told, told
    assert remedy in told, told


@pytest.mark.parametrize("turn", TURNS)
def test_a_wrong_turn_says_what_and_what_to_do(turn: str, tmp_path: Path) -> None:
    said, remedy = table()[turn]
    told = TURNS[turn](tmp_path)
    assert said in told, told
    assert remedy in told, told
