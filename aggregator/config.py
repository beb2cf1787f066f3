"""The aggregator's TOML file, parsed once: past this line there are no strings to interpret.

Unknown keys, missing keys and wrong values end in a ConfigError that names file, key and expected
form. Numbers with a point are read as decimals, so ε is exactly what was written. Relative paths
are relative to the working directory.
"""

import tomllib
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from aggregator.errors import AggregatorError
from edge_ldp.device.errors import ParameterError
from edge_ldp.device.randomizer import reporter
from edge_ldp.mechanisms import Hybrid, Mechanism, SquareWave, Tuned
from edge_ldp.messages import MAX_STREAMS, check_name

DAY_S = 86_400
SHARE_DEN = 1 << 16
MAX_PASSWORD_MODE = 0o077

Positive = Annotated[int, Meta(ge=1)]
Port = Annotated[int, Meta(ge=1, le=65_535)]


class ConfigError(AggregatorError):
    """A configuration that cannot be used: `key` of `file` is not what is `expected`."""

    def __init__(self, file: str, key: str, expected: str) -> None:
        super().__init__(f"{file}: {key}: {expected}")
        self.file = file
        self.key = key
        self.expected = expected


class BrokerTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """[broker]: where messages come from. The password stands in a file of mode 0600, never here.

    TLS unless the broker is on this machine; `use_tls` and `use_port` are what holds in the end.
    `session_days`: how long the broker keeps our session, and the messages in it, while we are
    away. `window`: messages it may send before we acknowledge.
    """

    host: str
    port: Port | None = None
    username: str | None = None
    password_file: str | None = None
    tls: bool | None = None
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    crl_file: str | None = None
    allow_plaintext: bool = False
    protocol: Literal["auto", "5", "3.1.1"] = "auto"
    client_id: Annotated[str, Meta(min_length=1, max_length=64)] | None = None
    keepalive_s: Annotated[int, Meta(ge=5, le=3600)] = 30
    session_days: Annotated[int, Meta(ge=1, le=365)] = 35
    window: Annotated[int, Meta(ge=1, le=1000)] = 1000

    @property
    def use_tls(self) -> bool:
        """Whether the link is encrypted: as said, else off on this machine and on elsewhere."""
        return not is_loopback(self.host) if self.tls is None else self.tls

    @property
    def use_port(self) -> int:
        """The port as given, else the standard one."""
        return self.port or (8883 if self.use_tls else 1883)


class PlansTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """[plans]: the private key that plans are signed with, a file of mode 0600."""

    signing_key_file: str | None = None


class StoreTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """[store]: what holds dedupe state, counts and plans: a SQLite file, or a PostgreSQL database.

    `path` or `url` (postgresql://user@host/database), never both. A password stands in a file of
    mode 0600, or where PostgreSQL's own clients look for it; it is refused in the URL.
    """

    path: str | None = None
    url: str | None = None
    password_file: str | None = None


class ArchiveTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """[archive]: the directory that keeps every counted report; without it none is kept.

    `shards`: files that each day's reports are spread over by device; never changed later.
    """

    path: Annotated[str, Meta(min_length=1)]
    shards: Annotated[int, Meta(ge=1, le=1024)] = 1


class ClockTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """[clock]: only demos and tests set it: `rate` seconds pass in one, from `origin_s` on."""

    origin_s: float = 0.0
    started_s: float = 0.0
    rate: Annotated[float, Meta(gt=0)] = 1.0


class IntakeTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """[intake]: flushing, receipts, and who may report. Seconds are the clock's, ms are real."""

    flush_messages: Annotated[int, Meta(ge=1, le=1000)] = 200
    flush_ms: Annotated[int, Meta(ge=1, le=50)] = 20
    receipt_interval_s: Annotated[int, Meta(ge=1, le=7 * DAY_S)] = 3600
    receipts_per_s: Annotated[int, Meta(ge=1, le=10_000)] = 500
    resend_window_s: Annotated[int, Meta(ge=60, le=366 * DAY_S)] = 35 * DAY_S
    tolerance_s: Annotated[int, Meta(ge=0, le=DAY_S)] = 300
    max_devices: Annotated[int, Meta(ge=1, le=10_000_000)] = 100_000
    enrolment: Literal["open"] | tuple[str, ...] = "open"


class StreamTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """[[streams]]: one quantity of the fleet, in integers of its unit, and how it is asked for.

    `horizon`: values in the longest query (devices × slots), which θ is chosen for. `mechanism` is
    that of stream reports: `size` is the hybrid's, `bits` the tuned table's. `theta`: how θ and the
    survey's range are chosen, "published" being the papers' rule.
    """

    name: str
    id: Annotated[int, Meta(ge=0, le=255)]
    unit: Annotated[str, Meta(min_length=1, max_length=16)]
    ceiling: int
    epsilon: Decimal | int
    horizon: Positive
    theta: Literal["adaptive", "published"] = "adaptive"
    low: int = 0
    slot_seconds: Annotated[int, Meta(ge=1, le=DAY_S)] = 900
    mechanism: Literal["hybrid", "tuned"] = "hybrid"
    size: Annotated[int, Meta(ge=2, le=16_384)] = 256
    bits: Literal[3, 4] = 4
    survey_size: Annotated[int, Meta(ge=2, le=16_384)] = 1024
    survey_share: Decimal = Decimal("0.0625")
    min_survey_reports: Positive = 4096
    revise_slots: Positive = 96 * 7
    hysteresis: Decimal = Decimal("0.02")
    bucket_slots: Annotated[int, Meta(ge=1, le=65_536)] = 4
    utc_offset_s: Annotated[int, Meta(ge=-DAY_S, le=DAY_S)] = 0

    @property
    def share(self) -> tuple[int, int]:
        """`survey_share` as the integers of a coin."""
        return round(self.survey_share * SHARE_DEN), SHARE_DEN

    def sums(self, theta: int) -> Mechanism:
        """Return the mechanism of stream reports truncated at θ; raises ParameterError."""
        if self.mechanism == "tuned":
            return Tuned(epsilon=self.epsilon, low=self.low, high=theta, bits=self.bits)
        return Hybrid(epsilon=self.epsilon, low=self.low, high=theta, size=self.size)

    def survey(self, low: int | None = None, high: int | None = None) -> SquareWave:
        """Return the mechanism of survey reports, over the whole range unless a part is given.

        A part that is narrower than `survey_size` gets a bucket for each value. Raises
        ParameterError.
        """
        first = self.low if low is None else low
        last = self.ceiling if high is None else high
        size = min(self.survey_size, last - first + 1)
        return SquareWave(epsilon=self.epsilon, low=first, high=last, size=size)

    @property
    def bucket_s(self) -> int:
        """Length of a time bucket, seconds."""
        return self.bucket_slots * self.slot_seconds


class AggregatorConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    fleet: str
    broker: BrokerTable
    store: StoreTable
    streams: tuple[StreamTable, ...]
    clock: ClockTable = ClockTable()
    intake: IntakeTable = IntakeTable()
    plans: PlansTable = PlansTable()
    archive: ArchiveTable | None = None

    @property
    def client_id(self) -> str:
        """The client id, the same at every start, so that the broker keeps our messages."""
        return self.broker.client_id or f"edge-ldp-{self.fleet}-aggregator"


def load_config(path: Path) -> AggregatorConfig:
    """Return the checked configuration; raises ConfigError(file, key, expected)."""
    try:
        text = path.read_text()
    except OSError as exc:
        raise ConfigError(str(path), "file", f"expected a readable file ({exc.strerror})") from exc
    except UnicodeDecodeError as exc:
        raise ConfigError(str(path), "file", "expected UTF-8 text") from exc
    return parse_config(text, str(path))


def parse_config(text: str, file: str) -> AggregatorConfig:
    """Return the configuration in `text`; raises ConfigError naming `file`, key and expected."""
    try:
        table = tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as exc:
        raise ConfigError(file, "syntax", f"expected TOML ({exc})") from exc
    try:
        config = msgspec.convert(table, AggregatorConfig)
    except msgspec.ValidationError as exc:
        message, _, key = str(exc).partition(" - at `$")
        raise ConfigError(file, key.rstrip("`").lstrip(".") or "file", message) from exc
    for key, expected in _faults(config):
        raise ConfigError(file, key, f"expected {expected}")
    return config


