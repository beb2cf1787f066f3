"""How the agent is, for `edge-ldp agent status`: a line beside the state file, while it runs."""

import os
from contextlib import suppress
from pathlib import Path

STOPPED = "stopped"


def note_health(state: Path, text: str) -> None:
    """Write the line; it is replaced as a whole. What cannot be written is nobody's loss."""
    beside = _beside(state)
    with suppress(OSError):
        new = beside.with_name(beside.name + ".new")
        new.write_text(f"{os.getpid()} {text}\n")
        new.replace(beside)


def forget_health(state: Path) -> None:
    """Remove the line: the agent stops."""
    with suppress(OSError):
        _beside(state).unlink(missing_ok=True)


def read_health(state: Path) -> str:
    """Return what the running agent says, or `stopped` where none runs."""
    try:
        holder, _, text = _beside(state).read_text().partition(" ")
        runs = Path(f"/proc/{int(holder)}").exists()
    except (OSError, ValueError):
        return STOPPED
    return text.strip() if runs else STOPPED


def _beside(state: Path) -> Path:
    return state.with_name(state.name + ".health")
