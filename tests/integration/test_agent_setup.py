"""`agent setup`: from a meter on a port and an invitation to a configuration that was tried."""

import argparse
import io
import json
import os
import pty as terminals
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import replace
from itertools import cycle
from pathlib import Path

import pytest

from agent.commands.setup import found_meter, places, setup
from agent.commands.setup.talk import Talk
from agent.config import load_config
from agent.link.plan_queue import HeardMonth
from agent.main import main
from edge_ldp.protocol.invitation import Invitation, InvitedBroker, InvitedStream
from edge_ldp.protocol.messages import topic
from edge_ldp.service.broker import Broker
from edge_ldp.service.mqtt import open_link
from tests.agent.meters.samples import capture, sealed
from tests.agent.samples import CEILING_W, DEVICE, FLEET, SLOT_S, make_plan
from tests.integration.certificates import Authority
from tests.integration.conftest import RealBroker
from tests.integration.test_tls import LISTENER

TELEGRAM = capture("swedish_e360.raw")
READINGS = ("power 2301 W", "10501076")
FUSE = ("--fuse", str(CEILING_W))
STREAM = InvitedStream("power", "power", "W", 0, CEILING_W, SLOT_S)
SECRET = "right horse \"battery' staple"  # noqa: S105 (a test's, with what quoting may break)


@contextmanager
def meter(link: Path, *telegrams: bytes) -> Iterator[Path]:
    """Give a port on which a telegram comes ten times a second, of several one after the other."""
    master, slave = os.openpty()
    link.symlink_to(os.ttyname(slave))
    stop = threading.Event()

    def speak() -> None:
        for telegram in cycle(telegrams or (TELEGRAM,)):
            if stop.wait(0.1):
                return
            with suppress(BlockingIOError):  # nobody reads: what was said is lost
                os.write(master, telegram)

    os.set_blocking(master, False)
    thread = threading.Thread(target=speak, daemon=True)
    thread.start()
    try:
        yield link
    finally:
        stop.set()
        thread.join()
        os.close(master)
        os.close(slave)


def invitation(port: int) -> Invitation:
    return Invitation(
        fleet=FLEET,
        device=DEVICE,
        broker=InvitedBroker("127.0.0.1", port, tls=False),
        username=DEVICE,
        password=SECRET,
        plan_keys=(),
        streams=(STREAM,),
    )


def is_kept(password: Path) -> bool:
    """Say whether the password stands in its file, and nobody else may read it."""
    return password.read_text() == SECRET + "\n" and password.stat().st_mode & 0o777 == 0o600


