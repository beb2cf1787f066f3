"""Where tap, share and page may go. Imported by who has one, for memory's sake."""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from agent.config.sections import PageTable, ShareTable, TapTable
from agent.meters.section import MeterTable
from edge_ldp.service.broker import LOOPBACK, BrokerTable

PRIVATE = tuple(
    ip_network(net) for net in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")
)
"""RFC 1918 and RFC 4193: nobody outside reaches these, so nothing goes outside by them."""


def tap_faults(tap: TapTable, broker: BrokerTable) -> list[tuple[str, str]]:
    """Return (key, expected) of what stands against a tap beside this broker."""
    same_host = tap.host == broker.host or {tap.host, broker.host} <= set(LOOPBACK)
    is_local = tap.host in LOOPBACK
    checks = (
        ("tap.host", tap.host.count(":") != 1, "a name or address; the port is a key apart"),
        (
            "tap.host",
            not (same_host and tap.use_port == broker.use_port),
            "a broker of your own: never the one that reports go to",
        ),
        (
            "tap.host",
            is_local or tap.allow_beyond_lan or not _is_public_address(tap.host),
            "an address of your own network, or allow_beyond_lan = true",
        ),
        (
            "tap.username",
            tap.username or not tap.password_file,
            "the user that the password is for",
        ),
        ("tap.ca_file", tap.tls or tap.ca_file is None, "nothing unless tls = true"),
        (
            "tap.tls",
            tap.tls or is_local or tap.allow_plaintext,
            "true off this machine, or allow_plaintext = true if your network may listen",
        ),
    )
    return [(key, expected) for key, holds, expected in checks if not holds]


def share_faults(share: ShareTable, meter: MeterTable | None) -> list[tuple[str, str]]:
    """Return (key, expected) of what stands against a share of this meter."""
    is_asked = meter is None or meter.protocol == "modbus" or meter.mode == "request"
    expected = "no such table unless there is one meter, which speaks by itself"
    faults = [("share", expected)] if is_asked else []
    return faults + door_faults("share", share)


def door_faults(name: str, table: ShareTable | PageTable) -> list[tuple[str, str]]:
    """Return (key, expected) of what stands against listening there for whom a table names."""
    checks = [
        (f"{name}.listen", _is_local(table.listen), "an address of this machine in your network"),
        (
            f"{name}.listen",
            bool(table.readers) or table.listen in LOOPBACK[1:],
            "127.0.0.1, unless readers name who may connect",
        ),
    ]
    checks += [
        (f"{name}.readers[{at}]", _is_local(one), "an address of your own network")
        for at, one in enumerate(table.readers)
    ]
    return [(key, expected) for key, holds, expected in checks if not holds]


def _is_local(text: str) -> bool:
    """Say whether a text is an address of this machine or of a local network."""
    try:
        return is_local_address(ip_address(text))
    except ValueError:
        return False


def _is_public_address(host: str) -> bool:
    """Say whether a host is written as an address, and not one of a local network."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return False  # a name: looked at when it is resolved
    return not is_local_address(address)


def is_local_address(address: IPv4Address | IPv6Address) -> bool:
    """Say whether an address is of this machine, of this link or of a private network."""
    mapped = getattr(address, "ipv4_mapped", None) or address
    return mapped.is_loopback or mapped.is_link_local or any(mapped in net for net in PRIVATE)
