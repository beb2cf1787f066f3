"""What single fields of the agent's configuration cannot show: contradictions between them."""

from agent.config.tables import LOOPBACK, AgentConfig
from agent.meters.config import meter_faults
from agent.meters.reading import UNITS
from edge_ldp.device.errors import ParameterError
from edge_ldp.messages import check_name
from edge_ldp.plan import STREAM_MECHANISMS, SURVEY_MECHANISMS
from edge_ldp.ratio import floor_ratio


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
    check("broker.ca_file", broker.use_tls or broker.ca_file is None, "nothing unless tls = true")
    check(
        "broker.tls",
        broker.use_tls or broker.allow_plaintext or broker.host in LOOPBACK,
        "true off this machine, or allow_plaintext = true if you accept that anyone may listen",
    )
    return faults


def _collect(faults: list[tuple[str, str]], key: str, build: object) -> None:
    try:
        build()  # type: ignore[operator]
    except ParameterError as exc:
        faults.append((key, exc.expected))
