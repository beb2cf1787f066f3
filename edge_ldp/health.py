"""What a service's tasks are doing: at work, idle, or in a named wait; and whether one is stuck.

A task at work must say so at least every `limit_s`. A wait for something outside (a port, the
broker) has a name and makes the service `degraded`, never stuck: restarting would not mend it.
Pure: times are the caller's, monotonic. Source: DESIGN §9; FAULTS SVC-02, S6.
"""

from dataclasses import dataclass

LIMIT_S = 30.0
OK = "ok"


@dataclass(slots=True)
class _Task:
    last_s: float
    resting: bool = False
    reason: str | None = None


class Health:
    """The tasks of one process by name."""

    def __init__(self, limit_s: float = LIMIT_S) -> None:
        self._limit_s = limit_s
        self._tasks: dict[str, _Task] = {}

    def work(self, name: str, now_s: float) -> None:
        """Note that a task goes on: any wait of it is over, and the next sign is due in time."""
        self._tasks[name] = _Task(now_s)

    def idle(self, name: str, now_s: float) -> None:
        """Note that a task waits for nothing that is missing: a message, work, its next turn."""
        self._tasks[name] = _Task(now_s, resting=True)

    def wait(self, name: str, reason: str, now_s: float) -> None:
        """Note that a task waits for something that should be there; `reason` names it."""
        self._tasks[name] = _Task(now_s, resting=True, reason=reason)

    def end(self, name: str) -> None:
        """Forget a task that is over."""
        self._tasks.pop(name, None)

    def stuck(self, now_s: float) -> list[str]:
        """Return the names of the tasks at work that gave no sign in time, in order of name."""
        return sorted(
            name
            for name, task in self._tasks.items()
            if not task.resting and now_s - task.last_s > self._limit_s
        )

    def text(self) -> str:
        """Return "ok", or "degraded: " and what is waited for."""
        reasons = sorted({task.reason for task in self._tasks.values() if task.reason})
        return f"degraded: {', '.join(reasons)}" if reasons else OK
