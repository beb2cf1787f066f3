"""What single fields of the agent's configuration cannot show: contradictions between them."""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from agent.config.tables import LOOPBACK, AgentConfig
from agent.meters.config import meter_faults
from agent.meters.reading import UNITS
from edge_ldp.device.errors import ParameterError
from edge_ldp.messages import check_name
from edge_ldp.plan import STREAM_MECHANISMS, SURVEY_MECHANISMS
from edge_ldp.ratio import floor_ratio
from edge_ldp.signing import MAX_KEYS, parse_public

PRIVATE = tuple(
    ip_network(net) for net in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")
)
"""RFC 1918 and RFC 4193: nobody outside reaches these, so nothing goes outside by them."""


def faults_of(config: AgentConfig) -> list[tuple[str, str]]:
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
    for key in ("ca_file", "cert_file", "crl_file"):
        unused = broker.use_tls or getattr(broker, key) is None
        check(f"broker.{key}", unused, "nothing unless tls = true")
    has_both = (broker.cert_file is None) == (broker.key_file is None)
    check("broker.key_file", has_both, "the private key of cert_file, and both or none")
    check(
        "broker.tls",
        broker.use_tls or broker.allow_plaintext or broker.host in LOOPBACK,
        "true off this machine, or allow_plaintext = true if you accept that anyone may listen",
    )
    check("plans.keys", len(set(config.plans.keys)) <= MAX_KEYS, f"at most {MAX_KEYS} keys")
    for at, key in enumerate(config.plans.keys):
        _collect(faults, f"plans.keys[{at}]", lambda key=key: parse_public(key))
    faults += _tap_faults(config)
    return faults + _mode_faults(config)


def _mode_faults(config: AgentConfig) -> list[tuple[str, str]]:
    """Return what stands against the mode; the curator's library is loaded for its own only."""
    if config.mode == "local":
        unused = [("curator", "no such table unless mode = 'curator'")]
        return [] if config.curator is None else unused
    if config.curator is None:
        return [("curator", "a [curator] table with its epsilon, as mode = 'curator'")]
    from agent.curator_setup import curator_faults  # noqa: PLC0415 (memory: the local mode has no use)

    return curator_faults(config)


def _tap_faults(config: AgentConfig) -> list[tuple[str, str]]:
    """Return what stands against the tap: it shows readings, so where it goes is looked at."""
    tap, broker = config.tap, config.broker
    if tap is None:
        return []
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
            is_local or tap.allow_beyond_lan or not is_public_address(tap.host),
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


def is_public_address(host: str) -> bool:
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


def _collect(faults: list[tuple[str, str]], key: str, build: object) -> None:
    try:
        build()  # type: ignore[operator]
    except ParameterError as exc:
        faults.append((key, exc.expected))
