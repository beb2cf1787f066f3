"""Word to the service manager: ready, what the state is, still alive (sd_notify(3)).

A datagram each, to the socket that systemd names in the environment; nothing is said where there is
none. The watchdog is fed only while there are signs of work, so a process that hangs alive is
restarted. Source: docs/design.md, The device; docs/faults.md, SVC-02, S6.
"""

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Mapping

from edge_ldp.service.health import age_told

SOCKET = "NOTIFY_SOCKET"
PERIOD_S = 5.0
LIMIT_S = 30.0
_log = logging.getLogger("edge-ldp")


class ServiceManager:
    """The one that started us, if it wants to hear; `environment` is the process's."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._address = environment.get(SOCKET, "")
        is_ours = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        interval_us = environment.get("WATCHDOG_USEC", "") if is_ours else ""
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


async def keep_telling(
    manager: ServiceManager,
    state: Callable[[], str],
    last_sign_s: Callable[[], float],
    note: Callable[[str], None] = lambda _: None,
    ages: Callable[[], Mapping[str, float | None]] = dict,
) -> None:
    """Tell the manager every change of state, and that we are alive while there are signs of it.

    `last_sign_s`: when the service last went round its own work, in the loop's time; older than
    LIMIT_S, and the watchdog is not fed any more. `note` takes every change of state too; `ages`
    (seconds since the last of each, `age_told`) stand behind the state for the manager alone.
    """
    loop, noted, last, was_stuck = asyncio.get_running_loop(), "", "", False
    while True:
        is_stuck = loop.time() - last_sign_s() > LIMIT_S
        if is_stuck and not was_stuck:
            _log.error("no sign of life for %.0f s; the watchdog is not fed", LIMIT_S)
        was_stuck = is_stuck
        text = "stuck" if is_stuck else state()
        if text != noted:
            note(text)
            noted = text
        aged = (age_told(name, age) for name, age in ages().items() if age is not None)
        status = "; ".join(part for part in (text, ", ".join(aged)) if part)
        if status != last:
            manager.tell(f"STATUS={status}")
            last = status
        if manager.period_s and not is_stuck:
            manager.tell("WATCHDOG=1")
        await asyncio.sleep(manager.period_s or PERIOD_S)
