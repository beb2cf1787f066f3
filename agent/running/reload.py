"""SIGHUP: read the file again, take what may change now, and say in one line what became of it."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agent.config import AgentConfig, Secrets, load_config, read_secrets
from agent.config.changes import ConfigChange, changes_to
from agent.config.keyring import keyring_of
from agent.config.secrets import CREDENTIAL
from agent.errors import AgentError, ConfigError
from agent.link.uplink import Uplink
from agent.state.device import Device
from edge_ldp.device.errors import EdgeLdpError
from edge_ldp.protocol.signing import Keyring
from edge_ldp.service.broker import Broker, LinkLostError

log = logging.getLogger("edge-ldp.agent")


@dataclass(frozen=True, slots=True)
class Loaded:
    """A configuration with what its files held: `credentials` is systemd's directory, if any."""

    path: Path
    credentials: str | None
    config: AgentConfig
    secrets: Secrets
    keyring: Keyring | None


def load(path: Path, credentials: str | None) -> Loaded:
    """Return a service's configuration; raises ConfigError for whatever cannot be used."""
    config = load_config(path, credentials)
    secrets = read_secrets(config, str(path), credentials)
    if config.broker.use_tls:
        try_certificates(config, str(path))
    return Loaded(path, credentials, config, secrets, keyring_of(config, str(path)))


def try_certificates(config: AgentConfig, file: str) -> None:
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


class Reloader:
    """Holds the running configuration; `reload` is what SIGHUP calls."""

    def __init__(
        self, loaded: Loaded, device: Device, uplink: Uplink, end_tap: Callable[[], object]
    ) -> None:
        self.config = loaded.config
        self._path = loaded.path
        self._credentials = loaded.credentials
        self._device = device
        self._uplink = uplink
        self._end_tap = end_tap

    def reload(self) -> None:
        """Validate, compare, apply or keep, and say so; a file that is wrong changes nothing."""
        try:
            found = load(self._path, self._credentials)
            change = changes_to(self.config, found.config)
            if not change.loosens:
                self._apply(change, found)
        except (AgentError, EdgeLdpError) as exc:
            reason = str(exc).replace("\n", "; ")
            log.warning("reload: the running configuration stays: %s", reason)
            return
        self.config = change.config
        log.warning("reload: %s", _words(change))

    def _apply(self, change: ConfigChange, found: Loaded) -> None:
        if any(key.startswith(("policy", "plans", "sending")) for key in change.applied):
            self._device.reconfigure(change.config, found.keyring)
        self._uplink.reconfigure(change.config, found.secrets.broker)
        table = change.config.broker
        if table.cert_file is not None or table.ca_file is not None:
            self._uplink.renew()  # the files may hold new certificates
        if change.config.tap is None:
            self._end_tap()


def _words(change: ConfigChange) -> str:
    if change.loosens:
        keys = ", ".join(change.loosens)
        return (
            f"the running configuration stays: {keys} would loosen what it promises; to have that, "
            "restart the agent with the changed file"
        )
    parts = []
    if change.applied:
        parts.append("applied " + ", ".join(change.applied))
    if change.restart:
        parts.append("needs a restart: " + ", ".join(change.restart))
    return "; ".join(parts) or "nothing changed"
