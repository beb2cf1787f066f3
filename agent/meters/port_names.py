"""What a port's name means: a device of this machine, or a serial adapter in the network.

`socket://host:port` is a plain TCP connection to an adapter that is set up by itself;
`rfc2217://host:port` is Telnet by which speed and form of the line are set, too.
Both carry a meter's readings through the network as they are: nothing hides them there.
"""

import re
from typing import Literal, NamedTuple

_FORM = re.compile(
    r"(socket|rfc2217)://"
    r"(\[[0-9A-Fa-f:.]{2,45}]|[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63}){0,126}\.?):([0-9]{1,5})"
)
_QUAD = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}")
_STREAM = "let the meter's adapter hand its serial bytes through a plain TCP port"
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_MAX_PORT = 65_535


class Address(NamedTuple):
    """Where a network adapter is, and how it is spoken to."""

    scheme: Literal["socket", "rfc2217"]
    host: str
    port: int

    @property
    def is_exposed(self) -> bool:
        """Whether readings leave this machine in the clear."""
        return self.host not in _LOOPBACK


def address_of(name: str) -> Address | None:
    """Return the address that a name is; None for a device, or for what `fault_of` tells."""
    form = _FORM.fullmatch(name)
    if form is None or not 1 <= int(form[3]) <= _MAX_PORT:
        return None
    scheme: Literal["socket", "rfc2217"] = "socket" if form[1] == "socket" else "rfc2217"
    return Address(scheme, form[2].strip("[]"), int(form[3]))


def fault_of(name: str) -> str | None:
    """Return what is expected where a name means no port; None where it may be one."""
    if "://" not in name:
        return _schemeless(name)
    if address_of(name):
        return None
    expected = "a device such as /dev/ttyUSB0, socket://HOST:PORT or rfc2217://HOST:PORT"
    scheme = name.partition("://")[0].lower()
    if scheme in ("mqtt", "mqtts", "ws", "wss"):
        return f"{expected}; nothing is read from a broker: {_STREAM}"
    if scheme in ("http", "https"):
        return f"{expected}; no web interface is asked: {_STREAM}"
    if scheme in ("tcp", "modbus", "modbus-tcp"):
        return f"{expected}; Modbus TCP is socket://HOST:502 and framing = 'tcp'"
    return expected


def _schemeless(name: str) -> str | None:
    """Return what is expected where an adapter's address lacks its scheme: no device is called so.

    Without this a service would wait for such a device for ever, and `check` would pass it.
    """
    where = f"{name}:PORT" if _QUAD.fullmatch(name) else name
    if where == name and address_of(f"socket://{name}") is None:
        return None
    return (
        f"a scheme before an address in the network: socket://{where}, or rfc2217://{where}, which "
        f"sets the adapter's speed too; a device of this name is ./{name}"
    )