def command(*args: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command to its end in a thread, which may have a loop of its own."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), ThreadPoolExecutor(1) as thread:
        code = thread.submit(main, list(map(str, args))).result()
    return subprocess.CompletedProcess(args, code, out.getvalue(), err.getvalue())


def plan_of_now() -> bytes:
    return replace(make_plan(), issued_s=int(time.time())).to_json()


async def publish_plan(port: int) -> None:
    link = await open_link(Broker("127.0.0.1", port, "aggregator"))
    await link.publish(f"edge-ldp/v1/{FLEET}/plan/power", plan_of_now(), retain=True)
    await link.close()


async def test_an_invitation_and_a_port_make_a_configuration_that_works(
    tmp_path: Path, broker: RealBroker
) -> None:
    await publish_plan(broker.port)
    file, config = tmp_path / "invitation.json", tmp_path / "home" / "agent.toml"
    file.write_bytes(invitation(broker.port).to_json())
    with meter(tmp_path / "meter") as port:
        args = ("--invitation", file, "--port", port, "--clock", "assume", "--yes", *FUSE)
        done = command("setup", "-c", config, *args)
        assert done.returncode == 0, done.stdout + done.stderr
        again = command("setup", "-c", config, *args)
        replaced = command("setup", "-c", config, *args, "--replace")
        checked = command("check", "--live", "--json", "-c", config)
    assert not any(reading in done.stdout + done.stderr for reading in READINGS)
    assert SECRET not in done.stdout + done.stderr
    assert f"written: {config}, {config.parent / 'agent.password'}\n" in done.stdout
    assert "at most 2.72 times likelier" in " ".join(done.stdout.split())
    assert "a silence of 24 h 15 min" in " ".join(done.stdout.split())
    assert f"next: edge-ldp agent run -c {config}" in done.stdout
    assert f"delete {file}" in done.stdout
    made = load_config(config)
    assert (made.device.fleet, made.device.id) == (FLEET, DEVICE)
    assert made.meter is not None
    assert (made.meter.protocol, made.meter.port) == ("dsmr", str(port))
    assert made.window.reports == 8
    assert made.streams[0].ceiling == CEILING_W
    assert is_kept(Path(made.broker.password_file or ""))
    assert not any(reading in config.read_text() for reading in READINGS)
    assert again.returncode == 4
    assert "--replace it" in again.stderr
    assert replaced.returncode == 0
    assert (config.parent / "agent.toml.before").read_text() == config.read_text()
    assert (config.parent / "agent.password.before").is_file()
    assert checked.returncode == 0
    found = json.loads(checked.stdout)["live"]
    assert {one["outcome"] for one in found} == {"ok"}
    assert found[-1]["what"] == "plan power"
    assert set(found[0]) == {"what", "outcome", "told", "remedy"}


def first_start(place: Path, *more: str | Path) -> list[str]:
    """Return what an image's unit runs, with its boot partition and /etc in a directory."""
    text = (Path(__file__).parents[2] / "packaging" / "edge-ldp-agent-first.service").read_text()
    line, start = (
        one.partition("=")[2] for one in text.splitlines() if one.startswith("ExecStart=")
    )
    assert start == "systemctl enable --now --no-block edge-ldp-agent.service"
    _, agent, *words = shlex.split(line)
    assert agent == "agent"
    boot, etc = "/boot/firmware/", "/etc/edge-ldp/"
    assert f"ConditionPathExists={boot}edge-ldp.invitation" in text
    words = [one.replace(boot, f"{place}/").replace(etc, f"{place}/etc/") for one in words]
    return [*words, *map(str, more)]


async def test_AGT_37_an_image_takes_its_invitation_once_a_meter_is_there(
    tmp_path: Path, broker: RealBroker
) -> None:
    """It is tried again until all works; then the invitation is gone, and a second one refused."""
    await publish_plan(broker.port)
    file = tmp_path / "edge-ldp.invitation"
    made = replace(invitation(broker.port), once=True, expires_s=int(time.time()) + 3600)
    text = replace(made, group="elm-street").to_json()
    file.write_bytes(text)
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "agent.toml").write_text("# an example\n")
    words = first_start(tmp_path, "--port", tmp_path / "meter", "--clock", "assume", *FUSE)
    assert command(*words).returncode in (3, 4)
    assert file.read_bytes() == text
    with meter(tmp_path / "meter"):
        done = command(*words)
        assert done.returncode == 0, done.stdout + done.stderr
        assert not file.exists()
        assert "delete" not in done.stdout
        config = load_config(tmp_path / "etc" / "agent.toml")
        assert config.device.id == DEVICE
        assert "this home into group elm-street" in done.stdout
        assert HeardMonth(config, time.time).topics == [topic(FLEET, "group", "elm-street")]
        link = await open_link(Broker("127.0.0.1", broker.port, "one of that name"))
        await link.publish(f"edge-ldp/v1/{FLEET}/status/{DEVICE}", b"{}", retain=True)
        await link.close()
        file.write_bytes(text)
        again = command(*words)
        assert again.returncode == 4
        assert f"a device was heard as {DEVICE} already" in again.stderr
        assert "what the other kept unsent is lost" in again.stderr
        assert file.exists()
        assert command(*words, "--take-over").returncode == 0


