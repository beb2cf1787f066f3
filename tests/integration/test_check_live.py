"""`agent check --live`: every part that a report needs, tried against real ones (SER_26)."""

import asyncio
import re
import subprocess
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.commands import live
from agent.commands.live import try_all
from agent.config import AgentConfig, parse_config
from agent.meters.section import MeterTable
from agent.running.health_file import forget_health, note_health
from aggregator.plans.keys import make_key, read_signer
from edge_ldp.service.broker import Broker, LinkLostError, RefusedError
from edge_ldp.service.clock import Clock
from edge_ldp.service.mqtt import open_link
from edge_ldp.service.trial import Finding
from edge_ldp.service.verify import keyring
from firmware_stubs.meters import PtyPort
from firmware_stubs.meters.readout import readout_telegram
from tests import needs
from tests.agent.meters.samples import capture, sealed
from tests.agent.samples import DEVICE, FLEET, config_text, make_plan
from tests.integration.conftest import HOST, RealBroker, free_port

MakeBroker = Callable[[str], RealBroker]


WATTS = capture("swedish_e360.raw")
ENERGIES = sealed("1-0:1.8.0(00000001.000*kWh)")
TEXT = readout_telegram(meter_id="1EMH0012345678", time_s=0, import_wh=5, power_w=378)
SECRET = "right-horse"  # noqa: S105 (a test's)
GUARDED = """
listener {port} 127.0.0.1
user root
allow_anonymous false
password_file {directory}/passwords
acl_file {directory}/acl
log_dest file {directory}/mosquitto.log
"""


def guarded(directory: Path) -> str:
    """Return the configuration of a broker that lets one device in, to read plans and no more."""
    program = needs.program("mosquitto_passwd")
    subprocess.run([program, "-b", "-c", directory / "passwords", DEVICE, SECRET], check=True)
    give(directory, "read plan/+")
    return GUARDED.format(port="{port}", directory=directory)


def give(directory: Path, *rights: str) -> None:
    lines = [f"topic {one.replace(' ', f' edge-ldp/v1/{FLEET}/')}" for one in rights]
    (directory / "acl").write_text("\n".join([f"user {DEVICE}", *lines, ""]))


@asynccontextmanager
async def speaking(pty: PtyPort, telegram: bytes) -> AsyncIterator[None]:
    async def speak() -> None:
        while True:
            await pty.write(telegram)
            await asyncio.sleep(0.05)

    task = asyncio.create_task(speak())
    try:
        yield
    finally:
        task.cancel()


async def tried(config: AgentConfig, **more: Any) -> dict[str, Finding]:
    clock = Clock()
    more = {"plan_s": 0.5, **more}
    found = await try_all(config, more.pop("password", None), None, clock, **more)
    return {verdict.what: verdict for verdict in found}


def fails(found: dict[str, Finding]) -> list[str]:
    return [what for what, one in found.items() if one.outcome == "fails"]


def untried(found: dict[str, Finding]) -> dict[str, str]:
    return {what: one.told for what, one in found.items() if one.outcome == "untried"}


def after(failed: str, *parts: str) -> dict[str, str]:
    """Return what is untried once a part on the way to the broker failed."""
    return dict.fromkeys(parts, f"{failed} fails, see above")


def configured(tmp_path: Path, pty: PtyPort, port: int, **more: Any) -> AgentConfig:
    text = config_text(tmp_path / "state.db", port=pty.link, broker_port=port, **more)
    return parse_config(text, "agent.toml")


async def publish_plan(port: int, **changes: Any) -> None:
    link = await open_link(Broker("127.0.0.1", port, "aggregator"))
    payload = replace(make_plan(**changes), issued_s=int(time.time())).to_json()
    await link.publish(f"edge-ldp/v1/{FLEET}/plan/power", payload, retain=True)
    await link.close()


async def test_what_works_is_ok_and_nothing_is_spent_or_kept(
    tmp_path: Path, pty: PtyPort, broker: RealBroker
) -> None:
    await publish_plan(broker.port)
    async with speaking(pty, WATTS):
        found = await tried(configured(tmp_path, pty, broker.port), plan_s=60)
    assert not untried(found)
    assert not fails(found)
    parts = "state clock port telegram quantities name connection login rights"
    assert list(found) == [*parts.split(), "plan power"]
    assert "nobody listens yet" in found["rights"].told
    assert not (tmp_path / "state.db").exists()
    shown = "".join(verdict.text() for verdict in found.values())
    assert "10501076" not in shown, "a reading"


