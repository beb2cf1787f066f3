"""The tables of the aggregator's file, as frozen values with their defaults.

The numbers stand here; what is done with them stands in: [retention]
aggregator/counting/retention.py; [intake] aggregator/intake/quota.py and
aggregator/intake/receipt_schedule.py; [guard] aggregator/counting/watching.py; [query]
aggregator/answers/crowds.py; [announce] aggregator/running/announcer.py; [[streams]]
aggregator/config/streams.py and aggregator/plans/planner.py.
"""

import re
from dataclasses import dataclass
from datetime import timedelta, timezone, tzinfo
from ipaddress import ip_address
from typing import Annotated, Any, Literal

from aggregator.config.streams import StreamTable
from edge_ldp.service import broker
from edge_ldp.service.broker import Port
from edge_ldp.service.typed_table import Form, Range
from edge_ldp.service.zones import zone_of

DAY_S = 86_400


_HEADER = r"[A-Za-z0-9-]+"
_URL = re.compile(
    r"(?P<scheme>https?)://(?P<host>[A-Za-z0-9.-]+|\[[0-9a-fA-F:.]+\])(:(?P<port>[0-9]{1,5}))?"
    r"(/[!-\"$->@-~]*)?(\?[!-\"$-~]*)?"
)


@dataclass(frozen=True, slots=True)
class BrokerTable(broker.BrokerTable):
    """[broker]: what both services have in it, and how this one takes messages.

    `session_days`: how long the broker keeps our session, and the messages in it, while we are
    away. `window`: messages it may send before we acknowledge. `share`: the name under which
    several workers share the messages, each started with `--worker`.
    """

    client_id: Annotated[str, Form(r"(?s:.{1,64})", "1 to 64 characters")] | None = None
    session_days: Annotated[int, Range(ge=1, le=365)] = 35
    window: Annotated[int, Range(ge=1, le=1000)] = 1000
    share: str | None = None


@dataclass(frozen=True, slots=True)
class PlansTable:
    """[plans]: the private key that plans are signed with, a file of mode 0600.

    `next_key`: the public key that is to follow it, in hex, which invitations tell devices.
    """

    signing_key_file: str | None = None
    next_key: str | None = None


@dataclass(frozen=True, slots=True)
class StoreTable:
    """[store]: what holds dedupe state, counts and plans: a SQLite file, or a PostgreSQL database.

    `path` or `url` (postgresql://user@host/database), never both. A password stands in a file of
    mode 0600, or where PostgreSQL's own clients look for it; it is refused in the URL.
    """

    path: str | None = None
    url: str | None = None
    password_file: str | None = None


@dataclass(frozen=True, slots=True)
class ArchiveTable:
    """[archive]: the directory that keeps every counted report; without it none is kept.

    `shards`: files that each day's reports are spread over by device; never changed later.
    """

    path: Annotated[str, Form(r"(?s:.+)", "text")]
    shards: Annotated[int, Range(ge=1, le=1024)] = 1


@dataclass(frozen=True, slots=True)
class RetentionTable:
    """[retention]: how long counts are kept by time bucket, hour and day; without a key: for ever.

    After `bucket_days` buckets are added up to hours, after `hour_days` to days of UTC; after
    `day_days` they are deleted. Sums of hours, and homes' own of a period, are kept until then.
    """

    bucket_days: Annotated[int, Range(ge=1, le=36_525)] | None = None
    hour_days: Annotated[int, Range(ge=1, le=36_525)] | None = None
    day_days: Annotated[int, Range(ge=1, le=36_525)] | None = None


@dataclass(frozen=True, slots=True)
class ClockTable:
    """[clock]: only demos and tests set it: `rate` seconds pass in one, from `origin_s` on."""

    origin_s: float = 0.0
    started_s: float = 0.0
    rate: Annotated[float, Range(gt=0)] = 1.0