def test_SER_52_ports_without_a_meter_do_not_hinder_the_one_that_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A PC lists ports that are not there, and on others something else speaks."""
    args = argparse.Namespace(port=None, set=[], seconds=3.0, config=tmp_path / "agent.toml")
    named = [{"path": "/dev/null", "description": ""}]
    monkeypatch.setattr(found_meter, "list_ports", lambda: named)
    with meter(tmp_path / "log", b"fan: 1200\r\n") as log:
        named.append({"path": str(log), "description": ""})
        assert found_meter.found_meter(args, Talk(is_silent=True), {"power"})[1] is None
        with meter(tmp_path / "meter") as path:
            named.append({"path": str(path), "description": ""})
            port, lines, _ = found_meter.found_meter(args, Talk(is_silent=True), {"power"})
    assert (port, 'protocol = "dsmr"' in (lines or ())) == (str(path), True)
    said = capsys.readouterr().out
    assert "/dev/null: not a serial port" in said
    assert "Or setup again, with: --set" in said


def test_what_is_written_where_the_service_looks_is_its_own_also_by_a_name_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place, state, owner = tmp_path / "etc", tmp_path / "state", os.geteuid()
    place.mkdir()
    state.mkdir()
    if owner == 0:
        owner = 12_345
        os.chown(state, owner, owner)
    monkeypatch.setattr(places, "SYSTEM", place)
    monkeypatch.setattr(places, "SYSTEM_STATE", state)
    monkeypatch.setattr(setup, "UNIT", place)
    monkeypatch.chdir(place)
    args = argparse.Namespace(config=Path("agent.toml"), invitation=None, state=None, page=None)
    places.write_new(args.config, "", 0o640)
    assert (place / "agent.toml").stat().st_uid == owner
    assert places.state_place(args, DEVICE) == str(state / f"{DEVICE}.db")
    assert setup.conclude(args, Talk(is_silent=True), failed=False) == 0
    assert "next: sudo systemctl enable --now edge-ldp-agent" in capsys.readouterr().out


def test_what_cannot_be_asked_is_named_as_an_option(tmp_path: Path, broker: RealBroker) -> None:
    with meter(tmp_path / "meter") as port:
        config = tmp_path / "agent.toml"
        turns = [
            ((), "--invitation or --broker"),
            (("--broker", f"127.0.0.1:{broker.port}"), "--ceiling"),
            (("--broker", f"127.0.0.1:{broker.port}", "--ceiling", "9000"), "--device"),
        ]
        for args, option in turns:
            done = command("setup", "-c", config, "--port", port, "--yes", *args)
            assert (done.returncode, option in done.stderr) == (2, True), done.stderr
        args = ("--broker", f"127.0.0.1:{broker.port}", "--ceiling", "9000", "--device", DEVICE)
        done = command(
            "setup", "-c", config, "--port", port, "--yes", *args, "--fleet", FLEET, "--no-tls"
        )
    assert done.returncode == 4, "there is no plan, and the clock may not be synchronised"
    assert "fix what fails, then: edge-ldp agent check --live" in done.stdout
    assert load_config(config).streams[0].ceiling == 9000


async def test_a_meter_that_tells_no_power_is_set_up_by_its_register_where_power_is_counted(
    tmp_path: Path, broker: RealBroker
) -> None:
    await publish_plan(broker.port)
    text = invitation(broker.port).to_text()
    energies = sealed("0-0:96.1.1(4530303939)", "1-0:1.8.0(00001.000*kWh)")
    with meter(tmp_path / "meter", energies) as port:
        args = ("--port", port, "--clock", "assume", "--yes", *FUSE, "--invitation", text)
        done = command("setup", "-c", tmp_path / "agent.toml", *args)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "The meter tells no power: stream power is" in done.stdout
    assert "steps of 4 W" in done.stdout
    (stream,) = load_config(tmp_path / "agent.toml").streams
    assert (stream.quantity, stream.source) == ("power", "energy_import")


async def test_a_sensor_that_prints_lines_is_set_up_by_the_options_that_setup_names(
    tmp_path: Path, broker: RealBroker
) -> None:
    await publish_plan(broker.port)
    config, line = tmp_path / "agent.toml", b'{"ENERGY": {"Power": 4711, "Total": 12.5}}\r\n'
    text = invitation(broker.port).to_text()
    with meter(tmp_path / "meter", line) as port:
        args = (
            "-c",
            config,
            "--port",
            port,
            "--invitation",
            text,
            "--clock",
            "assume",
            "--yes",
            *FUSE,
        )
        told = command("setup", *args, "--seconds", "2").stderr
        assert "lines of text with the names ENERGY.Power, ENERGY.Total" in told
        assert "4711" not in told
        assert not config.exists()
        named = shlex.split(told.rpartition("with: ")[2].replace("NAME", "ENERGY.Power"))
        done = command("setup", *args, *named)
    assert done.returncode == 0, done.stdout + done.stderr
    assert 'field = "ENERGY.Power"' in config.read_text()


def played(args: list[str], *answers: tuple[str, str]) -> tuple[int, str]:
    """Return how a setup ended on a terminal of its own, and what that showed.

    Each answer is typed when the text before it has been shown: a password's question forgets what
    was typed ahead.
    """
    master, slave = terminals.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "edge_ldp.cli", "agent", "setup", *args],
        stdin=slave,
        stdout=slave,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    os.close(slave)
    shown, seen, left = b"", 0, list(answers)
    with suppress(OSError):  # its end
        while part := os.read(master, 4096):
            shown += part
            if left and (at := shown.find(left[0][0].encode(), seen)) >= 0:
                seen = at + 1
                os.write(master, left.pop(0)[1].encode() + b"\n")
    os.close(master)
    assert left == [], shown.decode()
    return process.wait(), shown.decode()


async def test_without_an_invitation_all_is_asked_for_and_slips_are_mended(
    tmp_path: Path, make_broker: Callable[[str], RealBroker]
) -> None:
    authority, config = Authority(tmp_path / "ca"), tmp_path / "agent.toml"
    broker = make_broker(LISTENER.format(pair=authority.issue("good", "localhost")))
    link = await open_link(
        Broker("localhost", broker.port, "x", tls=True, ca_file=str(authority.ca))
    )
    await link.publish(f"edge-ldp/v1/{FLEET}/plan/power", plan_of_now(), retain=True)
    await link.close()
    with meter(tmp_path / "meter") as port:
        code, shown = played(
            ["-c", str(config), "--port", str(port), "--clock", "assume"],
            ("none, I know the broker): ", ""),
            ("is this your meter (y/n) [y]: ", ""),
            ("largest possible power, in W [17250]: ", "9"),
            ("Is it meant in kW?", str(CEILING_W)),
            ("reports, sums or both [reports]: ", ""),
            ("NAME:PORT: ", "localhost:x"),
            ("NAME:PORT: ", f"localhost:{broker.port}"),
            ("does it use TLS (y/n) [y]: ", ""),
            ("(Enter: a public one): ", f"{tmp_path}/none.pem"),
            ("(Enter: a public one): ", str(authority.ca)),
            ("name in the fleet: ", "Home 7"),
            ("name in the fleet: ", DEVICE),
            (f"user name at the broker [{DEVICE}]: ", ""),
            (f"password of {DEVICE} (Enter: none): ", SECRET),
            ("the fleet's name: ", "My street"),
            ("the fleet's name: ", FLEET),
            ("(the fleet's plans need 1; smaller hides more) [1]: ", "12"),
            ("or type another [12]: ", "0.5"),
            ("or type another [0.5]: ", "1"),
            ("is that what you allow (y/n) [y]: ", ""),
        )
    assert code == 0, shown
    assert SECRET not in shown
    assert all(reading in shown for reading in READINGS)
    made = load_config(config)
    assert (made.device.fleet, made.device.id) == (FLEET, DEVICE)
    assert (made.broker.use_port, made.broker.use_tls) == (broker.port, True)
    assert (made.streams[0].ceiling, made.policy.epsilon) == (CEILING_W, 1)
    assert is_kept(Path(made.broker.password_file or ""))


def invited(broker: InvitedBroker | None = None, **stream: object) -> str:
    """Return an invitation's text with a stream, or a broker, that is another one."""
    streams = (replace(STREAM, **stream),)  # type: ignore[arg-type]
    made = replace(invitation(1), streams=streams)
    return (made if broker is None else replace(made, broker=broker)).to_json().decode()


