"""A proxy before PostgreSQL that cuts one connection at a chosen step of what the client says."""

import select
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

SOCKET = ".s.PGSQL.5432"
CHUNK = 1 << 20


class CuttingProxy:
    """Listens in `place`, forwards to the server's socket in `behind`.

    `cut_at(step)` counts the protocol's messages that the client sends from then on, also those
    that libpq writes together: the connection is cut before that step reaches the server, or, with
    `answered`, when the server's next answer after it is to be passed on. Only one connection is
    cut; `was_cut` says so.
    """

    def __init__(self, place: Path, behind: Path) -> None:
        self._behind = behind / SOCKET
        self._left: int | None = None
        self._answered = False
        self.was_cut = False
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(place / SOCKET))
        self._listening.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut_at(self, step: int, *, answered: bool) -> None:
        """Cut at a step from now on, the next one being 0."""
        self.was_cut, self._answered, self._left = False, answered, step

    def close(self) -> None:
        """Take no more connections."""
        self._left = None
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._forward, args=(client,), daemon=True).start()

    def _forward(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server, suppress(OSError):
            server.connect(str(self._behind))
            while True:
                for end in select.select([client, server], [], [])[0]:
                    said = end.recv(CHUNK)
                    if not said or not self._pass(client, server, end, said):
                        return

    def _pass(
        self, client: socket.socket, server: socket.socket, end: socket.socket, said: bytes
    ) -> bool:
        """Forward what one end said; False when the connection is to be cut."""
        if end is server:
            if self._left is not None and self._left < 0:  # the next answer after the step
                self._left, self.was_cut = None, True
                return False
            client.sendall(said)
            return True
        for message in [said] if self._left is None else _messages(said):
            if self._left == 0 and not self._answered:
                self._left, self.was_cut = None, True
                return False
            server.sendall(message)
            if self._left is not None:
                self._left -= 1
        return True


def _messages(said: bytes) -> Iterator[bytes]:
    """Yield the messages of a connection that is up: a type, a length that counts itself, more."""
    while said:
        (size,) = struct.unpack_from(">I", said, 1)
        yield said[: size + 1]
        said = said[size + 1 :]