@dataclass(frozen=True, slots=True)
class IntakeTable:
    """[intake]: flushing, receipts, and who may report. Seconds are the clock's, ms are real.

    `quota_messages`: of one device in one receipt interval that bring nothing new; above it the
    device is not listened to until the interval is over (aggregator.intake.quota).
    """

    flush_messages: Annotated[int, Range(ge=1, le=1000)] = 500
    flush_ms: Annotated[int, Range(ge=1, le=50)] = 20
    receipt_interval_s: Annotated[int, Range(ge=1, le=7 * DAY_S)] = 3600
    receipts_per_s: Annotated[int, Range(ge=1, le=10_000)] = 500
    resend_window_s: Annotated[int, Range(ge=60, le=366 * DAY_S)] = 35 * DAY_S
    tolerance_s: Annotated[int, Range(ge=0, le=DAY_S)] = 300
    quota_messages: Annotated[int, Range(ge=100, le=100_000_000)] = 2000
    max_devices: Annotated[int, Range(ge=1, le=10_000_000)] = 100_000
    enrolment: Literal["open", "store"] | tuple[str, ...] = "open"

    @property
    def listed(self) -> frozenset[str] | None:
        """Devices that the configuration lists, or None: the store says who may report."""
        return frozenset(self.enrolment) if isinstance(self.enrolment, tuple) else None


@dataclass(frozen=True, slots=True)
class GuardTable:
    """[guard]: what a mark does (docs/poisoning.md): nothing but tell, or put into quarantine."""

    quarantine: Literal["off", "marked"] = "off"


@dataclass(frozen=True, slots=True)
class QueryTable:
    """[query]: figures of fewer devices than `min_devices` are not given out (AGG-13).

    `zone`: whose time people read, and by which hours, days and weeks are, as "Europe/Berlin";
    without it, that of the stream's `utc_offset_s`.
    """

    min_devices: Annotated[int, Range(ge=1, le=1_000_000)] = 10
    zone: str | None = None


@dataclass(frozen=True, slots=True)
class DevicesTable:
    """[devices]: how devices reach the broker, and where their logins are kept; for invitations.

    `passwords_file` and `pid_file` are the broker's own: invited devices are written into the one,
    and the process that the other names is told to read it again.
    """

    host: Annotated[str, Form(r"[A-Za-z0-9:][A-Za-z0-9._:%-]*", "a name or address")]
    passwords_file: str
    port: Port | None = None
    tls: bool = True
    ca_file: str | None = None
    pid_file: str | None = None

    @property
    def use_port(self) -> int:
        """The port as given, else the standard one."""
        return self.port or (8883 if self.tls else 1883)


@dataclass(frozen=True, slots=True)
class RehearsalTable:
    """[rehearsal]: the login that simulated homes share; a fleet of real ones has no such table."""

    username: str
    password_file: str


@dataclass(frozen=True, slots=True)
class SignOnTable:
    """[console.sign_on]: a proxy that people sign on at says who asks, and nobody else may.

    `proxy`: its address, or "unix" where the console listens at a socket. `user`, `groups`: the
    headers that it sets, and takes away from what it is sent. `roles`: of a group, or without
    `groups` of a user; "*": of whoever signed on; the first that fits.
    """

    proxy: Annotated[str, Form(r"unix|[0-9a-fA-F:.]+", "an address, or unix")]
    user: Annotated[str, Form(_HEADER, "a header's name")]
    roles: dict[str, Any]
    groups: Annotated[str, Form(_HEADER, "a header's name")] | None = None


@dataclass(frozen=True, slots=True)
class OidcTable:
    """[console.oidc]: people sign on at a provider of OpenID Connect.

    `issuer`: its address, as it writes it. `client_id`, `secret_file` (mode 0600): as registered
    there, with `address`, the console's own, and behind it /signed-on, and /login for who
    logged out. `roles`: of a value of
    `claim` in the ID token, which `scope` asks for; the first that fits, as of [console.sign_on].
    """

    issuer: str
    client_id: Annotated[str, Form(r"[\x21-\x7e]{1,255}", "as it is registered")]
    secret_file: str
    address: str
    roles: dict[str, Any]
    claim: str = "groups"
    scope: Annotated[str, Form(r"openid( [\x21-\x7e]+)*", "openid and what else")] = (
        "openid profile email"
    )

    @property
    def redirect_uri(self) -> str:
        """Where the provider sends a browser back to."""
        return f"{self.address.rstrip('/')}/signed-on"

    @property
    def logged_out_uri(self) -> str:
        """Where it sends a browser back to that signed off there."""
        return f"{self.address.rstrip('/')}/login"


