"""What single fields of the configuration cannot show: values that contradict each other."""

from collections.abc import Callable, Iterator
from functools import partial

from aggregator.config.sections import (
    AggregatorConfig,
    BrokerTable,
    ConsoleTable,
    PlansTable,
    StoreTable,
    is_loopback,
    is_safe_url,
)
from aggregator.config.streams import StreamTable
from edge_ldp.device.errors import ParameterError
from edge_ldp.device.randomizer import reporter
from edge_ldp.protocol.messages import MAX_STREAMS, check_name
from edge_ldp.protocol.signing import parse_public
from edge_ldp.service.zones import zone_expected, zone_of


def faults(config: AggregatorConfig) -> Iterator[tuple[str, str]]:
    """Yield (key, expected) of what single fields cannot show."""
    yield from _unless("fleet", partial(check_name, "name", config.fleet))
    yield from _broker_faults(config.broker)
    yield from _plans_faults(config.plans)
    yield from _store_faults(config.store)
    yield from _share_faults(config)
    yield from _retention_faults(config)
    yield from _console_faults(config.console, config.store)
    if isinstance(config.intake.enrolment, tuple):
        for at, device in enumerate(config.intake.enrolment):
            yield from _unless(f"intake.enrolment[{at}]", partial(check_name, "name", device))
    if config.devices is not None and not (config.devices.tls or is_loopback(config.devices.host)):
        yield (
            "devices.tls",
            "true, unless host is this machine: readers of the wire learn who reports",
        )
    if config.devices is not None and config.devices.ca_file and not config.devices.tls:
        yield "devices.ca_file", "none without tls"
    yield from _zone_faults(config.query.zone)
    yield from _streams_faults(config)


def _streams_faults(config: AggregatorConfig) -> Iterator[tuple[str, str]]:
    if not 1 <= len(config.streams) <= MAX_STREAMS:
        yield "streams", f"1 to {MAX_STREAMS} [[streams]]"
    for what in ("id", "name"):
        values = [getattr(stream, what) for stream in config.streams]
        if len(set(values)) != len(values):
            yield f"streams.{what}", "a different one for each stream"
    shortest = min((stream.slot_seconds for stream in config.streams), default=1)
    for at, stream in enumerate(config.streams):
        for key, expected in _stream_faults(stream):
            yield f"streams[{at}].{key}", expected
        if stream.home_sums and stream.slot_seconds % shortest:
            yield f"streams[{at}].home_sums", f"slots of so many times the shortest, {shortest} s"


def _plans_faults(plans: PlansTable) -> Iterator[tuple[str, str]]:
    if plans.next_key is not None:
        yield from _unless("plans.next_key", partial(parse_public, plans.next_key))
        if plans.signing_key_file is None:
            yield "plans.next_key", "a signing_key_file, which it is to follow"


def _zone_faults(zone: str | None) -> Iterator[tuple[str, str]]:
    if zone is None:
        return
    try:
        zone_of(zone)
    except ValueError:
        yield "query.zone", zone_expected(zone)


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


def _console_faults(console: ConsoleTable, store: StoreTable) -> Iterator[tuple[str, str]]:
    sign_on = console.sign_on
    if sign_on and (sign_on.proxy == "unix") != console.listen.startswith("/"):
        yield (
            "console.sign_on.proxy",
            '"unix" where `listen` is the path of a socket, else an address',
        )
    yield from _oidc_faults(console)
    if not console.is_here:
        if console.tokens_file is None and sign_on is None and console.oidc is None:
            yield "console.tokens_file", "a file of `edge-ldp console tokens make` off this machine"
        if console.cert_file is None and not console.allow_plaintext:
            yield "console.cert_file", "a certificate off this machine, or allow_plaintext = true"
    if (console.cert_file is None) != (console.key_file is None):
        yield "console.key_file", "the private key of cert_file, and both or none"
    if console.url is None:
        if console.password_file is not None:
            yield "console.url", "the database that password_file is for"
        return
    if store.url is None:
        yield "console.url", "none with a SQLite file, which is opened for reading only"
    yield from _url_faults("console.url", console.url)


def _oidc_faults(console: ConsoleTable) -> Iterator[tuple[str, str]]:
    for key in ("issuer", "address"):
        if console.oidc and not is_safe_url(getattr(console.oidc, key)):
            yield f"console.oidc.{key}", "https://, or http:// on this machine"


def _store_faults(store: StoreTable) -> Iterator[tuple[str, str]]:
    if (store.path is None) == (store.url is None):
        yield "store", "path = a SQLite file, or url = a PostgreSQL database, and one of them"
    if store.url is None:
        if store.password_file is not None:
            yield "store.password_file", "none for a SQLite file"
        return
    yield from _url_faults("store.url", store.url)


def _url_faults(key: str, url: str) -> Iterator[tuple[str, str]]:
    scheme, _, rest = url.partition("://")
    if scheme not in ("postgresql", "postgres"):
        yield key, "postgresql://user@host/database"
    user, at, _ = rest.partition("/")[0].partition("?")[0].rpartition("@")
    if at and ":" in user:
        yield key, "no password in it; name a file of mode 0600 as password_file"


_KEYS = {  # of the parameters of mechanisms and layouts, where others are meant
    "low": "low",
    "high": "ceiling",
    "slot_seconds": "slot_seconds",
    "days": "home_sums.days",
    "cells": "home_sums.cells",
    "offset_s": "home_sums.offset_s",
    "block_hours": "home_sums.block_hours",
    "block": "home_sums.block_hours",
}


def _stream_faults(stream: StreamTable) -> Iterator[tuple[str, str]]:
    yield from _unless("name", partial(check_name, "name", stream.name))
    if not stream.unit.isprintable():
        yield "unit", "printable characters"
    if stream.low >= stream.ceiling:
        yield "ceiling", "more than low"
        return
    if stream.home_sums is not None:
        yield from _unless("home_sums", partial(stream.home_sums.check, stream.slot_seconds))
    share, hysteresis = stream.survey_share, stream.hysteresis
    is_share = share is None or (share.is_finite() and 0 < share <= 1 and stream.share[0] > 0)
    if not is_share:
        yield "survey_share", "a number above 0, at least 1/65536, and at most 1"
    if not (hysteresis.is_finite() and 0 <= hysteresis < 1):
        yield "hysteresis", "a number from 0 to below 1"
    if stream.survey_size > stream.ceiling - stream.low + 1:
        yield "survey_size", "at most ceiling - low + 1: is the ceiling in kW by mistake?"
    elif is_share:
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
