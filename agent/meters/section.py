"""The [meter] table of the agent's file: the line, the protocol, and what only one protocol has."""

from dataclasses import field
from decimal import Decimal
from typing import Annotated, Any, Literal

from agent.meters.port_names import fault_of, shown, source_of
from agent.meters.protocols import MODELS, PLUG_IN, PLUG_IN_LINE, PROTOCOLS, SIGN_ON_LINE, Line
from agent.meters.reading import UNITS
from edge_ldp.lean_class import lean_class
from edge_ldp.service.typed_table import Form, Range, Text

PUSHED_S = 10
"""How far apart the telegrams of meters that speak by themselves are at most, as a rule."""

READOUT_S = 60
"""How long a text may take that is asked for: 40 s of it at 300 baud, and the pause after it."""

Positive = Annotated[int, Range(ge=1)]
Pin = Annotated[str, Form(r"sha256:[0-9a-f]{64}", "sha256: and 64 hexadecimal digits, 0-9 a-f")]
_MOST_RTU_ADDRESS = 247
Address = Annotated[str, Form(r"[0-9A-Za-z ]{0,32}", "text: at most 32 of 0-9 A-Z a-z, space")]
Quantity = Literal[
    "power",
    "power_export",
    "apparent_power",
    "apparent_power_export",
    "energy_import",
    "energy_export",
    "power_net",
    "reactive_power",
]


@lean_class(frozen=True, slots=True)
class FieldTable:
    """[[meter.fields]]: one number of a line, by name or by column from 1, times scale."""

    quantity: Quantity
    unit: Literal["W", "kW", "MW", "VA", "kVA", "Wh", "kWh", "MWh", "var", "kvar"]
    field: Text | None = None
    column: Annotated[int, Range(ge=1, le=64)] | None = None
    scale: Decimal | int = 1


@lean_class(frozen=True, slots=True)
class AccessTable:
    """[meter.access]: how a page or a broker lets us in, and how we know that it is the right one.

    Secrets stand in files of mode 0600, read for each connection. `certificate` is the SHA-256 of
    the one that the device itself made; without it authorities vouch (`ca_file`, or the system's).
    """

    username: Text | None = None
    password_file: Text | None = None
    token_file: Text | None = None
    ca_file: Text | None = None
    certificate: Pin | None = None


