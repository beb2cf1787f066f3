"""The processes of a test, by their numbers: one may be gone a moment after it was named."""

import os
import select
import signal
import socket
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any


def run_told(
    words: Sequence[str | Path], *, check: bool = False, timeout: float = 240, **more: Any
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; give its exit code and what it said."""
    return subprocess.run(
        words, check=check, timeout=timeout, capture_output=True, text=True, **more
    )


def answers(port: int) -> bool:
    """Say whether a broker of this machine does what it is told, by MQTT or TLS.

    It listens before it minds signals: a SIGHUP in between ends it, or is lost under nohup. Pings
    before a greeting it refuses as soon as it reads them.
    """
    with socket.socket() as sock:
        if sock.connect_ex(("127.0.0.1", port)):
            return False
        with suppress(ConnectionError):
            sock.sendall(b"\xc0\0" * 8)
            sock.recv(1)
    return True


def children(pid: int) -> list[int]:
    """Return the processes that a process started and that are there; none where it is gone."""
    with suppress(FileNotFoundError, ProcessLookupError):
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
        return [int(one) for one in text.split()]
    return []


def below(pid: int) -> list[int]:
    """Return all that it started, and what those started."""
    return [found for child in children(pid) for found in (child, *below(child))]


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    """Send a signal to one that may have ended meanwhile, of itself or with another."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def wait_for_end(pid: int) -> None:
    """Wait until a process has ended, however long it takes; the test's own limit ends a hang."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    with os.fdopen(handle, "rb", closefd=True) as ended:
        select.select([ended], [], [])
