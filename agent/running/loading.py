"""What an agent starts with, and whether it may: `run` and `check` go by the same function.

What only an attempt can show (a port that another program has, a line's settings, a broker) is what
`check --live` is for. Source: docs/faults.md, AGT-06, AGT-12, AGT-32.
"""

from pathlib import Path
from typing import NamedTuple

from agent.config import AgentConfig, Secrets, load_config, read_secrets
from agent.config.secrets import CREDENTIAL, keyring_of
from agent.errors import ConfigError
from agent.meters.port_names import is_device
from agent.state.state_file import refuse_place
from edge_ldp.protocol.signing import Keyring
from edge_ldp.service.broker import Broker, LinkLostError


class Loaded(NamedTuple):
    """A configuration with what its files held: `credentials` is systemd's directory, if any."""

    path: Path
    credentials: str | None
    config: AgentConfig
    secrets: Secrets
    keyring: Keyring | None


def startable(path: Path, credentials: str | None, *, is_service: bool = True) -> Loaded:
    """Return what a file says, if an agent may start with it; raises what it is refused with.

    is_service: False passes over credentials, which only the service has. Nothing is opened, made
    or locked, so an agent may run meanwhile.
    """
    loaded = load(path, credentials, is_service=is_service)
    refuse_place(Path(loaded.config.device.state))
    for table in loaded.config.all_meters:
        if is_device(table.port):
            from agent.ports.serial_port import refuse_port  # noqa: PLC0415 (memory: serial ones)

            refuse_port(table.port)
    return loaded


def load(path: Path, credentials: str | None, *, is_service: bool = True) -> Loaded:
    """Return a configuration with its files; raises ConfigError for whatever cannot be used."""
    config = load_config(path, credentials)
    secrets = read_secrets(config, str(path), credentials, is_service=is_service)
    if config.broker.use_tls:
        _try_certificates(config, str(path))
    return Loaded(path, credentials, config, secrets, keyring_of(config, str(path)))


def _try_certificates(config: AgentConfig, file: str) -> None:
    """Raise ConfigError for certificates and keys that no connection can be made with.

    A service's credentials that are not placed are passed over.
    """
    from edge_ldp.service.tls import make_context  # noqa: PLC0415 (memory: where TLS is used)

    table = config.broker
    files = {key: getattr(table, key) for key in ("ca_file", "cert_file", "key_file", "crl_file")}
    absent = {key for key, name in files.items() if (name or "").startswith(CREDENTIAL)}
    if absent & {"cert_file", "key_file"}:
        absent |= {"cert_file", "key_file"}
    files |= dict.fromkeys(absent)
    try:
        make_context(Broker(table.host, table.use_port, "-", tls=True, **files))
    except LinkLostError as exc:
        key, _, why = exc.reason.partition(" ")
        raise ConfigError(file, f"broker.{key}", f"a file that can be used ({why})") from exc
