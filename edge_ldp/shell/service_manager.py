"""Word to the service manager: ready, what the state is, still alive (sd_notify(3)).

A datagram each, to the socket that systemd names in the environment; nothing is said where there is
none. The watchdog is fed only while no task is stuck, so a process that hangs alive is restarted.
"""

import asyncio
import logging
import os
import socket
from collections.abc import Mapping

from edge_ldp.health import Health

SOCKET = "NOTIFY_SOCKET"
PERIOD_S = 5.0
_log = logging.getLogger("edge-ldp")


class ServiceManager:
    """The one that started us, if it wants to hear; `environment` is the process's."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._address = environment.get(SOCKET, "")
        ours = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        interval_us = environment.get("WATCHDOG_USEC", "") if ours else ""
        self.period_s = min(PERIOD_S, int(interval_us) / 2e6) if interval_us.isdecimal() else None

    def tell(self, *lines: str) -> None:
        """Send lines like `READY=1`; what cannot be delivered is nobody's loss."""
        if not self._address:
            return
        name = self._address
        address = "\0" + name[1:] if name.startswith("@") else name  # the abstract namespace
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as out:
                out.setblocking(False)
                out.connect(address)
                out.send("\n".join(lines).encode())
        except OSError as exc:
            _log.debug("service manager: %s", exc.strerror)


async def keep_telling(manager: ServiceManager, health: Health) -> None:
    """Tell the manager of every change of state, and that we are alive while no task is stuck."""
    loop, said, held = asyncio.get_running_loop(), "", False
    while True:
        stuck = health.stuck(loop.time())
        if stuck and not held:
            _log.error("stuck: %s; the watchdog is not fed", ", ".join(stuck))
        held = bool(stuck)
        text = f"stuck: {', '.join(stuck)}" if stuck else health.text()
        if text != said:
            manager.tell(f"STATUS={text}")
            said = text
        if manager.period_s and not stuck:
            manager.tell("WATCHDOG=1")
        await asyncio.sleep(manager.period_s or PERIOD_S)
