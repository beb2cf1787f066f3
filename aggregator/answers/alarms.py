"""What of a fleet needs an operator, by its summary: for the overview, and as metrics."""

from __future__ import annotations

from collections import deque
from shlex import quote
from typing import TYPE_CHECKING

from aggregator.answers.units import age_text
from aggregator.counting.retention import DAY_S, HOUR_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aggregator.answers.fleet import FleetSummary, StreamState

    Alarm = dict[str, str]

SILENT = 0.1  # of the devices
REFUSED = 100  # messages within an hour
STEP_S = 300  # between what is remembered
ALARMS = (  # and each is a rule of config/prometheus-alerts.yml
    *("NothingCounted", "DevicesSilent", "PlansRefused", "DevicesMarked"),
    *("LookAlarm", "NoPlan", "PlanAhead", "ReportsExpired", "ReportsRefused"),
)


class Lately:
    """What was counted up at times of the last day, so that alarms end; summaries are noted."""

    def __init__(self) -> None:
        self._seen: deque[tuple[int, int, int]] = deque()  # when, expired, refused

    def __len__(self) -> int:
        return len(self._seen)

    def note(self, found: FleetSummary) -> tuple[int, int]:
        """Return how many reports expired within a day, and messages were refused within an hour.

        Of what was seen: since the first summary, where that is later.
        """
        now_s, seen = found.now_s, self._seen
        expired = sum(stream.expired for stream in found.streams)
        refused = sum(row.messages for row in found.refused)
        while seen and seen[-1][0] > now_s:  # the clock was set back
            seen.pop()
        if not seen or seen[-1][0] <= now_s - STEP_S:
            seen.append((now_s, expired, refused))
        while len(seen) > 1 and seen[1][0] <= now_s - DAY_S:
            seen.popleft()
        before = next((one for one in reversed(seen) if one[0] <= now_s - HOUR_S), seen[0])
        return max(0, expired - seen[0][1]), max(0, refused - before[2])


def alarms(
    found: FleetSummary, lately: tuple[int, int], file: str, marked_one: str | None = None
) -> Iterator[Alarm]:
    """Yield what needs an operator: name (of ALARMS), text, command; `lately`: as of Lately.

    `file`: the configuration's name, as a shell takes it. `marked_one`: the device that alone is
    marked.
    """
    devices, last_s = found.devices, found.last_commit_s
    idle_s = 0 if last_s is None else found.now_s - last_s
    program = "edge-ldp aggregator"
    if idle_s > found.quiet_s:
        text = f"nothing was counted for {age_text(idle_s)}: does the service run?"
        unit = "systemctl status edge-ldp-aggregator"  # a rehearsal has none
        command = f"{program} run -c {file}" if found.is_fast else unit
        yield _alarm("NothingCounted", text, command)
    if devices.silent > SILENT * devices.enrolled:
        text = f"{devices.silent:,} of {devices.enrolled:,} devices were silent for a day"
        yield _alarm("DevicesSilent", text, f"{program} devices list -c {file}")
    if devices.refusing:
        text = f"{devices.refusing:,} devices refuse plans, or report impossible counts"
        yield _alarm("PlansRefused", text, f"{program} status -c {file}")
    if devices.marked:
        text = f"{devices.marked:,} devices send codes as no honest one does"
        what = f"status -c {file}"
        if marked_one is not None:
            what = f"devices quarantine -c {file} {quote(marked_one)}"
        yield _alarm("DevicesMarked", text, f"{program} {what}")
    for stream in (one for one in found.streams if one.retired_s is None):
        yield from _stream_alarms(stream, file)
    expired, refused = lately
    if expired:
        text = f"within a day {expired:,} reports expired on their devices, unsent"
        yield _alarm("ReportsExpired", text, f"{program} completeness -c {file}")
    if refused > REFUSED:
        text = f"within an hour {refused:,} messages were refused"
        yield _alarm("ReportsRefused", text, f"{program} status -c {file}")


def _stream_alarms(stream: StreamState, file: str) -> Iterator[Alarm]:
    """Yield what of one stream's plan needs an operator."""
    name, plan, program = stream.stream, stream.plan, "edge-ldp aggregator"
    rings = () if stream.look is None else stream.look.alarms
    for text in [warning for one in rings for warning in one.warnings][:1]:
        command = f"{program} plan show -c {file} --stream {name}"
        yield _alarm("LookAlarm", f"{name}: {text}", command)
    if plan is None:
        text = f"{name} has no plan, so no device reports it"
        yield _alarm("NoPlan", text, f"{program} run -c {file}")
    elif plan.is_ahead:
        text = f"{name}: its plan is dated ahead, so devices refuse it: is the clock right?"
        yield _alarm("PlanAhead", text, f"{program} check --live -c {file}")


def _alarm(name: str, text: str, command: str) -> Alarm:
    return {"name": name, "text": text, "command": command}
