"""What single fields of the agent's configuration cannot show: contradictions between them."""

from collections.abc import Callable, Iterable
from functools import partial

from agent.claims.lifetime import Lifetime
from agent.claims.slots import REGISTERS, STREAM_UNITS
from agent.config.sections import AgentConfig, PlansTable, StreamTable
from agent.meters.port_names import source_of
from agent.meters.reading import GAS, SIGNED
from agent.meters.section import MeterTable, meter_faults
from edge_ldp.device.errors import ParameterError
from edge_ldp.protocol.messages import check_name
from edge_ldp.protocol.plan import STREAM_MECHANISMS, SURVEY_MECHANISMS
from edge_ldp.protocol.signing import MAX_KEYS, parse_public
from edge_ldp.ratio import floor_ratio
from edge_ldp.service.broker import LOOPBACK, BrokerTable

MAX_METERS = 8
MAX_STREAMS = 16
Faults = list[tuple[str, str]]  # key, expected
Check = tuple[str, bool, str]  # key, whether it holds, expected


def faults_of(config: AgentConfig) -> Faults:
    """Return (key, expected) of what single fields cannot show, worst first."""
    return _basic_faults(config) or [
        *_stream_faults(config),
        *_budget_faults(config),
        *_meters_faults(config),
        *_mechanism_faults(config.policy.mechanisms),
        *_broker_faults(config.broker),
        *_key_faults(config.plans),
        *_tap_faults(config),
        *_mode_faults(config),
    ]


def _basic_faults(config: AgentConfig) -> Faults:
    """Return what is wrong with names, streams and meters as such: nothing else is asked then."""
    is_one = (config.meter is None) != (not config.meters)
    why = "missing" if config.meter is None else "there are both"
    return [
        *_name_faults("device.fleet", config.device.fleet),
        *_name_faults("device.id", config.device.id),
        *_unmet(
            ("streams", 1 <= len(config.streams) <= MAX_STREAMS, f"1 to {MAX_STREAMS} [[streams]]"),
            ("meter", is_one, f"a [meter] table, or [[meters]] for several: {why}"),
            ("meters", len(config.meters) <= MAX_METERS, f"at most {MAX_METERS} [[meters]]"),
        ),
    ]


def _stream_faults(config: AgentConfig) -> Faults:
    names = [stream.name for stream in config.streams]
    differ = len(set(names)) == len(names)
    faults = _unmet(("streams.name", differ, "a different name for each stream"))
    for at, stream in enumerate(config.streams):
        here = f"streams[{at}]."
        unit, is_sums = STREAM_UNITS[stream.quantity], stream.mode == "sums"
        seconds, alike = config.slot_seconds, stream.slot_seconds == config.slot_seconds
        faults += _name_faults(here + "name", stream.name)
        faults += _unmet(
            (here + "low", stream.low >= 0 or stream.quantity in SIGNED, _not_below(stream)),
            (here + "ceiling", stream.low < stream.ceiling, "more than low"),
            (here + "ceiling", stream.ceiling - stream.low < 1 << 40, "less than low + 2**40"),
            (here + "unit", stream.unit == unit, f"{unit!r} for {stream.quantity}"),
            _meter_check(here, config, stream),
            (
                here + "from_register",
                not stream.from_register or stream.quantity in REGISTERS,
                "nothing but for " + " and ".join(REGISTERS),
            ),
            (
                here + "slot_seconds",
                alike or (is_sums and stream.slot_seconds % seconds == 0),
                "the same for all streams of a device, or with mode = 'sums' so many times theirs",
            ),
            (here + "mode", is_sums or stream.quantity != GAS, "'sums' for gas"),
        )
    return faults


def _not_below(stream: StreamTable) -> str:
    net = " (power_net may)" if stream.unit == "W" else ""
    return f">= 0: {stream.quantity} is never below{net}"


def _meter_check(here: str, config: AgentConfig, stream: StreamTable) -> Check:
    """Return what must hold of a stream's meter: that it is there and shows the quantity."""
    if (meter := _reader(config, stream)) is not None:
        return (here + "quantity", *_shown(meter, stream.source))
    names = ", ".join(repr(one.name) for one in config.meters)
    expected = f"the name of one of [[meters]]: {names}" if names else "nothing with [meter]"
    return here + "meter", False, expected


def _budget_faults(config: AgentConfig) -> Faults:
    life = config.lifetime
    spent = life.epsilon if life else None
    return [
        *_refused("policy.epsilon", partial(floor_ratio, config.policy.epsilon)),
        *_refused("policy.window", lambda: config.window),
        *_unmet(
            ("policy.lifetime", life != Lifetime(), "reports, epsilon or both"),
            ("policy.lifetime.epsilon", spent is None or spent > 0, "more than 0"),
        ),
    ]


def _mechanism_faults(mechanisms: Iterable[str]) -> Faults:
    named, known = set(mechanisms), STREAM_MECHANISMS | SURVEY_MECHANISMS
    families = (STREAM_MECHANISMS, SURVEY_MECHANISMS)
    return _unmet(
        ("policy.mechanisms", named <= known, "some of " + ", ".join(sorted(known))),
        *(
            ("policy.mechanisms", bool(named & family), "also one of " + ", ".join(sorted(family)))
            for family in families
        ),
    )


