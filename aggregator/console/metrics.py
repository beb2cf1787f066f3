"""The metrics of a fleet's summary and of the console, in Prometheus' text form, or OpenMetrics'.

At most 50 series, whatever the fleet's size.
"""

from collections.abc import Iterator, Mapping

from msgspec.structs import asdict

from aggregator.answers.fleet.alarms import ALARMS, SEVERITIES
from aggregator.answers.fleet.status import COLUMNS
from aggregator.answers.fleet.status_answer import FleetSummary

Family = tuple[str, str, Mapping[str, float]]

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text"
OPENMETRICS_TYPE = f"{OPENMETRICS}; version=1.0.0; charset=utf-8"


def metrics_text(
    found: FleetSummary | None,
    raised: Mapping[str, str],
    console: Mapping[str, float],
    *,
    is_open: bool = False,
) -> str:
    """Return the metrics of a summary (None: the store cannot be read) and of the console.

    `raised`: the severities of the alarms that are, by name; `is_open`: as OpenMetrics.
    """
    families: list[Family] = [
        ("store_up", "1 if the store can be read", {"": found is not None}),
        *(() if found is None else _fleet(found, raised)),
        ("console_answers_total", "questions", {"": console["answers"]}),
        ("console_answering_seconds_total", "they took", {"": console["seconds"]}),
        ("console_viewers", "who are told of commits", {"": console["viewers"]}),
    ]
    lines = []
    for name, words, series in families:
        kind = "counter" if name.endswith("_total") else "gauge"
        family = name.removesuffix("_total") if is_open else name
        lines += [f"# HELP edge_ldp_{family} {words}", f"# TYPE edge_ldp_{family} {kind}"]
        lines += [f"edge_ldp_{name}{labels} {value:.15g}" for labels, value in series.items()]
    return "\n".join([*lines, *(["# EOF"] if is_open else []), ""])


def _fleet(found: FleetSummary, raised: Mapping[str, str]) -> Iterator[Family]:
    """Yield a family each: its name, what it tells, its values by their label ("" without)."""
    live = [stream for stream in found.streams if stream.retired_s is None]
    expire = [stream.plan.expires_s for stream in live if stream.plan is not None]
    words = "created = counted + rejected + expired + pending; the others came on top"
    reports = {name: sum(getattr(one, name) for one in found.streams) for name in COLUMNS}
    refused = found.refused
    lost = {"messages": sum(row.messages for row in refused)}
    lost["reports"] = sum(row.reports for row in refused)
    yield "devices", "devices by what is so of them", _by("what", asdict(found.devices))
    yield "reports_total", words, _by("what", reports)
    yield "refused_total", "what was not counted", _by("what", lost)
    yield "streams", "streams that count", {"": len(live)}
    rings = {name: SEVERITIES.index(raised[name]) + 1 if name in raised else 0 for name in ALARMS}
    yield "alarm", "1 info, 2 warning, 3 critical, as the overview shows it", _by("name", rings)
    if (age_s := found.service.last_commit_age_s) is not None:
        yield "last_commit_age_seconds", "by the fleet's clock", {"": age_s}
    if found.room_bytes is not None:
        yield "room_bytes", "left beside the store", {"": found.room_bytes}
    valid = [one.valid_s for one in found.service.workers if one.valid_s is not None]
    if valid:
        words = "until the first certificate of a link to the broker expires"
        yield "certificate_expires_seconds", words, {"": min(valid) - found.now_s}
    if expire:
        yield "plan_expires_seconds", "until the first expires", {"": min(expire) - found.now_s}


def _by(label: str, values: Mapping[str, float]) -> dict[str, float]:
    return {f'{{{label}="{name}"}}': value for name, value in values.items()}
