"""A fleet as `setup` writes it, on a real broker: who gets in, who does not, and until when."""

import asyncio
import json
import shlex
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from aggregator.config import load_config, read_password
from aggregator.counting.refusals import Rules
from aggregator.intake.intake import commit
from aggregator.main import main
from aggregator.plans.keys import read_signer
from aggregator.running.service import make_broker
from aggregator.store.opening import open_store
from edge_ldp.protocol.invitation import parse_invitation
from edge_ldp.protocol.messages import Status, topic
from edge_ldp.protocol.plan import parse_plan
from edge_ldp.protocol.signing import Keyring
from edge_ldp.service.mqtt import Broker, LinkLostError, Message, RefusedError, open_link
from edge_ldp.service.tls import shown_until
from edge_ldp.service.verify import verify
from tests import needs
from tests.disk import place
from tests.integration.conftest import free_port
from tests.integration.test_first_hour_operator import PAGE, commands_of
from tests.processes import answers

START_S = 300
LOCAL, LOCAL_6 = "0100007F", "00000000000000000000000001000000"  # 127.0.0.1 and ::1


class Fleet:
    """What `setup` wrote into a directory that the broker's user may enter, and its broker."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.place = Path(tempfile.mkdtemp(prefix="fleet-", dir=place()))
        self.place.chmod(0o755)
        self.config = self.place / "fleet" / "aggregator.toml"
        self._capsys = capsys
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, *command: str, code: int = 0) -> str:
        self._capsys.readouterr()
        assert main(command) == code, self._capsys.readouterr().err
        said = self._capsys.readouterr()
        return said.out + said.err

    def setup(self, *options: str) -> dict[str, Any]:
        ports = ("--port", str(free_port()), "--tls-port", str(free_port()))
        place = str(self.config.parent)
        return dict(json.loads(self.run("setup", place, *ports, *options, "--json")))

    def devices(self, verb: str, *rest: str, code: int = 0) -> str:
        return self.run("devices", verb, "-c", str(self.config), *rest, code=code)

    def start(self, ports: list[int]) -> None:
        file = self.config.parent / "broker" / "mosquitto.conf"
        command = [needs.program("mosquitto"), "-c", str(file)]
        self._process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + START_S
        for port in ports:
            while not answers(port):
                assert self._process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.02)

    def close(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(START_S)
        shutil.rmtree(self.place)


def listening(port: int) -> set[str]:
    """Return the addresses that a port is open at, as the kernel writes them."""
    lines = [
        line.split()
        for name in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]
    ]
    local = [line[1].split(":") for line in lines if line[3] == "0A"]  # it listens
    return {address for address, at in local if int(at, 16) == port}


@pytest.fixture
def fleet(capsys: pytest.CaptureFixture[str]) -> Iterator[Fleet]:
    made = Fleet(capsys)
    yield made
    made.close()


def heard(fleet: Fleet, name: str) -> None:
    """Let a device's first status be committed."""
    said = Status("online", "1", ()).to_json()
    rules = Rules(streams={}, devices=None, max_devices=9, window_s=9, tolerance_s=9, now_s=1.8e9)
    store = open_store(load_config(fleet.config), str(fleet.config))
    message = Message(topic("street", "status", name), said)
    commit(store, fleet="street", messages=[message], rules=rules, name=uuid4())
    store.close()


def invited(fleet: Fleet, name: str) -> Broker:
    """Return how an invited device connects; `localhost` stands in for the broker's name."""
    text = (fleet.config.parent / "invitations" / f"{name}.invitation").read_bytes()
    found = parse_invitation(text)
    assert (found.fleet, found.device, found.username) == ("street", name, name)
    ca_file = None
    if found.broker.ca is not None:
        ca_file = fleet.place / "ca.pem"
        ca_file.write_text(found.broker.ca)
    return Broker(
        found.broker.host,
        found.broker.port,
        name,
        username=found.username,
        password=found.password,
        tls=found.broker.tls,
        ca_file=None if ca_file is None else str(ca_file),
    )


