"""The aggregator's TOML file, parsed once: past this line there are no strings to interpret.

Unknown keys, missing keys and wrong values end in a ConfigError that names all of them: file, key,
expected form and line. Numbers with a point are read as decimals, so ε is exactly what was written.
Relative paths are relative to the working directory. Secrets that it names stand in files of their
own, which only their owner may read.
"""

import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

from aggregator.config.faults import faults
from aggregator.config.sections import AggregatorConfig, BrokerTable, OidcTable, StoreTable
from aggregator.errors import ConfigError
from edge_ldp.extras import pip_install
from edge_ldp.service.toml_lines import placed
from edge_ldp.service.typed_table import TableError, read_table

MAX_PASSWORD_MODE = 0o077
GONE = {
    "corrected_sums": "the line to be left out: θ is always chosen for the sums that query corrects"
}


def load_config(path: Path) -> AggregatorConfig:
    """Return the checked configuration; raises ConfigError(file, key, expected)."""
    try:
        text = path.read_text()
    except FileNotFoundError as exc:
        remedy = "expected a file that is there: `edge-ldp aggregator setup DIR` writes one"
        raise ConfigError(str(path), "file", remedy) from exc
    except PermissionError as exc:
        remedy = (
            "expected a file that this user may read: be its owner, as sudo -u OWNER edge-ldp …"
        )
        raise ConfigError(str(path), "file", remedy) from exc
    except OSError as exc:
        raise ConfigError(str(path), "file", f"expected a readable file ({exc.strerror})") from exc
    except UnicodeDecodeError as exc:
        raise ConfigError(str(path), "file", "expected UTF-8 text") from exc
    return parse_config(text, str(path))


def parse_config(text: str, file: str) -> AggregatorConfig:
    """Return the configuration in `text`; raises ConfigError naming `file`, key and expected."""
    try:
        table = tomllib.loads(text, parse_float=Decimal)
    except (ValueError, ArithmeticError, RecursionError) as exc:  # endless numbers, deep nesting
        raise ConfigError(file, "syntax", f"expected TOML ({exc})") from exc
    try:
        return read_table(AggregatorConfig, table, faults)
    except TableError as exc:
        found = placed(text, exc.faults)
        first, *others = (_error(file, *fault) for fault in found)
        first.others = tuple(others)
        raise first from exc


def read_password(table: BrokerTable, file: str) -> str | None:
    """Return the broker password from its file, which only its owner may read."""
    return _read_secret(table.password_file, "broker.password_file", file)


def read_client_secret(table: OidcTable, file: str) -> str:
    """Return what our client proves itself by to its provider; raises ConfigError."""
    return _read_secret(table.secret_file, "console.oidc.secret_file", file) or ""


def read_store_password(table: StoreTable, file: str) -> str | None:
    """Return the database's password from its file, which only its owner may read."""
    return _read_secret(table.password_file, "store.password_file", file)


@contextmanager
def extra(what: str, package: str, file: str, key: str) -> Iterator[None]:
    """Say what to install where an import fails; raises ConfigError."""
    try:
        yield
    except ImportError as exc:
        raise ConfigError(file, key, f"expected {what}: {pip_install(package)}") from exc


def _error(file: str, key: str, expected: str, line: int | None) -> ConfigError:
    wanted = GONE.get(key.rpartition(".")[2], expected)
    return ConfigError(file, key, f"expected {wanted}", line)


def _read_secret(name: str | None, key: str, file: str) -> str | None:
    if name is None:
        return None
    path = secret_file(name, key, file)
    try:
        return path.read_text().strip()
    except UnicodeDecodeError as exc:
        raise ConfigError(file, key, f"expected UTF-8 text in {path}") from exc
    except OSError as exc:
        raise _unreadable(exc, key, file) from exc


def secret_file(name: str, key: str, file: str) -> Path:
    """Return where a secret stands that only its owner may read; raises ConfigError."""
    path = Path(name)
    try:
        if path.stat().st_mode & MAX_PASSWORD_MODE:
            raise ConfigError(file, key, f"expected a file of mode 0600: chmod 600 {path}")
    except OSError as exc:
        raise _unreadable(exc, key, file) from exc
    return path


def _unreadable(exc: OSError, key: str, file: str) -> ConfigError:
    return ConfigError(file, key, f"expected a readable file ({exc.strerror}: {exc.filename})")