def is_loopback(host: str) -> bool:
    """Say whether a host name or address is this machine, without asking a resolver."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def read_password(table: BrokerTable, file: str) -> str | None:
    """Return the broker password from its file, which only its owner may read."""
    return _read_secret(table.password_file, "broker.password_file", file)


def read_store_password(table: StoreTable, file: str) -> str | None:
    """Return the database's password from its file, which only its owner may read."""
    return _read_secret(table.password_file, "store.password_file", file)


def _read_secret(name: str | None, key: str, file: str) -> str | None:
    if name is None:
        return None
    path = Path(name)
    try:
        if path.stat().st_mode & MAX_PASSWORD_MODE:
            raise ConfigError(file, key, f"expected a file of mode 0600: chmod 600 {path}")
        return path.read_text().strip()
    except OSError as exc:
        raise ConfigError(file, key, f"expected a readable file ({exc.strerror}: {path})") from exc


def _faults(config: AggregatorConfig) -> Iterator[tuple[str, str]]:
    """Yield (key, expected) of what single fields cannot show."""
    yield from _unless("fleet", partial(check_name, "name", config.fleet))
    yield from _broker_faults(config.broker)
    yield from _store_faults(config.store)
    if isinstance(config.intake.enrolment, tuple):
        for at, device in enumerate(config.intake.enrolment):
            yield from _unless(f"intake.enrolment[{at}]", partial(check_name, "name", device))
    if config.archive is not None and config.store.path is None:
        yield "archive", "no [archive] with store.url: it is kept beside a SQLite store"
    if not 1 <= len(config.streams) <= MAX_STREAMS:
        yield "streams", f"1 to {MAX_STREAMS} [[streams]]"
    for what in ("id", "name"):
        values = [getattr(stream, what) for stream in config.streams]
        if len(set(values)) != len(values):
            yield f"streams.{what}", "a different one for each stream"
    for at, stream in enumerate(config.streams):
        for key, expected in _stream_faults(stream):
            yield f"streams[{at}].{key}", expected


def _broker_faults(broker: BrokerTable) -> Iterator[tuple[str, str]]:
    if not (broker.use_tls or broker.allow_plaintext or is_loopback(broker.host)):
        yield "broker.tls", "true off this machine, or allow_plaintext = true if anyone may listen"
    if (broker.cert_file is None) != (broker.key_file is None):
        yield "broker.key_file", "the private key of cert_file, and both or none"
    if broker.password_file is not None and broker.username is None:
        yield "broker.username", "a user name with the password"


def _store_faults(store: StoreTable) -> Iterator[tuple[str, str]]:
    if (store.path is None) == (store.url is None):
        yield "store", "path = a SQLite file, or url = a PostgreSQL database, and one of them"
    if store.url is None:
        if store.password_file is not None:
            yield "store.password_file", "none for a SQLite file"
        return
    scheme, _, rest = store.url.partition("://")
    if scheme not in ("postgresql", "postgres"):
        yield "store.url", "postgresql://user@host/database"
    user, at, _ = rest.partition("/")[0].partition("?")[0].rpartition("@")
    if at and ":" in user:
        yield "store.url", "no password in it; name a file of mode 0600 as password_file"


def _stream_faults(stream: StreamTable) -> Iterator[tuple[str, str]]:
    yield from _unless("name", partial(check_name, "name", stream.name))
    if stream.low >= stream.ceiling:
        yield "ceiling", "more than low"
        return
    if not 0 < stream.survey_share <= 1 or not stream.share[0]:
        yield "survey_share", "a number above 0, at least 1/65536, and at most 1"
    if not 0 <= stream.hysteresis < 1:
        yield "hysteresis", "a number from 0 to below 1"
    if stream.survey_size > stream.ceiling - stream.low + 1:
        yield "survey_size", "at most ceiling - low + 1"
        return
    yield from _unless("epsilon", partial(_check_codes, stream))


def _check_codes(stream: StreamTable) -> None:
    """Raise ParameterError for mechanisms that cannot be made, or have too many codes together."""
    sums, survey = stream.sums(stream.ceiling), stream.survey()
    reporter(sums.randomizer, survey.randomizer, stream.share)


def _unless(key: str, build: Callable[[], object]) -> Iterator[tuple[str, str]]:
    try:
        build()
    except ParameterError as exc:
        yield key, exc.expected