async def may_publish(broker: Broker, at: str) -> bool:
    """Say whether a login gets in and may write to a topic (MQTT 5 says so in its PUBACK)."""
    try:
        link = await open_link(broker)
    except LinkLostError:
        return False
    try:
        await link.publish(at, b"x")
    except (RefusedError, LinkLostError):
        return False
    finally:
        await link.close()
    return True


async def becomes(broker: Broker, at: str, *, allowed: bool) -> None:
    """Return once a login may, or may not: the broker reads its passwords when it gets to it."""
    async with asyncio.timeout(START_S):
        while await may_publish(broker, at) != allowed:  # noqa: ASYNC110 (nobody tells us)
            await asyncio.sleep(0.05)


def test_an_invited_device_gets_in_by_tls_until_it_is_revoked(fleet: Fleet) -> None:
    view = fleet.setup("--fleet", "street", "--host", "localhost")
    assert {"ca.key", "plan.key", "plan-next.key", "broker/broker.key", "broker/ca.pem"} <= set(
        view["files"]
    )
    config = load_config(fleet.config)
    assert config.devices is not None
    port = config.devices.use_port
    fleet.start([port, config.broker.use_port])
    told = json.loads(fleet.devices("invite", "home-1", "home-2", "--group", "feeder-1", "--json"))
    assert told["broker_told"]
    assert [one["device"] for one in told["devices"]] == ["home-1", "home-2"]

    async def scenario() -> None:
        ours = make_broker(config, read_password(config.broker, "f"))
        assert await may_publish(ours, topic("street", "plan", "power"))
        assert not await may_publish(ours, topic("street", "report", "home-1"))
        sums, found = topic("street", "sum", "power"), "homeassistant/sensor/edge-ldp-street/{}"
        for at in (sums, found.format("power-hour/config")):
            assert await may_publish(ours, at)
        assert not await may_publish(ours, "homeassistant/sensor/another/power-hour/config")
        for name, other in (("home-1", "home-2"), ("home-2", "home-1")):
            login = invited(fleet, name)
            await becomes(login, topic("street", "report", name), allowed=True)
            assert not await may_publish(login, topic("street", "report", other))
            assert not await may_publish(login, topic("avenue", "report", name))
            assert not await may_publish(login, sums)
        link = await open_link(invited(fleet, "home-2"))
        said = await asyncio.to_thread(fleet.devices, "revoke", "home-2")
        assert "1 login at the broker ended: home-2\n" in said
        with pytest.raises(LinkLostError):  # also the connection that it had
            await asyncio.wait_for(link.receive(), START_S)
        await link.close()
        await becomes(invited(fleet, "home-2"), topic("street", "report", "home-2"), allowed=False)
        assert await may_publish(invited(fleet, "home-1"), topic("street", "report", "home-1"))

    asyncio.run(scenario())
    assert "invite --again" in fleet.devices("reinstate", "home-2")


def test_NET_29_certificates_are_renewed_while_devices_trust_the_old_ones_or_the_new(
    fleet: Fleet,
) -> None:
    """A link stays, and the same key makes old and new authority one: devices change one by one."""
    fleet.setup("--fleet", "street", "--host", "localhost")
    config = load_config(fleet.config)
    assert config.devices is not None
    fleet.start([config.devices.use_port])
    broker, key = fleet.config.parent / "broker", fleet.config.parent / "ca.key"
    fleet.devices("invite", "home-1")
    old = invited(fleet, "home-1")
    kept = fleet.config.parent / "old-ca.pem"
    kept.write_bytes((broker / "ca.pem").read_bytes())
    old = replace(old, ca_file=str(kept))
    before = [(broker / name).read_bytes() for name in ("broker.pem", "broker.key", "ca.pem")]

    async def scenario() -> None:
        link = await open_link(old)
        words = ("renew", "-c", str(fleet.config), "--ca-key", str(key), "--json")
        told = json.loads(await asyncio.to_thread(fleet.run, *words))
        assert (len(told["files"]), told["broker_told"]) == (2, True)
        assert told["valid_s"] == shown_until(old)
        told = json.loads(await asyncio.to_thread(fleet.run, *words, "--authority"))
        assert len(told["files"]) == 3
        await link.publish(topic("street", "status", "home-1"), b"{}")
        await link.close()
        for ca_file in (kept, broker / "ca.pem"):
            assert await may_publish(
                replace(old, ca_file=str(ca_file)), topic("street", "status", "home-1")
            )

    asyncio.run(scenario())
    after = [(broker / name).read_bytes() for name in ("broker.pem", "broker.key", "ca.pem")]
    assert all(one != other for one, other in zip(before, after, strict=True))
    assert stat.S_IMODE((broker / "broker.key").stat().st_mode) == 0o600
    assert "renew" in fleet.run("audit", "-c", str(fleet.config))
    (fleet.config.parent / "ca.key").write_bytes((broker / "broker.key").read_bytes())
    words = ("renew", "-c", str(fleet.config), "--ca-key", str(key))
    assert "the key is not the authority's" in fleet.run(*words, code=2)


