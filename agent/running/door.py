"""A port of the household's own: this machine comes in, and who is named, and nobody else.

What is done with who came in is the share's (`agent.tap.share`) or the page's (`agent.page`).
"""

import asyncio
import logging
from collections.abc import Callable
from ipaddress import ip_address

from agent.config.sections import PageTable, ShareTable
from agent.link.trouble import LogLimit
from edge_ldp.service.broker import LOOPBACK

OK = "ok"
AGAIN_S = 30.0
log = logging.getLogger("edge-ldp.agent")


class Door:
    """Stands open at the address of a table; `name`: the table's. `health` says whether it does."""

    def __init__(self, name: str, table: ShareTable | PageTable) -> None:
        self._name = name
        self._listen, self._port = table.listen, table.port
        self._allowed = {ip_address(one) for one in (*table.readers, *LOOPBACK[1:])}
        self._log_limit = LogLimit()
        self.health = f"degraded: the {name} cannot listen"

    async def stand_open(self, comer: Callable[[], asyncio.Protocol], words: str) -> None:
        """Listen for ever; where that cannot be, say why and try again. `words`: what is there."""
        where = f"{self._listen}:{self._port}"
        while True:
            try:
                server = await asyncio.get_running_loop().create_server(
                    comer, self._listen, self._port, backlog=8
                )
            except OSError as exc:
                self.say(f"{where}: {exc.strerror or exc}; trying again")
                await asyncio.sleep(AGAIN_S)
                continue
            self.health = OK
            self.say(words.format(where))
            try:
                await asyncio.Event().wait()
            finally:
                server.close()

    def admits(self, address: str) -> bool:
        """Say whether somebody at this address is let in."""
        if ip_address(address.partition("%")[0]) in self._allowed:
            return True
        self.say(f"somebody connected who is none of [{self._name}] readers: refused")
        return False

    def say(self, line: str) -> None:
        """Log what is new, and not again and again."""
        if told := self._log_limit.admit(line, asyncio.get_running_loop().time()):
            log.warning("%s: %s", self._name, told)