@dataclass(frozen=True, slots=True)
class ConsoleTable:
    """[console]: where `edge-ldp console` listens, and who may look.

    `hosts`: names that a browser may ask for beside this machine's own. `tokens_file`: written by
    `console tokens make`; with it every request needs a token. `url`, `password_file`: of a
    PostgreSQL role that may only read, in place of [store]'s. `per_minute`: requests of one token,
    or of one address without tokens. `processes`: that answer beside each other. `listen`: an
    address, or the path of a socket. `price`: of a kWh, "0.30 EUR", for who wants to see what
    energy cost.
    """

    listen: str = "127.0.0.1"
    port: Port = 8420
    hosts: tuple[str, ...] = ()
    tokens_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    allow_plaintext: bool = False
    url: str | None = None
    password_file: str | None = None
    per_minute: Annotated[int, Range(ge=10, le=1_000_000)] = 600
    processes: Annotated[int, Range(ge=1, le=16)] = 2
    price: Annotated[str, Form(r"[0-9]{1,6}(\.[0-9]{1,6})? [A-Z]{3}", "0.30 EUR")] | None = None
    sign_on: SignOnTable | None = None
    oidc: OidcTable | None = None

    @property
    def is_here(self) -> bool:
        """Whether nobody beyond this machine reaches it."""
        return self.listen.startswith("/") or is_loopback(self.listen)


@dataclass(frozen=True, slots=True)
class AnnounceTable:
    """[announce]: sums with their intervals to the broker, retained; no such table: none.

    Every `interval_s` the last hour and the last day that have been over for `delay_s`.
    `discovery`: the prefix under which Home Assistant looks for sensors; without it, not told.
    `groups`: each day every group's last closed month, for its own homes.
    """

    interval_s: Annotated[int, Range(ge=10, le=DAY_S)] = 900
    delay_s: Annotated[int, Range(ge=0, le=7 * DAY_S)] = 900
    discovery: Annotated[str, Form(r"[A-Za-z0-9/_-]{1,64}", "a topic, as homeassistant")] | None = (
        None
    )
    groups: bool = False

    def sensor_topic(self, fleet: str, sensor: str) -> str:
        """Return where Home Assistant is told of a sensor of the fleet; `discovery` is given."""
        return f"{self.discovery}/sensor/edge-ldp-{fleet}/{sensor}/config"


@dataclass(frozen=True, slots=True)
class AggregatorConfig:
    """The whole file."""

    fleet: str
    broker: BrokerTable
    store: StoreTable
    streams: tuple[StreamTable, ...]
    clock: ClockTable = ClockTable()
    intake: IntakeTable = IntakeTable()
    plans: PlansTable = PlansTable()
    archive: ArchiveTable | None = None
    retention: RetentionTable = RetentionTable()
    guard: GuardTable = GuardTable()
    query: QueryTable = QueryTable()
    devices: DevicesTable | None = None
    rehearsal: RehearsalTable | None = None
    console: ConsoleTable = ConsoleTable()
    announce: AnnounceTable | None = None

    @property
    def client_id(self) -> str:
        """The client id, the same at every start, so that the broker keeps our messages."""
        return self.broker.client_id or f"edge-ldp-{self.fleet}-aggregator"

    @property
    def speed(self) -> float:
        """By how much more than real time passes on the fleet's clock, at least 1."""
        return max(1.0, self.clock.rate)

    @property
    def planned(self) -> tuple[StreamTable, ...]:
        """The streams that plans are issued for: those that homes report single values of."""
        return tuple(stream for stream in self.streams if not stream.is_summed_alone)

    def silent_before(self, now_s: int) -> int:
        """Return when a device must last have been heard of: a day ago, real time where less."""
        return now_s - int(DAY_S * self.speed)

    def zone(self, stream: StreamTable | None = None) -> tzinfo:
        """Return whose time people read of a stream, the first unless given; raises ValueError."""
        if self.query.zone is not None:
            return zone_of(self.query.zone)
        offset_s = (stream or self.streams[0]).utc_offset_s
        return timezone(timedelta(seconds=offset_s if abs(offset_s) < DAY_S else 0))


def is_loopback(host: str) -> bool:
    """Say whether a host name or address is this machine, without asking a resolver."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_safe_url(url: str) -> bool:
    """Say whether nobody on the way reads what is asked there: by https, or on this machine."""
    found = _URL.fullmatch(url)
    if found is None or not 0 < int(found["port"] or 1) < 1 << 16:
        return False
    return found["scheme"] == "https" or is_loopback(found["host"].strip("[]"))
