"""The local tap's words, and the wall between it and what leaves the house."""

import ast
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from agent.claims.batches import Named
from agent.claims.pipeline import Report
from agent.config import parse_config
from agent.link.outgoing import Outgoing, Outlet, nothing, report, status
from agent.meters.obis.dsmr import P1Meter
from agent.meters.reading import UNITS, Reading, Telegram
from agent.state.manifest import manifest
from agent.tap.link import TapLink
from agent.tap.messages import (
    LocalMessage,
    LocalReading,
    availability,
    discovery,
    local_readings,
    month_messages,
    states,
)
from edge_ldp.device.errors import EdgeLdpError
from edge_ldp.device.frame import encode
from edge_ldp.device.sums_frame import encode_sums
from edge_ldp.protocol.messages import Status
from edge_ldp.protocol.released import FIRST_SUMS_KEY
from firmware_stubs.meters.telegram import full_p1_telegram
from tests.agent.samples import DEVICE, FLEET, config_text
from tests.edge_ldp.device.test_sums import FRAME as SUMS
from tests.edge_ldp.protocol.test_group_month import MONTH

VALUE = 314_159
TELEGRAM = Telegram("E01", None, (Reading("power", VALUE), Reading("energy_import", 5)))
FRAME = encode(1, 7, 1, [100], [3])
AGENT = Path(__file__).parents[3] / "agent"


class FakeLink:
    """Records what is published."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, bytes, bool]] = []

    async def publish(
        self, topic: str, payload: bytes, *, retain: bool = False, qos: int = 1
    ) -> None:
        assert qos in (0, 1)
        self.sent.append((topic, payload, retain))

    async def publish_heard(self, topic: str, payload: bytes, *, retain: bool = False) -> bool:
        await self.publish(topic, payload, retain=retain)
        return True


# what is said


@pytest.mark.parametrize("quantity", UNITS)
def test_every_quantity_is_a_sensor_that_home_assistant_knows(quantity: str) -> None:
    """Names and values as in Home Assistant's MQTT discovery and its sensor device classes."""
    (reading,) = local_readings(Telegram("E01", None, (Reading(quantity, VALUE),)))
    message = discovery("home-7", reading, "homeassistant", 10)
    assert message.topic == f"homeassistant/sensor/edge-ldp-home-7/{quantity}/config"
    assert message.retain
    said = json.loads(message.text)
    assert said["state_topic"] == f"edge-ldp-tap/home-7/{quantity}"
    assert said["availability_topic"] == availability("home-7", "online").topic
    assert said["unit_of_measurement"] == UNITS[quantity]
    kinds = {"W": "power", "VA": "apparent_power", "Wh": "energy", "var": "reactive_power"}
    assert said["device_class"] == kinds[UNITS[quantity]]
    assert said["state_class"] == ("total_increasing" if "energy" in quantity else "measurement")
    assert said["expire_after"] == 60
    assert said["unique_id"] == f"edge-ldp-home-7-{quantity}"
    assert said["device"]["identifiers"] == ["edge-ldp-home-7"]


def test_states_are_plain_numbers_and_never_retained() -> None:
    sent = states("home-7", local_readings(TELEGRAM))
    assert [(m.topic, m.text, m.retain) for m in sent] == [
        ("edge-ldp-tap/home-7/power", str(VALUE), False),
        ("edge-ldp-tap/home-7/energy_import", "5", False),
    ]


def test_SER_36_the_tap_shows_what_a_p1_port_shows() -> None:
    data = full_p1_telegram(
        meter_id="E01", time_s=1_800_000_000, import_wh=4_101, power_w=378, export_wh=3
    )
    (telegram,) = (e for e in P1Meter(beside=True).feed(data) if isinstance(e, Telegram))
    said = {one.quantity: f"{one.text} {one.unit}" for one in local_readings(telegram)}
    due = {
        "power": "378 W",
        "power_net": None,
        "energy_import": "4101 Wh",
        "energy_import_tariff_1": "2050 Wh",
        "energy_import_tariff_2": "2051 Wh",
        "energy_export_tariff_1": "1 Wh",
        "energy_export_tariff_2": "2 Wh",
        "voltage_phase_1": "230.100 V",
        "voltage_phase_2": "229.800 V",
        "voltage_phase_3": "230.400 V",
        "current_phase_1": "1.000 A",
        "current_phase_2": "0.000 A",
        "gas_1": "4.101 m³",
        "water_2": "872.234 m³",
    }
    assert {name: said.get(name) for name in due} == due
    for reading in local_readings(telegram):
        message = discovery("home-7", reading, "homeassistant", 10)
        assert message.topic.endswith(f"/{reading.quantity}/config")
        assert json.loads(message.text)["unit_of_measurement"] == reading.unit
    (plain,) = (e for e in P1Meter().feed(data) if isinstance(e, Telegram))
    assert (plain.beside, plain) == ((), replace(telegram, beside=()))


