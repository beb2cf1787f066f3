"""[broker] of both services' TOML files: where the broker is, as whom, over TLS or not. Pure."""

from dataclasses import dataclass
from typing import Annotated, Literal

from edge_ldp.service.broker import Broker
from edge_ldp.service.typed_table import Form, Range, Text

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
