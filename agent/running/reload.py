"""SIGHUP: read the file again, take what may change now, and say in one line what became of it."""

import logging
from collections.abc import Callable

from agent.config.changes import ConfigChange, changes_to
from agent.errors import AgentError
from agent.link.uplink import Uplink
from agent.running.loading import Loaded, load
from agent.state.device import Device
from edge_ldp.device.errors import EdgeLdpError

log = logging.getLogger("edge-ldp.agent")


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
