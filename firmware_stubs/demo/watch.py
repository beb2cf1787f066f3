"""What is known while the demo runs, and how it is shown: a live view, or plain lines."""

import json
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Self, TypeAlias

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from firmware_stubs.demo.children import Usage
from firmware_stubs.demo.scenario import CEILING_W, MONDAY

_LINE_DAYS = 7  # a plain line for each simulated week


@dataclass(slots=True)
class FleetLog:
    """What the simulated homes said so far, read from their growing log of JSON lines.

    `homes`: reports and sums that each home made, known at the end.
    """

    path: Path
    created: int = 0
    confirmed: int = 0
    thetas: list[tuple[int, int]] = field(default_factory=list)
    homes: dict[str, int] = field(default_factory=dict)
    _read: int = 0

    def update(self) -> None:
        """Read the lines that are complete by now."""
        with self.path.open("rb") as file:
            file.seek(self._read)
            whole, _, _ = file.read().rpartition(b"\n")
        self._read += len(whole) + 1 if whole else 0
        for line in whole.splitlines():
            self._note(json.loads(line))

    def _note(self, event: dict[str, Any]) -> None:
        kind = event.pop("event")
        if kind == "plan":
            self.thetas.append((event["epoch"], event["theta"]))
        elif kind in ("day", "end"):
            self.created, self.confirmed = event["created"], event["confirmed"]
        if kind == "end":
            sums = event["sums"]
            self.homes = {home: made + sums for home, made in event["reports"].items()}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One moment of the run; reports are those of the simulated homes."""

    elapsed_s: float
    phase: str
    day: float
    days: int
    created: int
    confirmed: int
    thetas: tuple[tuple[int, int], ...]
    usages: tuple[Usage, ...]

    @property
    def date(self) -> str:
        """The simulated local date and time."""
        return f"{MONDAY + timedelta(days=self.day):%a %d %b, %H:00}"

    @property
    def theta(self) -> str:
        """The threshold in force, in words."""
        if not self.thetas:
            return "no plan yet"
        epoch, theta_w = self.thetas[-1]
        if epoch == 1:
            return f"epoch 1: every report is a survey over 0 to {CEILING_W / 1000:.1f} kW"
        return f"epoch {epoch}: θ = {theta_w / 1000:.1f} kW"


class Lines:
    """Plain lines: each phase, each new θ, each simulated week."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._last: Snapshot | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def show(self, snapshot: Snapshot) -> None:
        """Print a line if the snapshot says something new."""
        last, self._last = self._last, snapshot
        if last is None or last.phase != snapshot.phase:
            self._console.print(f"{snapshot.elapsed_s:4.0f} s  {snapshot.phase} …")
        if snapshot.thetas and (last is None or last.thetas != snapshot.thetas):
            self._console.print(f"        {snapshot.date}: {snapshot.theta}")
        if last and snapshot.day // _LINE_DAYS > last.day // _LINE_DAYS:
            self._console.print(f"        {snapshot.date}: {_counts(snapshot)}")


class LiveView:
    """A view that is drawn anew in place; gone when the run is over."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, transient=True, auto_refresh=False)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, snapshot: Snapshot) -> None:
        """Draw a snapshot."""
        self._live.update(picture_of(snapshot), refresh=True)


View: TypeAlias = Lines | LiveView
"""Shows snapshots; a context manager that leaves the terminal as it was."""


def picture_of(snapshot: Snapshot) -> RenderableType:
    """Return the live view of one moment."""
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", min_width=18)
    facts.add_column()
    facts.add_row(f"{snapshot.elapsed_s:.0f} s", Text(snapshot.phase, style="bold"))
    facts.add_row("simulated time", snapshot.date)
    facts.add_row("", ProgressBar(total=snapshot.days, completed=snapshot.day, width=48))
    facts.add_row("reports", _counts(snapshot))
    facts.add_row("plan in force", snapshot.theta)
    facts.add_row("θ so far, kW", " → ".join(f"{w / 1000:.1f}" for _, w in snapshot.thetas))
    processes = Table(box=None, padding=(0, 2), header_style="dim")
    for title in ("process", "state"):
        processes.add_column(title)
    for title in ("pid", "CPU s", "RSS MiB"):
        processes.add_column(title, justify="right")
    for usage in snapshot.usages:
        style = "green" if usage.state == "running" else "dim"
        processes.add_row(
            usage.name,
            Text(usage.state, style=style),
            str(usage.pid),
            f"{usage.cpu_s:.1f}",
            f"{usage.rss_mib:.0f}",
        )
    return Group(facts, Text(), processes)


def _counts(snapshot: Snapshot) -> str:
    made, held = f"{snapshot.created:,}", f"{snapshot.confirmed:,}"
    return f"{made} reports of simulated homes, {held} confirmed"
