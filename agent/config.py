"""The agent's TOML file, parsed once: past this line there are no strings to interpret.

Unknown keys, missing keys and wrong values end in a ConfigError that names file, key and expected
form. Numbers with a point are read as decimals, so ε is exactly what the owner wrote.
"""

import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from agent.errors import ConfigError
from agent.slots import Kind
from edge_ldp.device.errors import ParameterError
from edge_ldp.ledger import Window
from edge_ldp.messages import check_name
from edge_ldp.plan import STREAM_MECHANISMS, SURVEY_MECHANISMS, Policy
from edge_ldp.ratio import floor_ratio

LOOPBACK = ("localhost", "127.0.0.1", "::1")
KINDS = {
    "power": Kind.MEAN,
    "power_export": Kind.MEAN,
    "energy_import": Kind.RISE,
    "energy_export": Kind.RISE,
}
UNITS = {Kind.MEAN: "W", Kind.RISE: "Wh"}
MAX_PASSWORD_MODE = 0o077

Positive = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(ge=0, le=86_400 * 366)]
Port = Annotated[int, Meta(ge=1, le=65_535)]


class DeviceTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """[device]: who this is, and the file that holds its ledger and outbox."""

    fleet: str
    id: str
    state: str


class BrokerTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """[broker]: where reports go. The password stands in a file, never here.

    TLS unless the broker is on this machine; `use_tls` and `use_port` are what holds in the end.
    """

    host: str
    port: Port | None = None
    username: str | None = None
    password_file: str | None = None
    tls: bool | None = None
    ca_file: str | None = None
    allow_plaintext: bool = False
    protocol: Literal["auto", "5", "3.1.1"] = "auto"
    keepalive_s: Annotated[int, Meta(ge=5, le=3600)] = 30

    @property
    def use_tls(self) -> bool:
        """Whether the link is encrypted: as said, else off on loopback and on elsewhere."""
        return self.host not in LOOPBACK if self.tls is None else self.tls

    @property
    def use_port(self) -> int:
        """The port as given, else the standard one."""
        return self.port or (8883 if self.use_tls else 1883)


class ClockTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """[clock]: `trust` "kernel" waits for a synchronised clock; the rest serves simulations."""

    trust: Literal["kernel", "assume"] = "kernel"
    origin_s: float = 0.0
    started_s: float = 0.0
    rate: Annotated[float, Meta(gt=0)] = 1.0

    @property
    def simulated(self) -> bool:
        """Whether this is no real clock: only demos and tests set origin or rate."""
        return (self.origin_s, self.started_s, self.rate) != (0.0, 0.0, 1.0)


class MeterTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """[meter]: the serial line, and whose clock dates a telegram."""

    port: str
    protocol: Literal["dsmr"] = "dsmr"
    baud: Positive = 115_200
    crc: Literal["required", "absent-allowed"] = "required"
    meter_id: str | None = None
    date_by: Literal["arrival", "meter"] = "arrival"
    clock_tolerance_s: Positive = 60


class WindowTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """[policy.window]: at most `reports` in any `slots` consecutive slots, all streams together."""

    reports: Positive = 8
    slots: Positive = 97


class PolicyTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """[policy]: what the owner allows. No message can change it."""

    epsilon: Decimal | int = 1
    window: WindowTable = WindowTable()
    mechanisms: tuple[str, ...] = tuple(sorted(STREAM_MECHANISMS | SURVEY_MECHANISMS))
    max_codes: Annotated[int, Meta(ge=4, le=65_536)] = 8192


class StreamTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """[[streams]]: one quantity of the meter and the range its owner considers possible."""

    name: str
    quantity: Literal["power", "power_export", "energy_import", "energy_export"]
    unit: Literal["W", "Wh"]
    ceiling: int
    low: int = 0
    slot_seconds: Annotated[int, Meta(ge=1, le=86_400)] = 900


class SendingTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """[sending]: pace and limits of delivery, in the clock's seconds."""

    receipt_interval_s: Annotated[float, Meta(gt=0, le=86_400)] = 3600.0
    jitter_s: Seconds = 300.0
    batch_interval_s: Seconds = 0.0
    max_age_days: Annotated[int, Meta(ge=1, le=366)] = 35
    in_flight: Annotated[int, Meta(ge=1, le=100)] = 10


class AgentConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file. `policies` and `window` are what the cores work with."""

    device: DeviceTable
    broker: BrokerTable
    meter: MeterTable
    streams: tuple[StreamTable, ...]
    policy: PolicyTable = PolicyTable()
    clock: ClockTable = ClockTable()
    sending: SendingTable = SendingTable()

    @property
    def slot_seconds(self) -> int:
        """Length of a slot, the same for all streams."""
        return self.streams[0].slot_seconds

    @property
    def window(self) -> Window:
        """The window over all streams of the home."""
        return Window(self.policy.window.reports, self.policy.window.slots, len(self.streams))

    def policies(self) -> tuple[Policy, ...]:
        """Return the policy of each stream, in order."""
        ratio = floor_ratio(self.policy.epsilon)
        return tuple(
            Policy(
                fleet=self.device.fleet,
                stream=stream.name,
                unit=stream.unit,
                slot_seconds=stream.slot_seconds,
                low=stream.low,
                ceiling=stream.ceiling,
                ratio=ratio,
                mechanisms=frozenset(self.policy.mechanisms),
                max_codes=self.policy.max_codes,
            )
            for stream in self.streams
        )


def load_config(path: Path) -> AgentConfig:
    """Return the checked configuration; raises ConfigError(file, key, expected)."""
    try:
        text = path.read_text()
    except OSError as exc:
        raise ConfigError(str(path), "file", f"a readable file ({exc.strerror})") from exc
    except UnicodeDecodeError as exc:
        raise ConfigError(str(path), "file", "UTF-8 text") from exc
    return parse_config(text, str(path))


def parse_config(text: str, file: str) -> AgentConfig:
    """Return the configuration in `text`; raises ConfigError naming `file`, key and expected."""
    try:
        table = tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as exc:
        raise ConfigError(file, "syntax", f"TOML ({exc})") from exc
    try:
        config = msgspec.convert(table, AgentConfig)
    except msgspec.ValidationError as exc:
        message, _, key = str(exc).partition(" - at `$")
        raise ConfigError(file, key.rstrip("`").lstrip(".") or "file", message) from exc
    for key, expected in _faults(config):
        raise ConfigError(file, key, expected)
    return config


def _faults(config: AgentConfig) -> list[tuple[str, str]]:
    """Return (key, expected) of what single fields cannot show, worst first."""
    faults: list[tuple[str, str]] = []

    def check(key: str, holds: bool, expected: str) -> None:  # noqa: FBT001 (a condition)
        if not holds:
            faults.append((key, expected))

    for key, name in (("device.fleet", config.device.fleet), ("device.id", config.device.id)):
        _collect(faults, key, lambda name=name: check_name("name", name))
    check("streams", 1 <= len(config.streams) <= 16, "1 to 16 [[streams]]")  # noqa: PLR2004
    if faults:
        return faults
    names = [stream.name for stream in config.streams]
    check("streams.name", len(set(names)) == len(names), "a different name for each stream")
    for at, stream in enumerate(config.streams):
        here = f"streams[{at}]."
        _collect(faults, here + "name", lambda name=stream.name: check_name("name", name))
        check(here + "ceiling", stream.low < stream.ceiling, "more than low")
        check(here + "ceiling", stream.ceiling - stream.low < 1 << 40, "less than low + 2**40")
        kind = KINDS[stream.quantity]
        check(here + "unit", stream.unit == UNITS[kind], f"{UNITS[kind]!r} for {stream.quantity}")
        check(
            here + "slot_seconds",
            stream.slot_seconds == config.slot_seconds,
            "the same for all streams of a device",
        )
    _collect(faults, "policy.epsilon", lambda: floor_ratio(config.policy.epsilon))
    _collect(faults, "policy.window", lambda: config.window)
    known = STREAM_MECHANISMS | SURVEY_MECHANISMS
    check(
        "policy.mechanisms",
        set(config.policy.mechanisms) <= known,
        "some of " + ", ".join(sorted(known)),
    )
    broker = config.broker
    check(
        "broker.tls",
        broker.use_tls or broker.allow_plaintext or broker.host in LOOPBACK,
        "true off this machine, or allow_plaintext = true if you accept that anyone may listen",
    )
    return faults


def _collect(faults: list[tuple[str, str]], key: str, build: object) -> None:
    try:
        build()  # type: ignore[operator]
    except ParameterError as exc:
        faults.append((key, exc.expected))


def read_password(table: BrokerTable, file: str) -> str | None:
    """Return the broker password from its file, which only its owner may read."""
    if table.password_file is None:
        return None
    path = Path(table.password_file)
    try:
        if path.stat().st_mode & MAX_PASSWORD_MODE:
            raise ConfigError(
                file, "broker.password_file", f"a file of mode 0600: chmod 600 {path}"
            )
        return path.read_text().strip()
    except OSError as exc:
        expected = f"a readable file ({exc.strerror}: {path})"
        raise ConfigError(file, "broker.password_file", expected) from exc