@pytest.mark.parametrize(
    ("host", "address"), [("127.0.0.1", LOCAL), ("localhost", LOCAL), ("::1", LOCAL_6)]
)
def test_a_host_that_is_this_machine_opens_nothing_to_others(
    fleet: Fleet, host: str, address: str
) -> None:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as sock:
        try:
            sock.bind((host, 0))
        except OSError:
            needs.missing("an address ::1")
    fleet.setup("--host", host)
    config = load_config(fleet.config)
    assert config.devices is not None
    fleet.start([config.broker.use_port])
    deadline = time.monotonic() + START_S
    while not (found := listening(config.devices.use_port)):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert found == {address}
    assert listening(config.broker.use_port) == {LOCAL}


def test_the_pages_block_for_real_homes_leads_to_logins_and_a_signed_plan(fleet: Fleet) -> None:
    """As docs/first-hour-operator.md has it, but for the place, the ports and the broker's name."""
    page = PAGE.read_text().replace("/srv/fleet", str(fleet.config.parent))
    page = page.replace("broker.example.net", "localhost")
    lines = [shlex.split(line.rstrip(" &")) for line in commands_of(page, "Real homes")]
    setup, broker, run, invite = lines
    ports = [free_port(), free_port()]
    fleet.run(*setup[2:], "--port", str(ports[0]), "--tls-port", str(ports[1]))
    conf = str(fleet.config.parent / "broker" / "mosquitto.conf")
    assert broker == ["/usr/sbin/mosquitto", "-d", "-c", conf]  # -d: we end what we start
    fleet.start(ports)
    assert run[0] == invite[0] == "edge-ldp"
    command = [sys.executable, "-m", "edge_ldp.cli", *run[1:]]
    service = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        fleet.run(*invite[2:])

        async def scenario() -> None:
            for name in ("home-0001", "home-0002"):
                login = invited(fleet, name)
                await becomes(login, topic("street", "report", name), allowed=True)
                link = await open_link(login)
                await link.subscribe([topic("street", "plan", "power")])
                plan = await asyncio.wait_for(link.receive(), START_S)
                file = fleet.config.parent / "invitations" / f"{name}.invitation"
                keys = map(bytes.fromhex, parse_invitation(file.read_bytes()).plan_keys)
                first, following = keys
                assert parse_plan(Keyring([first], verify).open(plan.payload)).fleet == "street"
                assert following == read_signer(fleet.config.with_name("plan-next.key")).public
                await link.close()

        asyncio.run(scenario())
    finally:
        service.terminate()
        assert service.wait(START_S) == 0


