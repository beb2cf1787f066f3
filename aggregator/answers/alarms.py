"""What of a fleet needs an operator, by its summary: for the overview, and as metrics.

Metrics are in Prometheus' text form: at most 40 series, whatever the fleet's size.
"""

from __future__ import annotations

from collections import deque
from shlex import quote
from typing import TYPE_CHECKING, Any

from aggregator.answers.fleet import REPORTS
from aggregator.answers.units import age_text
from aggregator.counting.retention import DAY_S, HOUR_S

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    Alarm = dict[str, str]
    Family = tuple[str, str, Mapping[str, float]]

SILENT = 0.1  # of the devices
REFUSED = 100  # messages within an hour
STEP_S = 300  # between what is remembered
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
ALARMS = (  # and each is a rule of config/prometheus-alerts.yml
    *("NothingCounted", "DevicesSilent", "PlansRefused", "DevicesMarked"),
    *("LookAlarm", "NoPlan", "ReportsExpired", "ReportsRefused"),
)


class Lately:
    """What was counted up at times of the last day, so that alarms end; summaries are noted."""

    def __init__(self) -> None:
        self._seen: deque[tuple[int, int, int]] = deque()  # when, expired, refused

    def __len__(self) -> int:
        return len(self._seen)

    def note(self, found: Mapping[str, Any]) -> tuple[int, int]:
        """Return how many reports expired within a day, and messages were refused within an hour.

        Of what was seen: since the first summary, where that is later.
        """
        now_s, seen = found["now_s"], self._seen
        expired = sum(stream["expired"] for stream in found["streams"])
        refused = sum(row["messages"] for row in found["refused"])
        while seen and seen[-1][0] > now_s:  # the clock was set back
            seen.pop()
        if not seen or seen[-1][0] <= now_s - STEP_S:
            seen.append((now_s, expired, refused))
        while len(seen) > 1 and seen[1][0] <= now_s - DAY_S:
            seen.popleft()
        before = next((one for one in reversed(seen) if one[0] <= now_s - HOUR_S), seen[0])
        return max(0, expired - seen[0][1]), max(0, refused - before[2])


def alarms(found: Mapping[str, Any], lately: tuple[int, int], file: str) -> Iterator[Alarm]:
    """Yield what needs an operator: name (of ALARMS), text, command; `lately`: as of Lately.

    `file`: the configuration's name, as a shell takes it. Where one device alone is marked,
    `found` may name it: marked_one.
    """
    devices, last_s = found["devices"], found["last_commit_s"]
    idle_s = 0 if last_s is None else found["now_s"] - last_s
    ours = "edge-ldp aggregator"
    if idle_s > found["quiet_s"]:
        text = f"nothing was counted for {age_text(idle_s)}: does the service run?"
        unit = "systemctl status edge-ldp-aggregator"  # a rehearsal has none
        command = f"{ours} run -c {file}" if found["is_fast"] else unit
        yield _alarm("NothingCounted", text, command)
    if devices["silent"] > SILENT * devices["enrolled"]:
        text = f"{devices['silent']:,} of {devices['enrolled']:,} devices were silent for a day"
        yield _alarm("DevicesSilent", text, f"{ours} devices list -c {file}")
    if devices["refusing"]:
        text = f"{devices['refusing']:,} devices refuse plans, or count what cannot be"
        yield _alarm("PlansRefused", text, f"{ours} status -c {file}")
    if devices["marked"]:
        text = f"{devices['marked']:,} devices send codes as no honest one does"
        one = found.get("marked_one")
        what = f"status -c {file}" if one is None else f"devices quarantine -c {file} {quote(one)}"
        yield _alarm("DevicesMarked", text, f"{ours} {what}")
    for stream in (one for one in found["streams"] if one["retired_s"] is None):
        name = stream["stream"]
        rings = () if stream["look"] is None else stream["look"]["alarms"]
        for text in [said for one in rings for said in one["warnings"]][:1]:
            command = f"{ours} plan show -c {file} --stream {name}"
            yield _alarm("LookAlarm", f"{name}: {text}", command)
        if stream["plan"] is None:
            text = f"{name} has no plan, so no device reports it"
            yield _alarm("NoPlan", text, f"{ours} run -c {file}")
    expired, refused = lately
    if expired:
        text = f"within a day {expired:,} reports expired on their devices, unsent"
        yield _alarm("ReportsExpired", text, f"{ours} completeness -c {file}")
    if refused > REFUSED:
        text = f"within an hour {refused:,} messages were refused"
        yield _alarm("ReportsRefused", text, f"{ours} status -c {file}")


def _alarm(name: str, text: str, command: str) -> Alarm:
    return {"name": name, "text": text, "command": command}


def metrics_text(
    found: Mapping[str, Any] | None, raised: Container[str], console: Mapping[str, float]
) -> str:
    """Return the metrics of a summary (None: the store cannot be read) and of the console.

    `raised`: the names of the alarms that are.
    """
    families: list[Family] = [
        ("store_up", "1 if the store can be read", {"": found is not None}),
        *(() if found is None else _fleet(found, raised)),
        ("console_answers_total", "questions", {"": console["answers"]}),
        ("console_answering_seconds_total", "they took", {"": console["seconds"]}),
        ("console_viewers", "who are told of commits", {"": console["viewers"]}),
    ]
    lines = []
    for name, told, series in families:
        kind = "counter" if name.endswith("_total") else "gauge"
        lines += [f"# HELP edge_ldp_{name} {told}", f"# TYPE edge_ldp_{name} {kind}"]
        lines += [f"edge_ldp_{name}{labels} {value:.15g}" for labels, value in series.items()]
    return "\n".join([*lines, ""])


def _fleet(found: Mapping[str, Any], raised: Container[str]) -> Iterator[Family]:
    """Yield a family each: its name, what it tells, its values by their label ("" without)."""
    streams, refused = found["streams"], found["refused"]
    live = [stream for stream in streams if stream["retired_s"] is None]
    plans = [stream["plan"] for stream in live if stream["plan"] is not None]
    told = "created = counted + rejected + expired + pending; the others came on top"
    reports = {name: sum(one[name] for one in streams) for name in REPORTS}
    lost = {name: sum(row[name] for row in refused) for name in ("messages", "reports")}
    yield "devices", "devices by what is so of them", _by("what", found["devices"])
    yield "reports_total", told, _by("what", reports)
    yield "refused_total", "what was not counted", _by("what", lost)
    yield "streams", "streams that count", {"": len(live)}
    rings = {name: name in raised for name in ALARMS}
    yield "alarm", "1 where the overview shows this alarm", _by("name", rings)
    if (age_s := found["service"]["last_commit_age_s"]) is not None:
        yield "last_commit_age_seconds", "by the fleet's clock", {"": age_s}
    if plans:
        left_s = min(plan["expires_s"] for plan in plans) - found["now_s"]
        yield "plan_expires_seconds", "until the first expires", {"": left_s}


def _by(label: str, values: Mapping[str, float]) -> dict[str, float]:
    return {f'{{{label}="{name}"}}': value for name, value in values.items()}