@lean_class(frozen=True, slots=True)
class MeterTable:
    """[meter], or one of [[meters]]: the line, what is spoken on it, whose clock dates a telegram.

    `line` is what holds in the end for speed and form of the line. `interval_s`: the longest time
    between two telegrams, as far as is known before any is heard. `register_digits`: digits
    of whole kWh that the registers have, after which they begin at 0 again. `name`: what streams
    call it where there are several.
    """

    port: Text
    protocol: str = "dsmr"
    baud: Positive | None = None
    data_bits: Literal[7, 8] | None = None
    parity: Literal["N", "E", "O"] | None = None
    crc: Literal["required", "absent-allowed"] = "required"
    meter_id: Text | None = None
    date_by: Literal["arrival", "meter"] = "arrival"
    clock_tolerance_s: Positive = 60
    bare_unit: Literal["refuse", "Wh", "kWh"] = "refuse"
    fields: tuple[FieldTable, ...] = ()
    mode: Literal["push", "request"] = "push"
    device_address: Address = ""
    keep_speed: bool = False
    model: Text = "sdm630"
    model_file: Text | None = None
    framing: Literal["rtu", "tcp"] = "rtu"
    address: Annotated[int, Range(ge=0, le=255)] = 1
    poll_ms: Annotated[int, Range(ge=200, le=3_600_000)] | None = None
    interval_s: Annotated[int, Range(ge=1, le=86_400)] | None = None
    register_digits: Annotated[int, Range(ge=3, le=9)] | None = None
    options: dict[str, Any] = field(default_factory=dict)  # for plug-ins
    access: AccessTable | None = None
    name: str = ""

    @property
    def line(self) -> Line:
        """Speed and form of the line: as written, else as the protocol has it."""
        entry = PROTOCOLS.get(self.protocol)
        usual = entry.line if entry else PLUG_IN_LINE
        if self.mode == "request":
            usual = SIGN_ON_LINE
        if self.protocol == "modbus":
            usual = MODELS.get(self.model, usual)
        return Line(
            self.baud or usual.baud,
            self.data_bits or usual.data_bits,
            self.parity or usual.parity,
        )

    @property
    def quantities(self) -> tuple[str, ...] | None:
        """What this meter's telegrams may show at all; None: nobody knows (a plug-in)."""
        entry = PROTOCOLS.get(self.protocol)
        if entry is None:
            return None
        return entry.quantities or tuple(one.quantity for one in self.fields)

    @property
    def has_checksum(self) -> bool | None:
        """Whether a checksum proves each telegram; None: of some only, or nobody knows."""
        if self.protocol.startswith(PLUG_IN) or self.crc == "absent-allowed":
            return None
        is_pushed = self.protocol == "iec62056-21" and self.mode == "push"
        return not (is_pushed or self.protocol == "lines")

    @property
    def expected_s(self) -> int:
        """How long there is from one telegram to the next at most, as far as is known."""
        usual = READOUT_S if self.mode == "request" else PUSHED_S
        return max(self.interval_s or usual, (self.poll_ms or 0) // 1000)

    @property
    def shown_port(self) -> str:
        """The port as logs name it."""
        return shown(self.port)

    @property
    def is_page(self) -> bool:
        """Whether the port is a page, which is asked every `poll_ms`."""
        source = source_of(self.port)
        return source is not None and source.is_asked

    @property
    def register_wh(self) -> int | None:
        """What an energy register shows one less than at most; None: not known."""
        return None if self.register_digits is None else 10**self.register_digits * 1000


def meter_faults(meter: MeterTable) -> list[tuple[str, str]]:
    """Return (key, expected) of what is wrong in [meter]."""
    is_plug_in = meter.protocol.startswith(PLUG_IN)
    if meter.protocol not in PROTOCOLS and not is_plug_in:
        choices = ", ".join(map(repr, PROTOCOLS))
        text = f"one of {choices}, or '{PLUG_IN}NAME'"
        near = _near(meter.protocol)
        return [("meter.protocol", f"{text}; did you mean {near!r}?" if near else text)]
    own = frozenset({"options"}) if is_plug_in else PROTOCOLS[meter.protocol].keys
    owners = {"options": [f"{PLUG_IN}NAME"]}
    for name, entry in PROTOCOLS.items():
        for key in entry.keys:
            owners.setdefault(key, []).append(name)
    usual = MeterTable(port=meter.port)
    faults = [("meter.port", expected)] if (expected := fault_of(meter.port)) else []
    faults += _field_faults(meter)
    faults += _modbus_faults(meter)
    faults += _request_faults(meter)
    faults += _access_faults(meter)
    if meter.is_page:
        own |= {"poll_ms"}
    return faults + [
        (f"meter.{key}", "nothing unless protocol = " + " or ".join(map(repr, names)))
        for key, names in owners.items()
        if key not in own and getattr(meter, key) != getattr(usual, key)
    ]


def _access_faults(meter: MeterTable) -> list[tuple[str, str]]:
    """Return what is wrong with a page or topic: what it is asked for, and what lets us in."""
    source, access = source_of(meter.port), meter.access or AccessTable()
    if source is None:
        text = "nothing unless port is http(s)://HOST/PATH or mqtt(s)://HOST/TOPIC"
        return [("meter.access", text)] if meter.access else []
    is_talk = meter.protocol == "modbus" or meter.mode == "request"
    has_secret = bool(access.token_file or access.password_file)
    sealed = source.is_encrypted or not source.is_exposed
    checks = (
        ("port", not is_talk, "a serial line: nothing can be asked through a page or a topic"),
        ("access.password_file", access.username or not access.password_file, "with username"),
        ("access.token_file", source.is_asked or not access.token_file, "nothing for a broker"),
        (
            "access.token_file",
            not (access.token_file and access.username),
            "a token or a username, not both",
        ),
        ("access", sealed or not has_secret, "no secret in the clear: https:// or mqtts://"),
        (
            "access.certificate",
            source.scheme == "https" or not access.certificate,
            "nothing unless port is https://; a broker's authority is ca_file",
        ),
        (
            "access.ca_file",
            source.is_encrypted or not access.ca_file,
            "nothing unless port is https:// or mqtts://",
        ),
    )
    return [(f"meter.{key}", expected) for key, holds, expected in checks if not holds]


def _request_faults(meter: MeterTable) -> list[tuple[str, str]]:
    """Return what is wrong with a readout that is asked for, or not."""
    if meter.protocol != "iec62056-21":
        return []
    if meter.mode == "push":
        is_polled = meter.poll_ms is not None and not meter.is_page
        keys = {"poll_ms": is_polled, "keep_speed": meter.keep_speed}
        text = "nothing unless mode = 'request'"
        return [(f"meter.{key}", text) for key, is_set in keys.items() if is_set]
    if meter.port.startswith("socket://") and not meter.keep_speed:
        expected = (
            "a device or rfc2217://HOST:PORT: the speed must change, unless keep_speed = true"
        )
        return [("meter.port", expected)]
    return []


def _modbus_faults(meter: MeterTable) -> list[tuple[str, str]]:
    """Return what is wrong with a Modbus meter's model, address and way of asking."""
    if meter.protocol != "modbus":
        return []
    is_tcp, names = meter.framing == "tcp", ", ".join(map(repr, MODELS))
    checks = (
        ("model", meter.model in MODELS, f"one of {names}; any other as model_file"),
        (
            "framing",
            not is_tcp or meter.port.startswith("socket://"),
            "'rtu', unless port is socket://HOST:PORT (Modbus TCP mostly has port 502)",
        ),
        ("address", is_tcp or 1 <= meter.address <= _MOST_RTU_ADDRESS, ">= 1 and <= 247"),
    )
    return [(f"meter.{key}", expected) for key, holds, expected in checks if not holds]


def _near(name: str) -> str | None:
    """Return the protocol that a name was probably meant to be."""
    from difflib import get_close_matches  # noqa: PLC0415 (memory: bad files only)

    meant = {**dict.fromkeys(PROTOCOLS), "p1": None, "d0": None, "tic": None, "json": None}
    known = {"p1": "dsmr", "d0": "iec62056-21", "tic": "linky", "json": "lines"}
    found = get_close_matches(name.lower(), meant, n=1)
    return known.get(found[0], found[0]) if found else None


def _field_faults(meter: MeterTable) -> list[tuple[str, str]]:
    """Return (key, expected) of what is wrong in [[meter.fields]]."""
    faults = []
    if meter.protocol in ("lines", "modbus") and meter.meter_id is not None:
        faults.append(("meter.meter_id", f"nothing: {meter.protocol} tells no identity"))
    if meter.protocol != "lines":
        return faults
    if not 1 <= len(meter.fields) <= len(UNITS):
        faults.append(("meter.fields", "a [[meter.fields]] for each quantity of the line"))
    if len({one.quantity for one in meter.fields}) < len(meter.fields):
        faults.append(("meter.fields.quantity", "each quantity once"))
    for at, one in enumerate(meter.fields):
        if (one.field is None) == (one.column is None):
            faults.append((f"meter.fields[{at}]", "either field (a name) or column (a number)"))
        if (
            not one.unit.endswith(UNITS[one.quantity])
            or len(one.unit) > len(UNITS[one.quantity]) + 1
        ):
            faults.append((f"meter.fields[{at}].unit", f"a unit of {one.quantity}"))
        scale = Decimal(one.scale)
        if not scale.is_finite() or not Decimal("1e-9") <= abs(scale) <= Decimal("1e9"):
            faults.append((f"meter.fields[{at}].scale", "a number between 1e-9 and 1e9"))
    return faults
