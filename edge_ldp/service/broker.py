"""Where to connect and as whom, what travels, the two ways in which it ends, and what may help.

That is told from the reason that an attempt ended for (of `edge_ldp.service.mqtt`): advice, never a
decision; whether we are refused for who we say we are decides how soon to try again.
"""

from dataclasses import dataclass, field
from typing import Annotated, Literal, NamedTuple

from edge_ldp.device.errors import EdgeLdpError
from edge_ldp.lean_class import lean_class
from edge_ldp.service.typed_table import Form, Range, Text


class LinkLostError(EdgeLdpError):
    """The connection could not be made, or is gone: `endpoint` and a short `reason`."""

    def __init__(self, endpoint: str, reason: str) -> None:
        super().__init__(f"broker {endpoint}: {reason}")
        self.endpoint = endpoint
        self.reason = reason


class RefusedError(EdgeLdpError):
    """The broker refused one publish or subscribe (MQTT 5 says so; 3.1.1 is silent)."""

    def __init__(self, topic: str, reason: str) -> None:
        super().__init__(f"broker refused {topic}: {reason}")
        self.topic = topic
        self.reason = reason


class TooBigError(RefusedError):
    """A message larger than the `limit` that the broker named; it was not sent, the link lives."""

    def __init__(self, topic: str, limit: int) -> None:
        super().__init__(topic, f"it takes packets of at most {limit} bytes")
        self.limit = limit


class Message(NamedTuple):
    """One message; `mid` is what an acknowledgement of an incoming one names."""

    topic: str
    payload: bytes
    retain: bool = False
    mid: int = 0


@lean_class(frozen=True, slots=True)
class Broker:
    """Where to connect and as whom; `protocol` "auto" prefers MQTT 5 and falls back to 3.1.1.

    `session_s` > 0 keeps the broker's session so long (messages wait while we are away); `window`
    is the receive maximum asked for. `manual_ack`: messages count as received only by `Link.ack`.
    With `tls` the certificate is always verified, against `ca_file` or the system's authorities and
    for `host`; `crl_file` adds revocations. `cert_file` and `key_file` are our own certificate.
    A peer that is gone is noticed within 1.5 × `keepalive_s`.
    """

    host: str
    port: int
    client_id: str
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: bool = False
    ca_file: str | None = None
    protocol: str = "auto"
    keepalive_s: int = 30
    session_s: int = 0
    manual_ack: bool = False
    window: int = 1000
    will: Message | None = None
    cert_file: str | None = None
    key_file: str | None = None
    crl_file: str | None = None
    connect_timeout_s: float = 20.0

    @property
    def endpoint(self) -> str:
        """host:port, for messages to people."""
        return f"{self.host}:{self.port}"


LOOPBACK = ("localhost", "127.0.0.1", "::1")
Host = Annotated[  # a name, its labels of 1 to 63 characters, or an IPv6 address
    str,
    Form(
        r"[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?|[A-Za-z0-9._%-]*:[A-Za-z0-9._:%-]*",
        "a name or address",
    ),
]
Port = Annotated[int, Range(ge=1, le=65_535)]


@dataclass(frozen=True, slots=True)
class BrokerTable:
    """[broker]: where messages go or come from. Secrets stand in files of mode 0600, never here.

    `cert_file` and `key_file` are our own certificate; `crl_file` adds revocations. In the agent's
    file every *_file may be `credential:NAME`, which systemd places (agent/config/secrets.py).
    TLS unless the broker is on this machine; `use_tls` and `use_port` are what holds in the end.
    """

    host: Host
    port: Port | None = None
    username: Text | None = None
    password_file: Text | None = None
    tls: bool | None = None
    ca_file: Text | None = None
    cert_file: Text | None = None
    key_file: Text | None = None
    crl_file: Text | None = None
    allow_plaintext: bool = False
    protocol: Literal["auto", "5", "3.1.1"] = "auto"
    keepalive_s: Annotated[int, Range(ge=5, le=3600)] = 30

    @property
    def use_tls(self) -> bool:
        """Whether the link is encrypted: as said, else off on loopback and on elsewhere."""
        return self.host not in LOOPBACK if self.tls is None else self.tls

    @property
    def use_port(self) -> int:
        """The port as given, else the standard one."""
        return self.port or (8883 if self.use_tls else 1883)

    def named(self, client_id: str, password: str | None) -> Broker:
        """Return how to connect under a name, as whom and with which certificates."""
        return Broker(
            host=self.host,
            port=self.use_port,
            client_id=client_id,
            username=self.username,
            password=password,
            tls=self.use_tls,
            ca_file=self.ca_file,
            cert_file=self.cert_file,
            key_file=self.key_file,
            crl_file=self.crl_file,
            protocol=self.protocol,
            keepalive_s=self.keepalive_s,
        )


LOGIN_REMEDY = (
    "check user name and password in [broker], the files it names and the broker's access list"
)
_REFUSED = (
    "not authorized",
    "bad user name or password",
    "banned",
    "bad authentication method",
    "alert certificate",
    "alert bad certificate",
    "alert unknown ca",
    "alert unknown psk",
)
PLAIN_PORT, TLS_PORT = 1883, 8883
_CUT = ("connection reset", "closed before it answered", "wrong version", "record layer", "eof")
_PRIVATE = ("unable to get local issuer", "self-signed certificate", "self signed certificate")
_UNNAMED = ("name or service not known", "name resolution", "no address associated", "no host can")
_AWAY = ("no answer in time", "timed out", "unreachable", "no route to host")


def is_refused(reason: str) -> bool:
    """Return whether credentials, a certificate or rights are why a link or message was refused.

    To try again at once would only press the broker.
    """
    return any(text in reason for text in _REFUSED)


def remedy_of(reason: str, broker: Broker) -> str:
    """Return what may mend it, in the configuration's words; "" where nothing can be said."""
    lowered = reason.lower()
    if is_refused(lowered):
        return LOGIN_REMEDY
    found = (
        remedy for texts, remedy in _remedies(broker) if any(text in lowered for text in texts)
    )
    return next(found, "")


def _remedies(broker: Broker) -> tuple[tuple[tuple[str, ...], str], ...]:
    """Return pairs of texts in a reason and what they mean."""
    if broker.ca_file is None:
        authority = "name the certificate of the broker's own authority in [broker] ca_file"
    else:
        authority = f"{broker.ca_file} is not of the authority that signed the certificate"
    return (
        (_PRIVATE, authority),
        (("not valid for",), "write [broker] host as the broker's certificate names it"),
        (("has expired",), "the broker's certificate must be renewed, or this clock is wrong"),
        (("not yet valid",), "this device's clock is behind, or the certificate is for later"),
        (_CUT, _of_cut(broker)),
        (_UNNAMED, f"check [broker] host ({broker.host}) and this device's network"),
        (
            ("connection refused",),
            f"nothing listens there: check [broker] host and port ({broker.port}), and the broker",
        ),
        (_AWAY, "check this device's network, [broker] host and port, and firewalls between"),
    )


def _of_cut(broker: Broker) -> str:
    if broker.tls:
        return (
            f"does port {broker.port} speak TLS? without it write [broker] tls = false; "
            f"with it the port is mostly {TLS_PORT}"
        )
    return (
        f"does port {broker.port} want TLS? then write [broker] tls = true; "
        f"without it the port is mostly {PLAIN_PORT}"
    )
