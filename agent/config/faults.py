"""What single fields of the agent's configuration cannot show: contradictions between them."""

from agent.claims.lifetime import Lifetime
from agent.config.sections import LOOPBACK, AgentConfig, StreamTable
from agent.meters.reading import UNITS
from agent.meters.section import MeterTable, meter_faults
from edge_ldp.device.errors import ParameterError
from edge_ldp.protocol.messages import check_name
from edge_ldp.protocol.plan import STREAM_MECHANISMS, SURVEY_MECHANISMS
from edge_ldp.protocol.signing import MAX_KEYS, parse_public
from edge_ldp.ratio import floor_ratio

MAX_METERS = 8


def faults_of(config: AgentConfig) -> list[tuple[str, str]]:
    """Return (key, expected) of what single fields cannot show, worst first."""
    faults: list[tuple[str, str]] = []

    def check(key: str, holds: bool, expected: str) -> None:  # noqa: FBT001 (a condition)
        if not holds:
            faults.append((key, expected))

    for key, name in (("device.fleet", config.device.fleet), ("device.id", config.device.id)):
        _collect(faults, key, lambda name=name: check_name("name", name))
    check("streams", 1 <= len(config.streams) <= 16, "1 to 16 [[streams]]")  # noqa: PLR2004
    is_one = (config.meter is None) != (not config.meters)
    why = "missing" if config.meter is None else "there are both"
    check("meter", is_one, f"a [meter] table, or [[meters]] for several: {why}")
    check("meters", len(config.meters) <= MAX_METERS, f"at most {MAX_METERS} [[meters]]")
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
        if (reader := _reader(config, stream)) is None:
            meters = ", ".join(repr(one.name) for one in config.meters)
            expected = (
                f"the name of one of [[meters]]: {meters}" if meters else "nothing with [meter]"
            )
            faults.append((here + "meter", expected))
        else:
            check(here + "quantity", *_shown(reader, stream.quantity))
        check(
            here + "slot_seconds",
            stream.slot_seconds == config.slot_seconds,
            "the same for all streams of a device",
        )
    _collect(faults, "policy.epsilon", lambda: floor_ratio(config.policy.epsilon))
    _collect(faults, "policy.window", lambda: config.window)
    life = config.lifetime
    check("policy.lifetime", life != Lifetime(), "reports, epsilon or both")
    spent = life.epsilon if life else None
    check("policy.lifetime.epsilon", spent is None or spent > 0, "more than 0")
    faults += _meters_faults(config)
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
    return faults + _tap_faults(config) + _mode_faults(config)


def _reader(config: AgentConfig, stream: StreamTable) -> MeterTable | None:
    """Return the meter that a stream is of; None when its `meter` names none."""
    meters = config.all_meters
    if len(meters) == 1 and stream.meter in ("", meters[0].name):
        return meters[0]
    return next((one for one in meters if one.name == stream.meter), None)


def _meters_faults(config: AgentConfig) -> list[tuple[str, str]]:
    """Return what is wrong in [meter], or in [[meters]] each and together."""
    if config.meter is not None:
        return meter_faults(config.meter)
    meters, faults = config.meters, list[tuple[str, str]]()
    for at, one in enumerate(meters):
        here = f"meters[{at}]"
        _collect(faults, f"{here}.name", lambda name=one.name: check_name("name", name))
        if one.name in [other.name for other in meters[:at]]:
            faults.append((f"{here}.name", "a name that no other meter has"))
        if one.port in [other.port for other in meters[:at]]:
            faults.append((f"{here}.port", "a port that no other meter has"))
        if not config.streams_of(one):
            faults.append((here, "a stream of this meter, or no such table"))
        faults += [
            (here + key.removeprefix("meter"), expected) for key, expected in meter_faults(one)
        ]
    if config.tap is not None and len(meters) > 1:
        faults.append(("tap", "no such table with several meters: it shows one"))
    return faults


def _shown(meter: MeterTable, quantity: str) -> tuple[bool, str]:
    """Return whether the meter's protocol may show a quantity at all, and what it shows."""
    known = meter.quantities
    quantities = " or ".join(f"{one} ({UNITS[one]})" for one in known or ())
    source = "[[meter.fields]] name" if meter.protocol == "lines" else "tells"
    what = f"{quantities or 'nothing yet'}: {meter.protocol} {source} no {quantity}"
    return known is None or quantity in known, what


def _mode_faults(config: AgentConfig) -> list[tuple[str, str]]:
    """Return what stands against the mode; the curator's library is loaded for its own only."""
    if config.mode == "local":
        unused = [("curator", "no such table unless mode = 'curator'")]
        return [] if config.curator is None else unused
    if config.curator is None:
        return [("curator", "a [curator] table with its epsilon, as mode = 'curator'")]
    from agent.config.curated_streams import curator_faults  # noqa: PLC0415 (memory: the local mode has no use)

    return curator_faults(config)


def _tap_faults(config: AgentConfig) -> list[tuple[str, str]]:
    if config.tap is None:
        return []
    from agent.config.tap_faults import tap_faults  # noqa: PLC0415 (memory: who has a tap)

    return tap_faults(config.tap, config.broker)


def _collect(faults: list[tuple[str, str]], key: str, build: object) -> None:
    try:
        build()  # type: ignore[operator]
    except ParameterError as exc:
        faults.append((key, exc.expected))
