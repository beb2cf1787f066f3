"""What single fields of the configuration cannot show: values that contradict each other."""

from collections.abc import Callable, Iterator
from functools import partial

from aggregator.config.streams import StreamTable
from aggregator.config.tables import AggregatorConfig, BrokerTable, StoreTable, is_loopback
from edge_ldp.device.errors import ParameterError
from edge_ldp.device.randomizer import reporter
from edge_ldp.messages import MAX_STREAMS, check_name


def faults(config: AggregatorConfig) -> Iterator[tuple[str, str]]:
    """Yield (key, expected) of what single fields cannot show."""
    yield from _unless("fleet", partial(check_name, "name", config.fleet))
    yield from _broker_faults(config.broker)
    yield from _store_faults(config.store)
    yield from _share_faults(config)
    yield from _retention_faults(config)
    if isinstance(config.intake.enrolment, tuple):
        for at, device in enumerate(config.intake.enrolment):
            yield from _unless(f"intake.enrolment[{at}]", partial(check_name, "name", device))
    if not 1 <= len(config.streams) <= MAX_STREAMS:
        yield "streams", f"1 to {MAX_STREAMS} [[streams]]"
    for what in ("id", "name"):
        values = [getattr(stream, what) for stream in config.streams]
        if len(set(values)) != len(values):
            yield f"streams.{what}", "a different one for each stream"
    for at, stream in enumerate(config.streams):
        for key, expected in _stream_faults(stream):
            yield f"streams[{at}].{key}", expected


def _broker_faults(broker: BrokerTable) -> Iterator[tuple[str, str]]:
    if not (broker.use_tls or broker.allow_plaintext or is_loopback(broker.host)):
        yield "broker.tls", "true off this machine, or allow_plaintext = true if anyone may listen"
    if (broker.cert_file is None) != (broker.key_file is None):
        yield "broker.key_file", "the private key of cert_file, and both or none"
    if broker.password_file is not None and broker.username is None:
        yield "broker.username", "a user name with the password"


def _share_faults(config: AggregatorConfig) -> Iterator[tuple[str, str]]:
    share = config.broker.share
    if share is None:
        return
    yield from _unless("broker.share", partial(check_name, "name", share))
    if config.store.url is None:
        yield "broker.share", "none with a SQLite file: several workers need [store] url"
    if config.broker.protocol == "3.1.1":
        yield "broker.protocol", 'MQTT 5 with broker.share: "5" or "auto"'


def _retention_faults(config: AggregatorConfig) -> Iterator[tuple[str, str]]:
    least, of = -(-config.intake.resend_window_s // 86_400), "intake.resend_window_s"
    for level in ("bucket", "hour", "day"):
        days = getattr(config.retention, f"{level}_days")
        if days is None:
            continue
        if days < least:
            yield f"retention.{level}_days", f"{least} or more, as {of}"
        least, of = days, f"retention.{level}_days"


def _store_faults(store: StoreTable) -> Iterator[tuple[str, str]]:
    if (store.path is None) == (store.url is None):
        yield "store", "path = a SQLite file, or url = a PostgreSQL database, and one of them"
    if store.url is None:
        if store.password_file is not None:
            yield "store.password_file", "none for a SQLite file"
        return
    scheme, _, rest = store.url.partition("://")
    if scheme not in ("postgresql", "postgres"):
        yield "store.url", "postgresql://user@host/database"
    user, at, _ = rest.partition("/")[0].partition("?")[0].rpartition("@")
    if at and ":" in user:
        yield "store.url", "no password in it; name a file of mode 0600 as password_file"


_KEYS = {"low": "low", "high": "ceiling"}  # of mechanisms' parameters, where others are meant


def _stream_faults(stream: StreamTable) -> Iterator[tuple[str, str]]:
    yield from _unless("name", partial(check_name, "name", stream.name))
    if not stream.unit.isprintable():
        yield "unit", "printable characters"
    if stream.low >= stream.ceiling:
        yield "ceiling", "more than low"
        return
    share, hysteresis = stream.survey_share, stream.hysteresis
    if share is not None and not (share.is_finite() and 0 < share <= 1 and stream.share[0]):
        yield "survey_share", "a number above 0, at least 1/65536, and at most 1"
    if not (hysteresis.is_finite() and 0 <= hysteresis < 1):
        yield "hysteresis", "a number from 0 to below 1"
    if stream.survey_size > stream.ceiling - stream.low + 1:
        yield "survey_size", "at most ceiling - low + 1"
        return
    yield from _unless("epsilon", partial(_check_codes, stream))


def _check_codes(stream: StreamTable) -> None:
    """Raise ParameterError for mechanisms that cannot be made, or have too many codes together."""
    sums, survey = stream.sums(stream.ceiling), stream.survey()
    reporter(sums.randomizer, survey.randomizer, stream.share)


def _unless(key: str, build: Callable[[], object]) -> Iterator[tuple[str, str]]:
    try:
        build()
    except ParameterError as exc:
        yield _KEYS.get(exc.name, key), exc.expected
