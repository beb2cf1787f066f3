"""What a port's name means: a device of this machine, a serial adapter, or a dongle's own words.

`socket://host:port` is a plain TCP connection to an adapter that is set up by itself;
`rfc2217://host:port` is Telnet by which speed and form of the line are set, too.
`http(s)://host/path` is a page that is asked for again and again, `mqtt(s)://host/topic` a topic of
the household's own broker: what each answer or message holds are the bytes of a telegram.
Without TLS a meter's readings go through the network as they are: nothing hides them there.
"""

import re
from typing import Any, Literal, NamedTuple

_FORM = re.compile(
    r"(socket|rfc2217)://"
    r"(\[[0-9A-Fa-f:.]{2,45}]|[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63}){0,126}\.?):([0-9]{1,5})"
)
_SOURCE = re.compile(
    r"(https?|mqtts?)://"
    r"(\[[0-9A-Fa-f:.]{2,45}]|[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63}){0,126}\.?)"
    r"(?::([0-9]{1,5}))?/([\x21-\x7e]{0,512})"
)
_HOST = re.compile(
    r"(https?|mqtts?)://"
    r"(?:\[[0-9A-Fa-f:.]{2,45}]|[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63}){0,126}\.?)"
    r"(?::[0-9]{1,5})?"
)
_SECRET = re.compile(r"[?&;][^=&;]*(?:auth|key|pass|pwd|secret|token|user)[^=&;]*=", re.IGNORECASE)
_USUAL_PORTS = {"http": 80, "https": 443, "mqtt": 1883, "mqtts": 8883}
_QUAD = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}")
_TOPIC = "one topic, without + and #; a login stands in [meter.access]"
_PAGE = "a login or token stands in a file that [meter.access] names, never in the address"
_MODBUS = "Modbus TCP is socket://HOST:502 and framing = 'tcp'"
_HINTS = {
    **dict.fromkeys(("mqtt", "mqtts"), _TOPIC),
    **dict.fromkeys(("http", "https"), _PAGE),
    **dict.fromkeys(("ws", "wss"), "web sockets are not read"),
    **dict.fromkeys(("tcp", "modbus", "modbus-tcp"), _MODBUS),
}
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


class Source(NamedTuple):
    """A page or topic whose contents are telegrams; `path` is without the leading slash."""

    scheme: Literal["http", "https", "mqtt", "mqtts"]
    host: str
    port: int
    path: str

    @property
    def is_asked(self) -> bool:
        """Whether it tells something only when it is asked."""
        return self.scheme in ("http", "https")

    @property
    def is_encrypted(self) -> bool:
        """Whether nobody between here and there sees what it tells."""
        return self.scheme in ("https", "mqtts")

    @property
    def is_exposed(self) -> bool:
        """Whether readings come to this machine in the clear."""
        return not self.is_encrypted and self.host not in _LOOPBACK


def source_of(name: str) -> Source | None:
    """Return the page or topic that a name is; None for all else, also for a topic of many."""
    form = _SOURCE.fullmatch(name)
    if form is None:
        return None
    scheme: Any = form[1]
    port = int(form[3] or _USUAL_PORTS[scheme])
    is_topic = scheme in ("mqtt", "mqtts")
    if not 1 <= port <= _MAX_PORT or (is_topic and (not form[4] or set("+#") & set(form[4]))):
        return None
    if not is_topic and _SECRET.search(form[4]):
        return None  # it would stand in every log
    return Source(scheme, form[2].strip("[]"), port, form[4])


def host_of(name: str) -> str | None:
    """Return `scheme://host[:port]` of a name that says no more than that; None for all else."""
    bare = name.removesuffix("/")
    return bare if _HOST.fullmatch(bare) else None


def shown(name: str) -> str:
    """Return a port's name as logs may have it: a page's without what it is asked."""
    source, (page, mark, _) = source_of(name), name.partition("?")
    return f"{page}?…" if mark and source is not None and source.is_asked else name


def is_device(name: str) -> bool:
    """Say whether a name is of a device of this machine."""
    return address_of(name) is None and source_of(name) is None


def is_exposed(name: str) -> bool:
    """Say whether a meter's readings come to this machine in the clear, through a network."""
    where = address_of(name) or source_of(name)
    return where is not None and where.is_exposed


def fault_of(name: str) -> str | None:
    """Return what is expected where a name means no port; None where it may be one."""
    if "://" not in name:
        return _schemeless(name)
    if address_of(name) or source_of(name):
        return None
    expected = (
        "a device such as /dev/ttyUSB0, socket://HOST:PORT, rfc2217://HOST:PORT, "
        "http(s)://HOST/PATH or mqtt(s)://HOST/TOPIC"
    )
    hint = _HINTS.get(name.partition("://")[0].lower())
    return f"{expected}; {hint}" if hint else expected


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
