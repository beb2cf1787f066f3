"""Metrics in Prometheus' text form: at most 40 series, whatever the fleet's size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aggregator.answers.fleet import REPORTS
from aggregator.console.alarms import ALARMS

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Family = tuple[str, str, str, dict[str, float]]


def metrics_text(
    found: Mapping[str, Any] | None, raised: Container[str], console: Mapping[str, float]
) -> str:
    """Return the metrics of a summary (None: the store cannot be read) and of the console.

    `raised`: the names of the alarms that are.
    """
    families: list[Family] = [
        ("store_up", "gauge", "1 if the store can be read", {"": float(found is not None)}),
        *([] if found is None else _fleet(found, raised)),
        ("console_answers_total", "counter", "questions", {"": console["answers"]}),
        ("console_answering_seconds_total", "counter", "they took", {"": console["seconds"]}),
        ("console_viewers", "gauge", "who are told of commits", {"": console["viewers"]}),
    ]
    lines = []
    for name, kind, told, series in families:
        lines += [f"# HELP edge_ldp_{name} {told}", f"# TYPE edge_ldp_{name} {kind}"]
        lines += [f"edge_ldp_{name}{labels} {value:.15g}" for labels, value in series.items()]
    return "\n".join([*lines, ""])


def _fleet(found: Mapping[str, Any], raised: Container[str]) -> list[Family]:
    streams = found["streams"]
    live = [stream for stream in streams if stream["retired_s"] is None]
    plans = [stream["plan"] for stream in live if stream["plan"] is not None]
    families: list[Family] = [
        (
            "devices",
            "gauge",
            "devices by what is so of them",
            {f'{{what="{name}"}}': value for name, value in found["devices"].items()},
        ),
        (
            "reports_total",
            "counter",
            "created = counted + rejected + expired + pending; the others came on top",
            {f'{{what="{name}"}}': sum(one[name] for one in streams) for name in REPORTS},
        ),
        (
            "refused_total",
            "counter",
            "what was not counted",
            {
                f'{{what="{name}"}}': sum(row[name] for row in found["refused"])
                for name in ("messages", "reports")
            },
        ),
        ("streams", "gauge", "streams that count", {"": len(live)}),
        (
            "alarm",
            "gauge",
            "1 where the overview shows this alarm",
            {f'{{name="{name}"}}': name in raised for name in ALARMS},
        ),
    ]
    if found["last_commit_s"] is not None:
        age_s = found["now_s"] - found["last_commit_s"]
        families.append(("last_commit_age_seconds", "gauge", "by the fleet's clock", {"": age_s}))
    if plans:
        left_s = min(plan["expires_s"] for plan in plans) - found["now_s"]
        families.append(("plan_expires_seconds", "gauge", "until the first expires", {"": left_s}))
    return families