NOTHING = "nothing was written"
OPEN = InvitedBroker("broker.example", 1883, tls=False)
NOT_TAKEN: dict[str, tuple[str, tuple[str, ...]]] = {
    "slots of 1 s": (invited(slot_seconds=1), ("single appliances", "--least-slot 1", NOTHING)),
    "a span of 504 W": (
        invited(low=550, ceiling=1054),
        ("504 W of the 4,000 W", "--fuse 504", NOTHING),
    ),
    "no TLS": (invited(broker=OPEN), ("without TLS", "--allow-plaintext", NOTHING)),
    "an ε above the owner's": (
        invited(epsilon="4"),
        ("plans need ε 4", "nothing is ever reported", "--epsilon 4 (ε 31.7 a day", NOTHING),
    ),
    "what the meter never tells": (
        invited(quantity="apparent_power", unit="VA"),
        ("the fleet counts apparent_power, and this meter tells power",),
    ),
    "no place for its files": (invited(), ("another place: -c, or --state", NOTHING)),
    "half an invitation": ("edge-ldp:torn!", ("is it whole?",)),
    "an empty one": ("{}", ("version: missing",)),
    "no file": ("/no/such/file", ("name the invitation's file",)),
}


@pytest.mark.parametrize("what", NOT_TAKEN)
def test_an_invitation_that_loosens_is_not_taken_where_nobody_is_asked_PLN_19_PLN_20(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    text, told = NOT_TAKEN[what]
    config = tmp_path / "home" / "agent.toml"
    if what == "no place for its files":
        config.parent.touch()
    with meter(tmp_path / "meter") as port:
        args = ["-c", str(config), "--port", str(port), "--yes", *FUSE, "--invitation", text]
        assert main(["setup", *args]) == 4
    heard = capsys.readouterr()
    assert all(one in heard.err for one in told), heard.err
    assert SECRET not in heard.out + heard.err
    assert not list(tmp_path.glob("**/agent*"))


async def test_the_brokers_plans_are_asked_before_anything_is_written_PLN_20(
    tmp_path: Path, broker: RealBroker
) -> None:
    """The invitation is silent, or older than the plan."""
    link = await open_link(Broker("127.0.0.1", broker.port, "publisher"))
    now_s = int(time.time())
    dear = replace(make_plan(1, epsilon=4), issued_s=now_s, expires_s=now_s + 86_400)
    await link.publish(f"edge-ldp/v1/{FLEET}/plan/power", dear.to_json(), retain=True)
    await link.close()
    config = tmp_path / "agent.toml"
    for named in (None, "2"):
        streams = (replace(STREAM, epsilon=named),)
        text = replace(invitation(broker.port), streams=streams).to_json().decode()
        with meter(tmp_path / f"meter{named}") as port:
            args = ("setup", "-c", config, "--port", port, "--yes", *FUSE, "--invitation", text)
            done = command(*args)
        assert done.returncode == 4
        assert "the broker's plans need ε 4" in done.stdout
        assert "nothing was written" in done.stderr
        assert "--epsilon 4" in done.stderr
        assert not config.exists()


async def test_what_the_owner_allows_is_taken_and_what_it_adds_up_to_is_told_PLN_19_PLN_20(
    tmp_path: Path, broker: RealBroker
) -> None:
    """Each is asked for by itself, and Enter is no. 127.1: here, by a name not known as such."""
    await publish_plan(broker.port)
    loose = replace(
        invitation(broker.port),
        streams=(replace(STREAM, epsilon="1"),),
        broker=InvitedBroker("127.1", broker.port, tls=False),
    )
    file, config = tmp_path / "invitation.json", tmp_path / "agent.toml"
    file.write_bytes(loose.to_json())
    taken = ("take it anyway (y/n) [n]: ", "y")
    with meter(tmp_path / "meter") as port:
        args = ["-c", str(config), "--port", str(port), "--clock", "assume"]
        code, shown = played(
            [*args, "--invitation", str(file)],
            ("largest power of your connection", ""),
            ("without TLS", "y"),
            ("take it anyway (y/n) [n]: ", ""),
        )
        assert code == 4, shown
        assert not config.exists()
        code, shown = played(
            [*args, "--invitation", str(file)],
            ("largest power of your connection", "9000"),
            taken,
            taken,
            ("is this your meter (y/n) [y]: ", ""),
            ("reports, sums or both [reports]: ", ""),
            ("need 1; smaller hides more) [1]: ", "0.5"),
            ("nothing is ever reported", "1"),
            ("is that what you allow (y/n) [y]: ", ""),
        )
    assert "ε 7.92 a day and 237.5 in 30 days" in " ".join(shown.split())
    made = load_config(config)
    assert made.broker.allow_plaintext
    assert made.policy.epsilon == 1
    assert code == 0, shown
