"""What a meter sends, handed on byte by byte to the household's own readers, and to nobody else.

They read alone: what they send is dropped. A reader that does not keep up is let go, so nothing is
kept for anybody but what its connection has not yet taken. Source: docs/security.md, The local tap.
"""

import asyncio

from agent.config.sections import ShareTable
from agent.running.door import Door

MOST_READERS = 8
MOST_BEHIND = 1 << 16
"""So many bytes a connection may not have taken yet: half a minute of the most talkative meters."""


class Share(Door):
    """Listens for readers until cancelled; `offer` hands them what the meter sent."""

    def __init__(self, table: ShareTable) -> None:
        super().__init__("share", table)
        self._readers: set[_Reader] = set()

    def offer(self, data: bytes) -> None:
        """Hand bytes of the meter's line to every reader."""
        for reader in [*self._readers]:
            reader.send(data)

    async def run(self) -> None:
        """Listen; where that cannot be, say why and try again."""
        words = "raw readings go to who connects to {}, as [share] asks"
        try:
            await self.stand_open(lambda: _Reader(self), words)
        finally:
            for reader in [*self._readers]:
                reader.leave()

    def take(self, reader: "_Reader", address: str) -> bool:
        """Say whether a reader is let in."""
        if not self.admits(address):
            return False
        if len(self._readers) >= MOST_READERS:
            self.say(f"{MOST_READERS} readers are connected: no more are let in")
            return False
        self._readers.add(reader)
        return True

    def lose(self, reader: "_Reader") -> None:
        """Forget a reader that left."""
        self._readers.discard(reader)


class _Reader(asyncio.Protocol):
    """One connection of a reader."""

    def __init__(self, share: Share) -> None:
        self._share = share
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 (TCP)
        if self._share.take(self, transport.get_extra_info("peername")[0]):
            self._transport = transport
        else:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        """Drop it: nothing goes to the meter."""

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 (asyncio's)
        self._transport = None
        self._share.lose(self)

    def send(self, data: bytes) -> None:
        """Hand on bytes, or let a reader go that does not take them."""
        if self._transport is None:
            return
        if self._transport.get_write_buffer_size() > MOST_BEHIND:
            self._transport.abort()
            return
        self._transport.write(data)

    def leave(self) -> None:
        """End the connection."""
        if self._transport is not None:
            self._transport.abort()
