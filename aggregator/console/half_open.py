"""Connections that have not yet asked: a bounded number of them, and for a bounded time.

Without a bound 1,100 connections with half a header each took every file descriptor for as long as
their makers liked, and nobody was answered. Who has asked, or waits between two questions, is not
touched: uvicorn bounds these itself.
"""

from asyncio import Transport
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

ASK_S = 10.0  # from the first byte of a question, or the connection, to its last one
MOST_ASKING = 256  # one more: the one that has taken longest goes


class Asking:
    """The connections of one server whose question is not whole yet, oldest first."""

    def __init__(self, most: int = MOST_ASKING) -> None:
        self._most = most
        self._open: dict[BoundedProtocol, None] = {}

    def begin(self, one: "BoundedProtocol") -> None:
        """Count a connection, in the place of the oldest one where there are too many."""
        if one not in self._open and len(self._open) >= self._most:
            next(iter(self._open)).give_up()
        self._open[one] = None

    def end(self, one: "BoundedProtocol") -> None:
        """Count a connection no longer: it has asked, or is gone."""
        self._open.pop(one, None)


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's protocol, which ends what takes too long to ask; body included."""

    def __init__(self, *, asking: Asking, **named: Any) -> None:
        super().__init__(**named)
        self._asking = asking
        self._late = self.loop.call_later(ASK_S, self.give_up)
        self._late.cancel()

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override] # as uvicorn
        """Wait for a question."""
        super().connection_made(transport)
        self._wait()

    def on_message_begin(self) -> None:
        """Wait for the rest of a question."""
        super().on_message_begin()
        self._wait()

    def on_message_complete(self) -> None:
        """Have the whole question."""
        self._rest()
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a connection that is gone."""
        self._rest()
        super().connection_lost(exc)

    def give_up(self) -> None:
        """End a connection that did not ask in time, without an answer."""
        self._rest()
        self.transport.abort()

    def _wait(self) -> None:
        self._asking.begin(self)
        self._late.cancel()
        self._late = self.loop.call_later(ASK_S, self.give_up)

    def _rest(self) -> None:
        self._asking.end(self)
        self._late.cancel()