def test_a_groups_month_is_a_sensor_with_its_doubt_and_goes_when_nothing_is_told_NET_31() -> None:
    told = month_messages("home-7", ["power", "gas"], MONTH, "homeassistant")
    assert [one.retain for one in told] == [True] * 4
    sensor, state, *cleared = told
    said = json.loads(sensor.text)
    assert sensor.topic == "homeassistant/sensor/edge-ldp-home-7/group_power/config"
    assert said["state_topic"] == said["json_attributes_topic"] == state.topic
    assert "power" in said["name"]
    assert "north" in said["name"]
    facts = json.loads(state.text)
    assert facts["mean"] == 410
    assert (facts["within"], facts["homes"]) == (40, 12)
    assert (facts["from"], facts["to"]) == ("2026-12-01", "2026-12-31")
    assert [one.text for one in cleared] == ["", ""]  # of gas, and of all without a message
    gone = month_messages("home-7", ["power", "gas"], None, "homeassistant")
    assert [(one.topic, one.text) for one in gone] == [(one.topic, "") for one in told]
    assert month_messages("home-7", [], MONTH, "homeassistant") == ()


def test_no_representation_shows_a_reading_PRV_03() -> None:
    shown = repr((local_readings(TELEGRAM), states("home-7", local_readings(TELEGRAM))))
    assert str(VALUE) not in shown


# the wall: for mypy, for the running program, for the imports
#
# Each call that is wrong carries a type-ignore. `make check` refuses an ignore that is not needed,
# so if mypy ever let one of these pass, the check would fail.


async def test_no_raw_type_reaches_the_outgoing_link() -> None:
    link = FakeLink()
    outlet = Outlet(link)  # type: ignore[arg-type] # a fake
    (power, _) = local_readings(TELEGRAM)
    (message, _) = states(DEVICE, (power, power))
    for wrong in (
        outlet.send(power),  # type: ignore[arg-type] # the wall
        outlet.send(message),  # type: ignore[arg-type] # the wall
        outlet.send(TELEGRAM),  # type: ignore[arg-type] # the wall
        outlet.send(TELEGRAM.readings[0]),  # type: ignore[arg-type] # the wall
        outlet.send(str(VALUE)),  # type: ignore[arg-type] # the wall
        outlet.send(b"5"),  # type: ignore[arg-type] # the wall
    ):
        with pytest.raises(TypeError, match="only an Outgoing"):
            await wrong
    assert link.sent == []


async def test_the_outgoing_link_takes_batches_and_the_status() -> None:
    """The control."""
    link = FakeLink()
    outlet = Outlet(link)  # type: ignore[arg-type] # a fake
    await outlet.send(report(FLEET, DEVICE, [Named(1, 0, 7)], FRAME))
    await outlet.send(status(FLEET, DEVICE, Status("online", "-")))
    await outlet.send(nothing(FLEET, DEVICE, "status"))
    assert [(topic.rpartition("/")[0], retain) for topic, _, retain in link.sent] == [
        (f"edge-ldp/v1/{FLEET}/report", False),
        (f"edge-ldp/v1/{FLEET}/status", True),
        (f"edge-ldp/v1/{FLEET}/status", False),
    ]
    assert link.sent[-1][1] == b""


def test_a_periods_sums_leave_as_a_report_under_their_own_number() -> None:
    key = FIRST_SUMS_KEY + SUMS.stream
    made = report(FLEET, DEVICE, [Named(key, SUMS.series, SUMS.batch)], encode_sums(SUMS))
    assert made.topic == f"edge-ldp/v1/{FLEET}/report/{DEVICE}"
    for other in (Named(key, SUMS.series, 1 + SUMS.batch), Named(key - 1, SUMS.series, SUMS.batch)):
        with pytest.raises(EdgeLdpError):
            report(FLEET, DEVICE, [other], encode_sums(SUMS))


