"""The agent's TOML file, parsed once: past this line there are no strings to interpret.

Unknown keys, missing keys and wrong values end in a ConfigError that names file, key and expected
form. Numbers with a point are read as decimals, so ε is exactly what the owner wrote.
"""

import re
import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from agent.errors import ConfigError
from agent.meters.config import MeterTable, Positive, Quantity, Text, meter_faults
from agent.meters.reading import UNITS
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
    "apparent_power": Kind.MEAN,
    "apparent_power_export": Kind.MEAN,
    "energy_import": Kind.RISE,
    "energy_export": Kind.RISE,
}
MAX_PASSWORD_MODE = 0o077

Host = Annotated[str, Meta(pattern=r"^[A-Za-z0-9._:%-]+\Z")]
Seconds = Annotated[float, Meta(ge=0, le=86_400 * 366)]
Instant = Annotated[float, Meta(ge=0, le=1 << 36)]
Port = Annotated[int, Meta(ge=1, le=65_535)]


class DeviceTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """[device]: who this is, and the file that holds its ledger and outbox."""

    fleet: str
    id: str
    state: Text


class BrokerTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """[broker]: where reports go. The password stands in a file, never here.

    TLS unless the broker is on this machine; `use_tls` and `use_port` are what holds in the end.
    """

    host: Host
    port: Port | None = None
    username: Text | None = None
    password_file: Text | None = None
    tls: bool | None = None
    ca_file: Text | None = None
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
    origin_s: Instant = 0.0
    started_s: Instant = 0.0
    rate: Annotated[float, Meta(gt=0, le=1e6)] = 1.0

    @property
    def simulated(self) -> bool:
        """Whether this is no real clock: only demos and tests set origin or rate."""
        return (self.origin_s, self.started_s, self.rate) != (0.0, 0.0, 1.0)


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
    quantity: Quantity
    unit: Literal["W", "Wh", "VA"]
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
    config = parse_config(text, str(path))
    if config.broker.ca_file is not None:
        try:
            Path(config.broker.ca_file).read_bytes()
        except OSError as exc:
            expected = f"a readable file ({exc.strerror}: {config.broker.ca_file})"
            raise ConfigError(str(path), "broker.ca_file", expected) from exc
    return config


def parse_config(text: str, file: str) -> AgentConfig:
    """Return the configuration in `text`; raises ConfigError naming `file`, key and expected."""
    table = _load_toml(text, file)
    try:
        config = msgspec.convert(table, AgentConfig, builtin_types=(Decimal,))
    except msgspec.ValidationError as exc:
        raise ConfigError(file, *_explain(str(exc))) from exc
    for key, expected in _faults(config):
        raise ConfigError(file, key, expected)
    return config


def parse_meter(text: str, file: str) -> MeterTable:
    """Return the [meter] table that the lines of `text` make; raises ConfigError as above."""
    table = _load_toml(text, file)
    try:
        meter = msgspec.convert(table, MeterTable, builtin_types=(Decimal,))
    except msgspec.ValidationError as exc:
        key, expected = _explain(str(exc).replace("at `$", "at `$.meter"))
        raise ConfigError(file, key, expected) from exc
    for key, expected in meter_faults(meter):
        raise ConfigError(file, key, expected)
    return meter


def _load_toml(text: str, file: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text, parse_float=Decimal)
    except (ValueError, ArithmeticError, RecursionError) as exc:  # endless numbers, deep nesting
        raise ConfigError(file, "syntax", f"TOML ({exc})") from exc


def _explain(message: str) -> tuple[str, str]:
    """Return (key, expected) of what msgspec says, without the value it may quote."""
    what, _, at = message.partition(" - at `$")
    key = at.rstrip("`").lstrip(".")
    if field := re.match(r"Object (contains unknown|missing required) field `(.*)`", what):
        key = f"{key}.{field[2]}".lstrip(".")
        return key, "no such key" if "unknown" in field[1] else "a value: the key is missing"
    if what.startswith("Invalid enum value"):
        return key, "one of " + ", ".join(map(repr, _choices(key)))
    if "matching regex" in what:
        return (
            key,
            "a name or address" if key == "broker.host" else "text, and no control characters",
        )
    return key or "file", what.removeprefix("Expected ")


def _choices(key: str) -> tuple[str, ...]:
    """Return what a key with a fixed choice may be."""
    kind: object = AgentConfig
    for name in re.sub(r"\[[^]]*]", "", key).split("."):
        table = next((part for part in get_args(kind) if part is not ...), kind)
        kind = get_type_hints(table)[name]
    choice = next((part for part in get_args(kind) if get_origin(part) is Literal), kind)
    return get_args(choice)


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
        unit = UNITS[stream.quantity]
        check(here + "unit", stream.unit == unit, f"{unit!r} for {stream.quantity}")
        check(
            here + "slot_seconds",
            stream.slot_seconds == config.slot_seconds,
            "the same for all streams of a device",
        )
    _collect(faults, "policy.epsilon", lambda: floor_ratio(config.policy.epsilon))
    _collect(faults, "policy.window", lambda: config.window)
    faults += meter_faults(config.meter)
    named, known = set(config.policy.mechanisms), STREAM_MECHANISMS | SURVEY_MECHANISMS
    check("policy.mechanisms", named <= known, "some of " + ", ".join(sorted(known)))
    for family in (STREAM_MECHANISMS, SURVEY_MECHANISMS):
        check("policy.mechanisms", bool(named & family), "also one of " + ", ".join(sorted(family)))
    broker = config.broker
    check("broker.host", broker.host.count(":") != 1, "a name or address; the port is a key apart")
    has_user = broker.username is not None or broker.password_file is None
    check("broker.username", has_user, "the user that the password is for")
    check("broker.ca_file", broker.use_tls or broker.ca_file is None, "nothing unless tls = true")
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

    def fault(expected: str) -> ConfigError:
        return ConfigError(file, "broker.password_file", expected)

    try:
        if path.stat().st_mode & MAX_PASSWORD_MODE:
            raise fault(f"a file of mode 0600: chmod 600 {path}")
        password = path.read_text().strip()
    except OSError as exc:
        raise fault(f"a readable file ({exc.strerror}: {path})") from exc
    except UnicodeDecodeError as exc:
        raise fault("UTF-8 text") from exc
    if not password:
        raise fault("a password in the file")
    return password
