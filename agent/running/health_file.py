"""How the agent is, for `edge-ldp agent status`: a line beside the state file, while it runs."""

import os
from contextlib import suppress
from pathlib import Path

from agent.state.place import beside_state
from edge_ldp.service.files import make_closed

STOPPED = "stopped"
_ENDING = ".health"
_WIDTH = 256
_ENDED = "ZX"  # only its parent has not looked yet
_BEGUN = 18  # places after the state in /proc/PID/stat: proc(5), starttime


def note_health(state: Path, text: str) -> None:
    """Write the line over the last one: that needs no room, which a full disk has not.

    Where it cannot be written there is none, for the last one may say that all is well.
    """
    try:
        words = f"{os.getpid()} {_begun(os.getpid())} {text}"
        line = words.encode()[: _WIDTH - 1].ljust(_WIDTH - 1) + b"\n"
        make_closed(beside_state(state, _ENDING))
        handle = os.open(beside_state(state, _ENDING), os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.pwrite(handle, line, 0)
        finally:
            os.close(handle)
    except OSError:
        forget_health(state)


def forget_health(state: Path) -> None:
    """Remove the line: the agent stops."""
    with suppress(OSError):
        beside_state(state, _ENDING).unlink(missing_ok=True)


def read_health(state: Path) -> str:
    """Return what the running agent says, or `stopped` where none runs."""
    try:
        holder, begun, text = beside_state(state, _ENDING).read_text().split(" ", 2)
        runs = begun == _begun(int(holder))
    except (OSError, ValueError):
        return STOPPED
    return text.strip() if runs else STOPPED


def _begun(process: int) -> str:
    """Return when a process began, in ticks since the boot: its number may be another's later."""
    stat = Path(f"/proc/{process}/stat").read_text(errors="replace")
    state, *rest = stat.rpartition(")")[2].split()  # the name in brackets may be anything
    if state in _ENDED:
        raise ProcessLookupError
    return rest[_BEGUN]
