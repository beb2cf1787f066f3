"""Where to connect and as whom, what travels, and the two ways in which it ends."""

from dataclasses import field
from typing import NamedTuple

from edge_ldp.device.errors import EdgeLdpError
from edge_ldp.lean_class import lean_class


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