async def test_nothing_but_the_taps_own_messages_reaches_the_tap() -> None:
    link = FakeLink()
    tap = TapLink(link)  # type: ignore[arg-type] # a fake
    for wrong in (
        tap.send(report(FLEET, DEVICE, [Named(1, 0, 7)], FRAME)),  # type: ignore[arg-type] # the wall
        tap.send(TELEGRAM),  # type: ignore[arg-type] # the wall
        tap.send(FRAME),  # type: ignore[arg-type] # the wall
    ):
        with pytest.raises(TypeError, match="only a LocalMessage"):
            await wrong
    assert link.sent == []
    await tap.send(availability(DEVICE, "online"))
    assert [payload for _, payload, _ in link.sent] == [b"online"]


@pytest.mark.parametrize(
    "payload", [b"", b"314159", str(VALUE).encode() * 9, FRAME[:-1], FRAME + b"\0", bytes(23)]
)
def test_what_is_no_frame_of_codes_cannot_be_made_to_leave(payload: bytes) -> None:
    with pytest.raises(EdgeLdpError):
        report(FLEET, DEVICE, [Named(1, 0, 7)], payload)


def test_a_frame_leaves_only_under_its_own_number() -> None:
    with pytest.raises(EdgeLdpError, match="its own stream and number"):
        report(FLEET, DEVICE, [Named(1, 0, 8)], FRAME)
    with pytest.raises(EdgeLdpError, match="made by"):
        Outgoing("t", b"314159", retain=False, by=None)
    with pytest.raises(EdgeLdpError, match="a Status"):
        status(FLEET, DEVICE, TELEGRAM)  # type: ignore[arg-type] # the wall


def test_a_local_reading_is_none_of_the_types_of_the_outgoing_path() -> None:
    for kind in (Outgoing, Report, Status, bytes, str, int, tuple):
        assert not issubclass(LocalReading, kind)
        assert not issubclass(LocalMessage, kind)


def imports(path: Path) -> set[str]:
    """Return every module that a file of the agent imports, for types or to run."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name for name in found if name.startswith("agent")}


def reachable(start: str) -> set[str]:
    """Return the modules that a module of the agent can reach by imports."""
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        name = waiting.pop()
        path = AGENT.parent.joinpath(*name.split("."))
        file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if name in seen or not file.exists():
            continue
        seen.add(name)
        waiting += imports(file)
    return seen


def test_the_two_ways_out_do_not_know_of_each_other() -> None:
    link = (f"agent.link.{name}" for name in ("outgoing", "outlet", "uplink"))
    out = {*link, "agent.state.device", "agent.state.journal"}
    tap = {"agent.tap.messages", "agent.tap.link"}
    for name in out:
        assert not reachable(name) & tap, name
    for name in tap:
        assert not reachable(name) & out, name
    holders = {
        path.relative_to(AGENT).as_posix()
        for path in AGENT.rglob("*.py")
        if imports(path) & tap and path.parent.name != "tap"
    }
    assert holders == {"main.py"}, "only the wiring may join a tap to a meter"


def test_only_the_outlet_publishes_to_the_outgoing_link() -> None:
    publishing = {
        path.relative_to(AGENT).as_posix()
        for path in AGENT.rglob("*.py")
        if re.search(r"\.publish(_heard)?\(", path.read_text())
    }
    assert publishing == {"link/outgoing.py", "tap/link.py"}


# where it may go

TAP = '[tap]\nhost = "{}"\nport = {}\nallow_plaintext = true\n'


def with_tap(host: str, port: int = 1884, more: str = "") -> str:
    return config_text(Path("s.db"), tables=TAP.format(host, port) + more)


@pytest.mark.parametrize(
    "host",
    ["localhost", "127.0.0.1", "192.168.1.20", "10.1.2.3", "172.31.0.1", "fd00::1", "fe80::1%eth0",
     "homeassistant.local"],
)  # fmt: skip
def test_a_tap_to_this_machine_or_the_local_network_is_taken(host: str) -> None:
    assert parse_config(with_tap(host), "f").tap is not None


def test_beyond_the_network_only_when_that_is_written() -> None:
    world = with_tap("93.184.216.34", more="allow_beyond_lan = true")
    assert parse_config(world, "f").tap is not None


def test_without_a_table_there_is_no_tap_and_with_one_the_manifest_says_so() -> None:
    without = parse_config(config_text(Path("s.db")), "f")
    assert without.tap is None
    said = manifest(without)
    assert said["local_tap"] is False
    loud = manifest(parse_config(with_tap("192.168.1.20"), "f"))
    assert loud["local_tap"] is True
    assert "local tap" in str(loud["who"])
    assert "192.168" not in str(loud), "the house's own addresses are nobody's business"
