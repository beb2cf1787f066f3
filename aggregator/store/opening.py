"""Opening the store that the configuration names: a SQLite file, or a PostgreSQL database."""

import os
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path

from aggregator.config import AggregatorConfig, ConfigError, extra, read_store_password
from aggregator.store.contract import Reader, Session, Store
from aggregator.store.sqlite.reader import SqliteReader
from aggregator.store.sqlite.session import SqliteSession
from aggregator.store.sqlite.store import SqliteStore
from aggregator.store.worker import ALONE, Worker
from edge_ldp.device.errors import ParameterError
from edge_ldp.protocol.messages import check_name

SECRETS = ("password", "sslpassword")
ENCRYPTED = ("require", "verify-ca", "verify-full")


def open_store(config: AggregatorConfig, file: str, worker: Worker = ALONE) -> Store:
    """Return the store of the only writer, or of one of several.

    Raises StoreError, and ConfigError naming `file`.
    """
    if config.store.path is not None:
        return SqliteStore.open(Path(config.store.path))
    url, password = database(config, file)
    from aggregator.store.postgres.store import PostgresStore  # noqa: PLC0415 (an extra)

    return PostgresStore.open(
        url,
        password,
        alone=not worker.name,
        worker=worker.name,
        archived=config.archive is not None,
    )


def make_worker(config: AggregatorConfig, file: str, name: str | None) -> Worker:
    """Return the worker of a name, as `broker.share` asks for one; raises ConfigError."""
    if config.broker.share is None:
        if name is not None:
            raise ConfigError(file, "broker.share", "expected a name, since --worker is given")
        return ALONE
    if not name:
        expected = "expected a name that no other worker has, since broker.share is set"
        raise ConfigError(file, "--worker", expected)
    try:
        check_name("name", name)
    except ParameterError as exc:
        raise ConfigError(file, "--worker", f"expected {exc.expected}") from exc
    url, password = database(config, file)
    from aggregator.store.postgres.locks import Leadership, PostgresTurns  # noqa: PLC0415

    return Worker(name, Leadership(url, password), PostgresTurns())


def open_reader(config: AggregatorConfig, file: str) -> Reader:
    """Return a reader of the store; raises StoreError, and ConfigError naming `file`."""
    if config.store.path is not None:
        return SqliteReader.open(Path(config.store.path))
    url, password = database(config, file)
    from aggregator.store.postgres.reader import PostgresReader  # noqa: PLC0415 (an extra)

    return PostgresReader.open(url, password)


def open_session(config: AggregatorConfig, file: str) -> Session:
    """Return an operator's connection beside the service's; raises StoreError and ConfigError."""
    if config.store.path is not None:
        return SqliteSession.open(Path(config.store.path))
    url, password = database(config, file)
    from aggregator.store.postgres.session import PostgresSession  # noqa: PLC0415 (an extra)

    return PostgresSession.open(url, password)


def database(config: AggregatorConfig, file: str) -> tuple[str, str | None]:
    """Return URL and password; what libpq finds in the URL is decided by libpq's own parser."""
    url = config.store.url
    assert url is not None  # noqa: S101 (the configuration was checked)
    with extra("the PostgreSQL driver", "edge-ldp-aggregator[postgres]", file, "store.url"):
        from psycopg import ProgrammingError  # noqa: PLC0415
        from psycopg.conninfo import conninfo_to_dict  # noqa: PLC0415
    try:
        given = conninfo_to_dict(url)
    except ProgrammingError as exc:
        expected = f"expected postgresql://user@host/database ({' '.join(str(exc).split())})"
        raise ConfigError(file, "store.url", expected) from exc
    if any(given.get(key) for key in SECRETS):
        raise ConfigError(file, "store.url", "expected no password in it, but in password_file")
    password = read_store_password(config.store, file)
    if not _is_encrypted(given) and (host := _host_elsewhere(given)):
        expected = (
            f"expected sslmode=require, or better sslmode=verify-full, in it: {host} is not this "
            "machine, and counts and names of devices would cross the network in the clear"
        )
        raise ConfigError(file, "store.url", expected)
    return url, password


def _is_encrypted(given: Mapping[str, object]) -> bool:
    """Say whether libpq refuses a connection without TLS: its own default takes one."""
    return (given.get("sslmode") or os.environ.get("PGSSLMODE")) in ENCRYPTED


def _host_elsewhere(given: Mapping[str, object]) -> str | None:
    """Return a host that is not this machine, of those that libpq would try, if there is one."""
    if given.get("service") or "PGSERVICE" in os.environ:
        return "what a service file names"
    named = given.get("hostaddr") or os.environ.get("PGHOSTADDR")
    named = named or given.get("host") or os.environ.get("PGHOST") or ""
    return next((host for host in str(named).split(",") if not _is_here(host)), None)


def _is_here(host: str) -> bool:
    if not host or host == "localhost" or host[0] in "/@":  # the last two: a socket
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