def _broker_faults(broker: BrokerTable) -> Faults:
    has_user = broker.username is not None or broker.password_file is None
    has_both = (broker.cert_file is None) == (broker.key_file is None)
    is_fine = broker.use_tls or broker.allow_plaintext or broker.host in LOOPBACK
    files = {key: getattr(broker, key) is not None for key in ("ca_file", "cert_file", "crl_file")}
    return _unmet(
        ("broker.host", broker.host.count(":") != 1, "a name or address; the port is a key apart"),
        ("broker.username", has_user, "the user that the password is for"),
        *(
            (f"broker.{key}", broker.use_tls or not is_set, "nothing unless tls = true")
            for key, is_set in files.items()
        ),
        ("broker.key_file", has_both, "the private key of cert_file, and both or none"),
        (
            "broker.tls",
            is_fine,
            "true off this machine, or allow_plaintext = true if you accept that anyone may listen",
        ),
    )


def _key_faults(plans: PlansTable) -> Faults:
    is_another = plans.next_key is None or (bool(plans.keys) and plans.next_key not in plans.keys)
    faults = _unmet(
        ("plans.keys", len(set(plans.every)) <= MAX_KEYS, f"at most {MAX_KEYS} keys"),
        ("plans.next_key", is_another, "another key than those of `keys`, beside these"),
    )
    if plans.next_key is not None:
        faults += _refused("plans.next_key", partial(parse_public, plans.next_key))
    for at, key in enumerate(plans.keys):
        faults += _refused(f"plans.keys[{at}]", partial(parse_public, key))
    return faults


def _reader(config: AgentConfig, stream: StreamTable) -> MeterTable | None:
    """Return the meter that a stream is of; None when its `meter` names none."""
    meters = config.all_meters
    if len(meters) == 1 and stream.meter in ("", meters[0].name):
        return meters[0]
    return next((one for one in meters if one.name == stream.meter), None)


def _meters_faults(config: AgentConfig) -> Faults:
    """Return what is wrong in [meter], or in [[meters]] each and together."""
    if config.meter is not None:
        return meter_faults(config.meter) + _source_faults("meter", config.meter, config.broker)
    meters, faults = config.meters, list[tuple[str, str]]()
    for at, one in enumerate(meters):
        here = f"meters[{at}]"
        faults += _name_faults(f"{here}.name", one.name)
        if one.name in [other.name for other in meters[:at]]:
            faults.append((f"{here}.name", "a name that no other meter has"))
        if one.port in [other.port for other in meters[:at]]:
            faults.append((f"{here}.port", "a port that no other meter has"))
        if not config.streams_of(one):
            faults.append((here, "a stream of this meter, or no such table"))
        faults += [
            (here + key.removeprefix("meter"), expected) for key, expected in meter_faults(one)
        ]
        faults += _source_faults(here, one, config.broker)
    if config.tap is not None and len(meters) > 1:
        faults.append(("tap", "no such table with several meters: it shows one"))
    return faults


def _source_faults(here: str, meter: MeterTable, broker: BrokerTable) -> Faults:
    """Return what is wrong where a topic is read of the broker that reports go to."""
    source = source_of(meter.port)
    is_topic = source is not None and not source.is_asked
    if source is None or not is_topic or source.port != broker.use_port:
        return []
    if source.host != broker.host and not {source.host, broker.host} <= set(LOOPBACK):
        return []
    return [(f"{here}.port", "a broker of your own: never the one that reports go to")]


def _shown(meter: MeterTable, quantity: str) -> tuple[bool, str]:
    """Return whether the meter's protocol may show a quantity at all, and what it shows."""
    known = meter.quantities
    quantities = " or ".join(f"{one} ({STREAM_UNITS[one]})" for one in known or ())
    source = "[[meter.fields]] name" if meter.protocol == "lines" else "tells"
    what = f"{quantities or 'nothing yet'}: {meter.protocol} {source} no {quantity}"
    return known is None or quantity in known, what


def _mode_faults(config: AgentConfig) -> Faults:
    """Return what stands against the modes; what only some need is loaded for them only."""
    faults: Faults = []
    if any(stream.mode != "local" or stream.sums for stream in config.streams):
        from agent.config.summed_streams import sums_faults  # noqa: PLC0415 (memory: who has sums)

        faults += sums_faults(config)
    if config.mode == "local":
        unused = [("curator", "no such table unless mode = 'curator'")]
        return faults if config.curator is None else [*faults, *unused]
    if config.curator is None:
        return [*faults, ("curator", "a [curator] table with its epsilon, as mode = 'curator'")]
    from agent.config.curated_streams import curator_faults  # noqa: PLC0415 (memory: the local mode has no use)

    return [*faults, *curator_faults(config)]


def _tap_faults(config: AgentConfig) -> Faults:
    tap, share, page = config.tap, config.share, config.page
    if (tap, share, page) == (None, None, None):
        return []
    from agent.config.tap_faults import door_faults, share_faults, tap_faults  # noqa: PLC0415 (memory: who has them)

    faults = [] if tap is None else tap_faults(tap, config.broker)
    faults += [] if share is None else share_faults(share, config.meter)
    if page is not None:
        faults += door_faults("page", page)
        is_apart = share is None or share.port != page.port
        faults += _unmet(("page.port", is_apart, "another port than the share's"))
    return faults


def _unmet(*checks: Check) -> Faults:
    """Return (key, expected) of the checks (key, whether it holds, expected) that do not hold."""
    return [(key, expected) for key, holds, expected in checks if not holds]


def _name_faults(key: str, name: str) -> Faults:
    return _refused(key, partial(check_name, "name", name))


def _refused(key: str, build: Callable[[], object]) -> Faults:
    """Return what the library expects where it refuses to build something, else nothing."""
    try:
        build()
    except ParameterError as exc:
        return [(key, exc.expected)]
    return []
