"""Secrets that the configuration names by file: never in the configuration itself.

A file is named by its path, or as `credential:NAME`: then it lies in the directory that systemd
gives the service alone (LoadCredential=, LoadCredentialEncrypted=), and its mode says nothing.
"""

from dataclasses import field, replace
from pathlib import Path
from typing import Any, TypeVar

from agent.config.sections import AgentConfig, TapTable
from agent.errors import ConfigError
from agent.meters.section import AccessTable, MeterTable
from edge_ldp.extras import pip_install
from edge_ldp.lean_class import lean_class
from edge_ldp.protocol.signing import Keyring, parse_public
from edge_ldp.service.broker import BrokerTable

MAX_PASSWORD_MODE = 0o077
CREDENTIAL = "credential:"
Table = TypeVar("Table", BrokerTable, TapTable, AccessTable)
PUBLIC = ("ca_file", "cert_file", "crl_file")
SECRET = ("key_file", "password_file", "token_file")
_NOT_PLACED = "a systemd service with LoadCredential= of that name, or the path of a file"


@lean_class(frozen=True, slots=True)
class Secrets:
    """The passwords of the broker that reports go to, and of the household's own."""

    broker: str | None = field(default=None, repr=False)
    tap: str | None = field(default=None, repr=False)


def place_credentials(config: AgentConfig, directory: str | None) -> AgentConfig:
    """Return the configuration with the path of every credential that systemd placed."""
    if directory is None:
        return config

    def meter(table: MeterTable) -> MeterTable:
        access = table.access
        return table if access is None else replace(table, access=_placed(access, directory))

    return replace(
        config,
        broker=_placed(config.broker, directory),
        tap=None if config.tap is None else _placed(config.tap, directory),
        meter=None if config.meter is None else meter(config.meter),
        meters=tuple(map(meter, config.meters)),
    )


def _tables(config: AgentConfig) -> list[tuple[BrokerTable | TapTable | AccessTable, str]]:
    """Return every table that names files, and what it is called."""
    tables = [(config.broker, "broker"), (config.tap, "tap")]
    names = ("meter",) if config.meter else [f"meters[{at}]" for at in range(len(config.meters))]
    meters = zip(config.all_meters, names, strict=True)
    return [
        (table, name)
        for table, name in (*tables, *((one.access, f"{name}.access") for one, name in meters))
        if table is not None
    ]


def check_files(config: AgentConfig, file: str, directory: str | None = None) -> None:
    """Raise ConfigError for a named file that cannot be read, or a secret that others can.

    Credentials that are not placed are passed over: only the service has them.
    """
    for table, where in _tables(config):
        for key in (*PUBLIC, *SECRET):
            named = getattr(table, key, None)
            if named is not None and not named.startswith(CREDENTIAL):
                _content(file, f"{where}.{key}", Path(named), directory, secret=key in SECRET)


def read_secrets(
    config: AgentConfig, file: str, directory: str | None = None, *, is_service: bool = True
) -> Secrets:
    """Return the passwords; a service's must all be there, others pass over credentials.

    Raises ConfigError, also for a service's credential that systemd did not place.
    """
    for table, where in _tables(config):
        for key in (*PUBLIC, *SECRET):
            if is_service and (getattr(table, key, None) or "").startswith(CREDENTIAL):
                raise ConfigError(file, f"{where}.{key}", _NOT_PLACED)
    return Secrets(
        broker=read_password(config.broker, file, directory=directory),
        tap=None
        if config.tap is None
        else read_password(config.tap, file, where="tap", directory=directory),
    )


def read_password(
    table: BrokerTable | TapTable, file: str, *, where: str = "broker", directory: str | None = None
) -> str | None:
    """Return a broker's password from its file, which only its owner may read."""
    if table.password_file is None or table.password_file.startswith(CREDENTIAL):
        return None
    key = f"{where}.password_file"
    content = _content(file, key, Path(table.password_file), directory, secret=True)
    try:
        password = content.decode().strip()
    except UnicodeDecodeError as exc:
        raise ConfigError(file, key, "UTF-8 text") from exc
    if not password:
        raise ConfigError(file, key, "a password in the file")
    return password


def _content(file: str, key: str, path: Path, directory: str | None, *, secret: bool) -> bytes:
    """Return what is in a file that a key names; raises ConfigError, also for an open secret.

    What systemd placed in its directory it closed: there the mode says nothing.
    """
    is_open = secret and (directory is None or path.parent != Path(directory))
    try:
        if is_open and path.stat().st_mode & MAX_PASSWORD_MODE:
            raise ConfigError(file, key, f"a file of mode 0600: chmod 600 {path}")
        return path.read_bytes()
    except OSError as exc:
        raise ConfigError(file, key, f"a readable file ({exc.strerror}: {path})") from exc


def _placed(table: Table, directory: str) -> Table:
    """Return a table whose credentials are paths."""
    named = {key: getattr(table, key, None) or "" for key in (*PUBLIC, *SECRET)}
    changed: dict[str, Any] = {
        key: str(Path(directory) / name.removeprefix(CREDENTIAL))
        for key, name in named.items()
        if name.startswith(CREDENTIAL)
    }
    return replace(table, **changed)


def keyring_of(config: AgentConfig, file: str) -> Keyring | None:
    """Return the ring, or None when no key is named: then plans are taken unsigned.

    Raises ConfigError when keys are named and nothing here can check a signature.
    """
    if not config.plans.keys:
        return None
    try:
        from edge_ldp.service.verify import keyring  # noqa: PLC0415 (memory: 7 MiB where needed)
    except ImportError as exc:
        expected = f"the extra `sign` beside it: {pip_install('edge-ldp[sign]')}"
        raise ConfigError(file, "plans.keys", expected) from exc
    following = config.plans.next_key and parse_public(config.plans.next_key)
    return keyring((parse_public(key) for key in config.plans.keys), following or None)
