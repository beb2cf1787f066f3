"""Secrets that the configuration names by file: never in the configuration itself."""

from pathlib import Path

from agent.config.tables import BrokerTable
from agent.errors import ConfigError

MAX_PASSWORD_MODE = 0o077


def read_password(table: BrokerTable, file: str) -> str | None:
    """Return the broker password from its file, which only its owner may read."""
    if table.password_file is None:
        return None
    path = Path(table.password_file)

    def fault(expected: str) -> ConfigError:
        return ConfigError(file, "broker.password_file", expected)

    try:
        if path.stat().st_mode & MAX_PASSWORD_MODE:
            raise fault(f"a file of mode 0600: chmod 600 {path}")
        password = path.read_text().strip()
    except OSError as exc:
        raise fault(f"a readable file ({exc.strerror}: {path})") from exc
    except UnicodeDecodeError as exc:
        raise fault("UTF-8 text") from exc
    if not password:
        raise fault("a password in the file")
    return password
