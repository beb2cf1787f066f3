"""A fleet at a glance, and what of it needs an operator: for the overview and the metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aggregator.answers.lookup import REPORTS, read_last_look, read_plans, service_view

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from aggregator.config import AggregatorConfig, StreamTable
    from aggregator.store.contract import Reader

DAY_S = 86_400
QUIET_S = 2 * 3600  # without a commit: longer than any receipt interval that ships


def read_summary(reader: Reader, config: AggregatorConfig, now_s: int) -> dict[str, Any]:
    """Return numbers alone, no device's name.

    fleet, now_s, last_commit_s; service (as in `status`); devices: enrolled, online, silent (no
    status for a day), revoked, held, refusing, marked (and not held); streams[]: stream, unit,
    retired_s, plan (epoch, theta, issued_s, expires_s, or null), alarms (of the last look, in
    words), and reports summed; refused: messages and reports, by reason.
    """
    devices = reader.device_sums(now_s - DAY_S)
    sums, retired = reader.report_sums(), reader.retired()
    return {
        "fleet": config.fleet,
        "now_s": now_s,
        "last_commit_s": reader.last_commit_s(),
        "service": service_view(reader, config, now_s),
        "quiet_s": max(QUIET_S, 2 * config.intake.receipt_interval_s),
        "devices": {
            "enrolled": sum(row.devices for row in devices),
            "online": sum(row.devices for row in devices if row.state == "online"),
            "silent": sum(row.devices for row in devices if row.old or row.state == "unknown"),
            "revoked": sum(row.devices for row in devices if row.revoked),
            "held": sum(row.devices for row in devices if row.held),
            "refusing": sum(row.devices for row in devices if row.refusing),
            "marked": sum(row.devices for row in devices if row.marked and not row.held),
        },
        "streams": [
            {
                **_stream(reader, stream),
                "retired_s": retired.get(stream.id),
                **{
                    name: sum(getattr(row, name) for row in sums if row.stream == stream.id)
                    for name in REPORTS
                },
            }
            for stream in config.streams
        ],
        "refused": [
            {"reason": row.reason, "messages": row.messages, "reports": row.reports}
            for row in reader.refused()
        ],
    }


def is_silent(state: str, seen_s: int, now_s: int) -> bool:
    """Say whether nothing was heard of a device for a day, or ever."""
    return state == "unknown" or now_s - seen_s > DAY_S


def alarms(found: Mapping[str, Any], file: str) -> Iterator[dict[str, str]]:
    """Yield what needs an operator: name (as of config/prometheus-alerts.yml), text, command.

    `file`: the configuration's name, as a shell takes it.
    """
    devices, last_s = found["devices"], found["last_commit_s"]
    age_s = None if last_s is None else found["now_s"] - last_s
    if age_s is not None and age_s > found["quiet_s"]:
        text = f"nothing was counted for {age_s // 60:,} minutes: does the service run?"
        yield _alarm("NothingCounted", text, "systemctl status edge-ldp-aggregator")
    if 10 * devices["silent"] > devices["enrolled"]:
        text = f"{devices['silent']:,} of {devices['enrolled']:,} devices were silent for a day"
        yield _alarm("DevicesSilent", text, f"edge-ldp aggregator devices list -c {file}")
    if devices["refusing"]:
        text = f"{devices['refusing']:,} devices refuse plans, or count what cannot be"
        yield _alarm("PlansRefused", text, f"edge-ldp aggregator status -c {file}")
    if devices["marked"]:
        text = f"{devices['marked']:,} devices send codes as no honest one does"
        command = f"edge-ldp aggregator devices quarantine -c {file} NAME"
        yield _alarm("DevicesMarked", text, command)
    for stream in found["streams"]:
        if stream["alarms"]:
            text = f"{stream['stream']}: {stream['alarms'][0]}"
            command = f"edge-ldp aggregator plan show -c {file} --stream {stream['stream']}"
            yield _alarm("LookAlarm", text, command)
        if stream["plan"] is None and stream["retired_s"] is None:
            text = f"{stream['stream']} has no plan, so no device reports it"
            yield _alarm("NoPlan", text, f"edge-ldp aggregator run -c {file}")
    expired = sum(stream["expired"] for stream in found["streams"])
    if expired:
        text = f"{expired:,} reports expired on their devices before they could be sent"
        yield _alarm("ReportsExpired", text, f"edge-ldp aggregator completeness -c {file}")


def _alarm(name: str, text: str, command: str) -> dict[str, str]:
    return {"name": name, "text": text, "command": command}


def _stream(reader: Reader, stream: StreamTable) -> dict[str, Any]:
    plans, look = read_plans(reader, stream), read_last_look(reader, stream)
    plan = plans[max(plans)] if plans else None
    rings = (
        [] if look is None else [said for one in look.screen if one.rings for said in one.warnings]
    )
    return {
        "stream": stream.name,
        "unit": stream.unit,
        "plan": None
        if plan is None
        else {
            "epoch": plan.epoch,
            "theta": plan.theta,
            "issued_s": plan.issued_s,
            "expires_s": plan.expires_s,
        },
        "alarms": rings,
    }