@pytest.mark.parametrize(
    ("meter", "proof"),
    [
        ("", "of dsmr, whole and proved"),
        ('crc = "absent-allowed"', "of dsmr, whole"),
        (
            'protocol = "iec62056-21"',
            "of iec62056-21, whole; this protocol has no checksum to prove it",
        ),
    ],
    ids=["a checksum", "perhaps one", "none"],
)
async def test_a_telegram_without_a_checksum_is_not_called_proved(
    tmp_path: Path, pty: PtyPort, meter: str, proof: str
) -> None:
    telegram = TEXT if "iec62056-21" in meter else WATTS
    async with speaking(pty, telegram):
        found = await tried(configured(tmp_path, pty, free_port(), meter=meter))
    assert (found["telegram"].outcome, found["telegram"].told) == ("ok", proof)


async def retained(broker: Broker, *filters: str, end: str = "end") -> dict[str, bytes]:
    """Return what the broker retains; what was sent after asking comes last, so all is here."""
    link = await open_link(broker)
    await link.subscribe([*filters, end])
    await link.publish(end, b"end")
    found: dict[str, bytes] = {}
    while (message := await link.receive()).topic != end:
        found[message.topic] = message.payload
    await link.close()
    return found


async def test_the_broker_holds_afterwards_what_it_held_before(
    tmp_path: Path, pty: PtyPort, broker: RealBroker
) -> None:
    pty.unplug()
    config, looks = configured(tmp_path, pty, broker.port), Broker(HOST, broker.port, "looks")
    for _ in range(2):  # nothing at first, then what an agent that runs has said of itself
        before = await retained(looks, "#")
        assert (await tried(config))["rights"].outcome == "ok"
        assert await retained(looks, "#") == before
        link = await open_link(Broker("127.0.0.1", broker.port, "agent"))
        await link.publish(f"edge-ldp/v1/{FLEET}/status/{DEVICE}", b"online", retain=True)
        await link.close()


async def test_SER_26_a_meter_that_never_tells_the_quantity_fails(
    tmp_path: Path, pty: PtyPort, broker: RealBroker
) -> None:
    async with speaking(pty, ENERGIES):
        found = await tried(configured(tmp_path, pty, broker.port))
    assert found["telegram"].outcome == "ok"
    assert found["quantities"].outcome == "fails"
    assert "energy_import (Wh), and no power (stream power)" in found["quantities"].told
    assert found["plan power"].outcome == "fails"
    assert f"fleet {FLEET}" in found["plan power"].remedy


@pytest.mark.parametrize(
    ("lines", "ahead_s", "verdict"),
    [
        (["0-0:1.0.0(231029120000W)"], 0, ("ok", "agree")),
        (["0-0:1.0.0(231029120000W)"], 3600, ("fails", "disagree by more than")),
        ([], 0, ("fails", "time is in doubt")),
    ],
    ids=["right", "an hour off", "none"],
)
async def test_a_meter_that_dates_its_telegrams_is_held_against_our_clock(
    tmp_path: Path, pty: PtyPort, lines: list[str], ahead_s: int, verdict: tuple[str, str]
) -> None:
    outcome, told = verdict
    config = configured(tmp_path, pty, free_port(), meter='date_by = "meter"')
    clock = Clock(1_698_577_200 + ahead_s, time.time(), 1)  # 2023-10-29 12:00 of winter time
    async with speaking(pty, sealed(*lines, "1-0:1.7.0(00.500*kW)")):
        found = {one.what: one for one in await try_all(config, None, None, clock, plan_s=0.5)}
    assert (found["date_by"].outcome, told in found["date_by"].told) == (outcome, True)
    assert ('date_by = "arrival"' in found["date_by"].remedy) == (outcome == "fails")


async def test_a_plan_that_the_policy_refuses_names_its_numbers(
    tmp_path: Path, pty: PtyPort, broker: RealBroker
) -> None:
    await publish_plan(broker.port, epsilon=2)
    async with speaking(pty, WATTS):
        found = await tried(configured(tmp_path, pty, broker.port), plan_s=60)
    told = found["plan power"].told
    assert re.search(r"ratio, e\^1\.99\d+: at most e\^0\.99\d+ \(the plan asks ε 2, this", told)
    assert "this home allows 1)" in told


