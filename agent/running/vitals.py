"""How the agent is at this moment, for `edge-ldp agent status`: told on a socket beside the state.

A socket, because ages change every second and a file that says so would wear the disk; and because
no answer is an answer, too. It holds health and ages: nothing that depends on a value.
"""

import asyncio
import os
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from agent.state.place import beside_state
from edge_ldp.protocol.strict_json import MessageError, dumps, loads

ASK_S = 2.0
MAX_BYTES = 4096
_ENDING = ".vitals"
_PRIVATE = 0o177  # nobody but the agent's user asks

Vitals = Mapping[str, object]


async def keep_answering(state: Path, vitals: Callable[[], Vitals]) -> None:
    """Tell the vitals to whoever asks, until cancelled; where there can be no socket, nothing."""
    path = beside_state(state, _ENDING)
    try:
        listening = _bound(path)
    except OSError:
        return  # a full disk, a long path: the health file has the last word then

    async def tell(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            writer.write(dumps(vitals()))
            writer.close()

    try:
        async with await asyncio.start_unix_server(tell, sock=listening) as server:
            await server.serve_forever()
    finally:
        with suppress(OSError):
            path.unlink()


def ask_agent(state: Path) -> dict[str, object] | None:
    """Return what the running agent tells; {} where it runs and does not answer, None without."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.settimeout(ASK_S)
        try:
            asking.connect(str(beside_state(state, _ENDING)))
            answer = b""
            while len(answer) < MAX_BYTES and (data := asking.recv(MAX_BYTES)):
                answer += data
            return dict(loads(answer).raw())
        except (TimeoutError, MessageError):
            return {}
        except OSError:
            return None


def _bound(path: Path) -> socket.socket:
    path.unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(_PRIVATE)
    try:
        listening.bind(str(path))
    except OSError:
        listening.close()
        raise
    finally:
        os.umask(mask)
    return listening