def test_AGT_37_invitations_that_run_out_unused_end_and_a_new_device_is_told_what_it_loses(
    fleet: Fleet,
) -> None:
    fleet.setup("--fleet", "street")
    said = fleet.devices("invite", "home-1", "home-2", "home-3", "--days", "14", "--once")
    assert "good until " in said
    place = fleet.config.parent / "invitations"
    found = parse_invitation((place / "home-1.invitation").read_bytes())
    assert found.once
    assert found.expires_s is not None
    assert not found.group
    fleet.devices("group", "home-2", "--to", "elm-street")
    fleet.devices("invite", "home-2", "--again")  # and for ever
    assert parse_invitation((place / "home-2.invitation").read_bytes()).group == "elm-street"
    config = load_config(fleet.config)
    assert config.devices is not None
    logins = Path(config.devices.passwords_file)
    kept = logins.with_name(logins.name + ".invited")
    assert json.loads(kept.read_text()) == dict.fromkeys(("home-1", "home-3"), found.expires_s)
    kept.write_text(json.dumps({"home-1": 1, "home-3": found.expires_s}))
    view = json.loads(fleet.devices("expire", "--json"))
    assert view == {"ended": ["home-1"], "used": [], "open": {"home-3": found.expires_s},
                    "broker_told": False}  # fmt: skip
    names = [line.partition(":")[0] for line in logins.read_text().splitlines()]
    assert {"home-2", "home-3"} <= set(names)
    assert "home-1" not in names
    heard(fleet, "home-3")
    assert "1 were used: home-3" in fleet.devices("expire")
    assert "no invitation runs out" in fleet.devices("expire")
    told = " ".join(fleet.devices("invite", "home-3", "home-2", "--again").split())
    assert "heard before: home-3. A device that takes such an invitation anew begins with" in told


def test_an_invitation_is_a_picture_that_a_camera_reads(fleet: Fleet) -> None:
    segno = pytest.importorskip("segno")
    fleet.setup("--fleet", "street", "--host", "localhost")
    fleet.devices("invite", "home-1", "--qr", "svg")
    place = fleet.config.parent / "invitations"
    picture = place / "home-1.svg"
    assert picture.stat().st_mode & 0o777 == 0o600
    text = parse_invitation((place / "home-1.invitation").read_bytes()).to_text()
    code = segno.make(text, micro=False, boost_error=False, error="l")
    assert f'width="{(code.symbol_size()[0]) * 4}"' in picture.read_text()


def test_thousands_are_invited_from_a_file_with_texts_for_qr_codes(fleet: Fleet) -> None:
    fleet.setup("--fleet", "street", "--slot-seconds", "300")
    names = [f"home-{number:04d}" for number in range(2000)]
    file, texts = fleet.place / "devices.csv", fleet.place / "texts.csv"
    file.write_text("device,group\n" + "".join(f"{name},feeder-1\n" for name in names))
    view = json.loads(fleet.devices("invite", "--csv", str(file), "--texts", str(texts), "--json"))
    assert [one["device"] for one in view["devices"]] == names
    assert not view["broker_told"]
    lines = texts.read_text().splitlines()
    assert (len(lines), texts.stat().st_mode & 0o777) == (2001, 0o600)
    name, text = lines[1].split(",")
    found = parse_invitation(text.encode())
    assert (name, found.device, found.plan_keys != ()) == ("home-0000", "home-0000", True)
    assert [(s.quantity, s.unit, s.slot_seconds) for s in found.streams] == [("power", "W", 300)]
    kept = json.loads(fleet.devices("list", "--json"))["devices"]
    assert {(one["device"], one["group"]) for one in kept} == {(name, "feeder-1") for name in names}
    files = list((fleet.config.parent / "invitations").iterdir())
    assert {one.stat().st_mode & 0o777 for one in files} == {0o600}


def test_a_configuration_without_devices_invites_nobody(fleet: Fleet) -> None:
    fleet.setup()
    text = fleet.config.read_text()
    begin, end = text.index("[devices]"), text.index("[intake]")
    fleet.config.write_text(text[:begin] + text[end:])
    assert "devices: expected a [devices] with host" in fleet.devices("invite", "a", code=2)
    assert "expected names of devices, or --csv" in fleet.devices("invite", code=2)
    assert "is a login of the fleet itself" in fleet.devices("invite", "aggregator", code=2)
