"""Secrets that the configuration names: each in a file that only its owner may read."""

from pathlib import Path

from aggregator.config.sections import BrokerTable, StoreTable
from aggregator.errors import ConfigError

MAX_PASSWORD_MODE = 0o077


def read_password(table: BrokerTable, file: str) -> str | None:
    """Return the broker password from its file, which only its owner may read."""
    return _read_secret(table.password_file, "broker.password_file", file)


def read_store_password(table: StoreTable, file: str) -> str | None:
    """Return the database's password from its file, which only its owner may read."""
    return _read_secret(table.password_file, "store.password_file", file)


def _read_secret(name: str | None, key: str, file: str) -> str | None:
    if name is None:
        return None
    path = Path(name)
    try:
        if path.stat().st_mode & MAX_PASSWORD_MODE:
            raise ConfigError(file, key, f"expected a file of mode 0600: chmod 600 {path}")
        return path.read_text().strip()
    except OSError as exc:
        raise ConfigError(file, key, f"expected a readable file ({exc.strerror}: {path})") from exc