async def test_a_port_that_is_not_there_and_a_broker_that_is_gone(
    tmp_path: Path, pty: PtyPort, broker: RealBroker
) -> None:
    pty.unplug()
    broker.stop()
    found = await tried(configured(tmp_path, pty, broker.port))
    assert "edge-ldp agent ports" in found["port"].remedy
    assert fails(found) == ["port", "connection"]
    unheard = dict.fromkeys(("telegram", "quantities"), "the port could not be opened")
    assert untried(found) == unheard | after("connection", "login", "rights", "plan power")
    assert "nothing listens there" in found["connection"].remedy


@pytest.mark.parametrize(
    ("heard_s", "quantity", "verdict"),
    [
        ([14.9], "power", None),
        ([3.0, 13.0, 23.0], "power", None),
        ([40.0, 115.2], "energy_import", ("ok", "every 76 s, not every 10 s: write [meter] int")),
        ([40.0, 491.0], "energy_import", ("fails", "a telegram each 451 s is too rare for energy")),
        ([40.0, 491.0], "power", ("ok", "interval_s = 451")),
        ([20.0], "power", ("ok", "interval_s = 20")),
    ],
)
def test_SER_32_a_slow_meters_interval_is_held_against_the_slot(
    tmp_path: Path, heard_s: list[float], quantity: str, verdict: tuple[str, str] | None
) -> None:
    text = config_text(tmp_path / "state.db", quantities=(quantity,))
    config = parse_config(text, "agent.toml")
    found = live._interval(config.all_meters[0], config.streams, heard_s)  # noqa: SLF001
    assert [(one.outcome, verdict and verdict[1] in one.told) for one in found] == (
        [(verdict[0], True)] if verdict else []
    )


