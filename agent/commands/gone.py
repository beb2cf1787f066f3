"""What is told of states that are damaged, lost or were set aside: never that nothing was spent.

Source: docs/faults.md, AGT-32.
"""

from pathlib import Path
from textwrap import wrap

from agent.errors import StateGoneError
from agent.home_time import home_time
from agent.state.state_file import earlier_states

_WIDTH = 90


def gone_facts(exc: StateGoneError) -> dict[str, object]:
    """Return, for machines, why nothing can be told of a state."""
    return {
        "v": 1,
        "state": exc.state,
        "path": exc.path,
        "reason": exc.reason,
        "remedy": exc.remedy,
    }


def earlier_facts(state: Path) -> dict[str, object]:
    """Return what is left of earlier states of this name, as a fact if there are any."""
    rows = [
        {"state": "lost" if is_lost else "damaged", "at_s": at_s, "path": str(path)}
        for path, is_lost, at_s in earlier_states(state)
    ]
    return {"earlier_states": rows} if rows else {}


def earlier_text(state: Path) -> str:
    """Return the same in words, or ""."""
    text = ""
    for path, is_lost, at_s in earlier_states(state):
        became = "was lost" if is_lost else f"was damaged, and is kept as {path}"
        told = f"An earlier state {became} (found {home_time(at_s)})"
        text += "\n".join(wrap(f"{told}: what it spent is in no figure here.", _WIDTH)) + "\n"
    return text