async def test_a_silent_meter_leaves_quantities_and_its_clock_untried(
    tmp_path: Path, pty: PtyPort, broker: RealBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = configured(tmp_path, pty, broker.port, meter='date_by = "meter"')
    monkeypatch.setattr(live, "TELEGRAM_S", 0.2)
    monkeypatch.setattr(MeterTable, "expected_s", 0.05)
    found = await tried(config)
    assert "nothing was received" in found["telegram"].told
    assert f"`edge-ldp agent probe --port {pty.link}`" in found["telegram"].remedy
    told = dict.fromkeys(("quantities", "date_by"), "no telegram came")
    assert untried(found) == told


async def test_a_running_agent_keeps_its_port_and_its_session(
    tmp_path: Path, pty: PtyPort, broker: RealBroker
) -> None:
    config = configured(tmp_path, pty, broker.port)
    note_health(tmp_path / "state.db", "ok")
    try:
        found = await tried(config)
    finally:
        forget_health(tmp_path / "state.db")
    assert found["port"].outcome == "untried"
    assert "it says: ok" in found["port"].told
    assert found["telegram"] == Finding("telegram", "untried", "the agent has the port")
    assert found["quantities"] == Finding("quantities", "untried", "the agent has the port")
    assert found["rights"].outcome == "ok"


async def test_a_wrong_password_and_missing_rights_are_told_apart(
    tmp_path: Path, pty: PtyPort, make_broker: MakeBroker
) -> None:
    broker = make_broker(guarded(tmp_path))
    config = configured(tmp_path, pty, broker.port, broker=f'username = "{DEVICE}"')
    pty.unplug()
    found = await tried(config, password="wrong")  # noqa: S106 (a test's)
    assert found["connection"].outcome == "ok"
    assert found["login"].outcome == "fails"
    assert "access list" in found["login"].remedy
    assert {"rights", "plan power"} < set(untried(found))
    found = await tried(config, password=SECRET)
    assert found["login"].outcome == "ok"
    assert found["rights"].outcome == "fails"
    assert f"status/{DEVICE}: not authorized" in found["rights"].told
    assert f"report/{DEVICE}: not authorized" in found["rights"].told
    names = f"are [device] fleet ({FLEET}) and id ({DEVICE}) right? Then the broker's access list"
    assert found["rights"].remedy == f"{names} must give {DEVICE} its topics"
    assert all(SECRET not in verdict.text() for verdict in found.values())


ALL_RIGHTS = (
    "read plan/+",
    f"read receipt/{DEVICE}",
    f"write status/{DEVICE}",
    f"write report/{DEVICE}",
)


@pytest.mark.parametrize("missing", [f"write status/{DEVICE}", f"write report/{DEVICE}", ""])
async def test_each_right_to_send_is_tried_and_the_missing_one_named(
    tmp_path: Path, pty: PtyPort, make_broker: MakeBroker, missing: str
) -> None:
    pty.unplug()
    text = guarded(tmp_path)
    give(tmp_path, *(one for one in ALL_RIGHTS if one != missing))
    broker = make_broker(text)
    config = configured(tmp_path, pty, broker.port, broker=f'username = "{DEVICE}"')
    rights = (await tried(config, password=SECRET))["rights"]
    if missing:
        topic = missing.removeprefix("write ")
        assert rights.told == f"edge-ldp/v1/{FLEET}/{topic}: not authorized"
    else:
        assert rights.outcome == "ok"


async def test_who_listens_to_reports_is_noticed_and_gets_an_empty_message(
    tmp_path: Path, pty: PtyPort, broker: RealBroker
) -> None:
    pty.unplug()
    link = await open_link(Broker("127.0.0.1", broker.port, "aggregator"))
    await link.subscribe([f"edge-ldp/v1/{FLEET}/report/+"])
    found = await tried(configured(tmp_path, pty, broker.port))
    assert found["rights"].told == "plans, receipts, status, reports"
    assert (await link.receive()).payload == b""
    await link.close()


class Losing:
    """A link that is lost once it is asked for what it received, or before."""

    broker, protocol = Broker("broker.example", 1883, "x"), "5"

    def __init__(self, *, at_once: bool = False, refused: str = "") -> None:
        self.at_once, self.refused = at_once, refused

    async def subscribe(self, _topics: list[str]) -> None:
        if self.at_once:
            raise LinkLostError("broker.example:1883", "Connection refused")
        if self.refused:
            raise RefusedError(self.refused, "not authorized")

    async def publish_heard(self, *_: object, **__: object) -> bool:
        return True

    async def receive(self) -> None:
        raise LinkLostError("broker.example:1883", "Connection refused")


@pytest.mark.parametrize(
    ("link", "failed"),
    [
        (Losing(at_once=True), ["rights"]),
        (Losing(), ["plan power"]),
        (Losing(refused=f"edge-ldp/v1/{FLEET}/plan/power"), ["rights"]),
    ],
    ids=["while rights are tried", "while a plan is waited for", "a plan that is refused"],
)
async def test_a_link_that_is_lost_fails_what_was_being_tried(
    tmp_path: Path, pty: PtyPort, link: Losing, failed: list[str]
) -> None:
    config = configured(tmp_path, pty, free_port())
    tries = live.try_link(config, link, None, Clock(), 0.5)  # type: ignore[arg-type]
    found = {one.what: one for one in await tries}
    assert fails(found) == failed
    lost = "nothing listens there" in found[failed[0]].remedy
    assert lost or untried(found) == {"plan power": "no right to read it"}


@pytest.mark.parametrize(
    ("where", "told", "remedy"),
    [
        ("no/state.db", "can be written by this user", ""),  # what is missing is made by `run`
        ("agent.toml/s.db", "Not a directory", "as which user this is run"),
        ("open/state.db", "others may write to", "a directory of its own, of mode 0700"),
    ],
)
async def test_a_states_place_is_tried_as_run_does_it_AGT_32(
    tmp_path: Path, pty: PtyPort, where: str, told: str, remedy: str
) -> None:
    pty.unplug()
    (tmp_path / "agent.toml").touch()
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o1777)
    text = config_text(tmp_path / where, port=pty.link, broker_port=free_port())
    found = (await tried(parse_config(text, "agent.toml")))["state"]
    assert found.outcome == ("fails" if remedy else "ok")
    assert told in found.told
    assert remedy in found.remedy


async def test_a_plan_of_no_named_key_says_whose_keys_are_missing(
    tmp_path: Path, pty: PtyPort, broker: RealBroker
) -> None:
    pty.unplug()
    make_key(tmp_path / "ours")
    await publish_plan(broker.port)  # unsigned
    ring = keyring([read_signer(tmp_path / "ours").public])
    config = configured(tmp_path, pty, broker.port)
    found = {one.what: one for one in await try_all(config, None, ring, Clock(), plan_s=60)}
    assert found["plan power"].told.startswith("not taken: ")
    remedy = "put the operator's public keys, and no others, into [plans] keys"
    assert (found["plan power"].outcome, found["plan power"].remedy) == ("fails", remedy)


async def test_a_clock_that_nothing_sets_is_told_of_with_what_setup_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.commands.live.kernel_synchronised", lambda: False)
    text = config_text(tmp_path / "s.db", clock='trust = "kernel"', broker_port=free_port())
    found = await tried(parse_config(text, "agent.toml"))
    assert found["clock"].outcome == "fails"
    assert '[clock] trust = "assume" (setup --clock assume)' in found["clock"].remedy
