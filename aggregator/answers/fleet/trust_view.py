"""What `status` shows of trust: each stream's last revision; devices that need somebody."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING

from aggregator.answers.crowds import MOVED_AGES
from aggregator.answers.parts import AnswerPart, Reports, Seconds, Share, Span
from aggregator.answers.units import age_text, clock_text, text_table
from edge_ldp.protocol.strict_json import loads

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from aggregator.answers.plan_view import Look
    from aggregator.store.rows import DeviceRow, MarkRow

MANY = 20  # rows of a table in a summary
NOTE = "a mark takes nothing out of any count, unless [guard] quarantine says so"


class MarkedDevice(AnswerPart, frozen=True, kw_only=True):
    """A device that sends codes more often than honest ones.

    device, stream, first_s, last_s, times that it was marked; and of the last mark: name: the set
    of codes; seen of reports were in it; bound: its largest honest share; chance: of as many. A
    mark takes nothing out of any count, unless the configuration says so.
    """

    device: str
    stream: str
    first_s: Seconds
    last_s: Seconds
    times: int
    name: str
    seen: Reports
    reports: Reports
    bound: Share
    chance: Share


class DecidedDevice(AnswerPart, frozen=True, kw_only=True):
    """A device that an operator, or a mark, decided about: device, since_s."""

    device: str
    since_s: Seconds


class RefusingDevice(AnswerPart, frozen=True, kw_only=True):
    """A device that refuses plans: device, reasons[]."""

    device: str
    reasons: list[str]


class DegradedDevice(AnswerPart, frozen=True, kw_only=True):
    """A device whose last status told of trouble: device, health, ages."""

    device: str
    health: str
    ages: dict[str, Span]


class TroubledDevices(AnswerPart, frozen=True, kw_only=True):
    """The devices that need somebody, or about which somebody decided.

    revoked[]: those that may not report, and held[]: those in quarantine, whose counts are kept
    apart, each device, since_s; refusing[]: device, reasons[] why it refused plans since it
    started, or what of its account is not believed; degraded[]: device, health, ages (as `devices
    list`) of those whose last status told of trouble.
    """

    revoked: list[DecidedDevice]
    held: list[DecidedDevice]
    refusing: list[RefusingDevice]
    degraded: list[DegradedDevice]


def marked_device(row: MarkRow, names: Mapping[int, str]) -> MarkedDevice:
    """Return a marked device; `names` of streams."""
    stream = names.get(row.stream, str(row.stream))
    return MarkedDevice.of(row, stream=stream, **asdict(row.mark))


def troubled_devices(rows: Iterable[DeviceRow], least: int = 1) -> TroubledDevices:
    """Return the devices that need somebody; `least`: of how many devices figures are."""
    found = TroubledDevices(revoked=[], held=[], refusing=[], degraded=[])
    for row in rows:
        if row.is_degraded and row.revoked_s is None:
            ages = told_ages(row.ages, least)
            found.degraded.append(DegradedDevice(device=row.device, health=row.health, ages=ages))
        if row.refusals:
            found.refusing.append(RefusingDevice(device=row.device, reasons=list(row.refusals)))
        if row.revoked_s is not None:
            found.revoked.append(DecidedDevice(device=row.device, since_s=row.revoked_s))
        if row.held_s is not None:
            found.held.append(DecidedDevice(device=row.device, since_s=row.held_s))
    return found


def told_ages(text: str, least: int = 1) -> dict[str, int]:
    """Return the ages that a device told, in seconds at its last status.

    But for those that its reports move, where figures are of `least` devices.
    """
    ages = dict(loads(text.encode()).raw()) if text else {}
    return {name: age for name, age in ages.items() if least <= 1 or name not in MOVED_AGES}


def looks_lines(looks: Iterable[tuple[str, Look | None]], zone: tzinfo = UTC) -> list[str]:
    """Return for people what the last revision of each stream said."""
    lines = []
    for name, look in looks:
        if look is None:
            continue
        lines += ["", f"{name}, looked at {clock_text(look.at_s, zone)} {zone}:"]
        lines += [f"  {reason}" for reason in look.reasons]
        lines += [f"  warning: {text}" for alarm in look.alarms for text in alarm.warnings]
    return lines


def trust_lines(
    devices: TroubledDevices, marked: Sequence[MarkedDevice], zone: tzinfo = UTC
) -> list[str]:
    """Return for people the devices that need somebody, by what is wrong with them."""
    lines = []
    if devices.revoked or devices.held:
        table = _decided_table(devices, zone)
        lines += ["", *_first(table, "devices list --only revoked|held")]
    degraded = [_degraded_row(row) for row in devices.degraded]
    if degraded:
        table = text_table(["device", "by its last status", "last telegram then"], degraded)
        lines += ["", *_first(table, "devices list")]
    refusing = [[row.device, "; ".join(row.reasons)] for row in devices.refusing]
    if refusing:
        table = text_table(["device", "refused, last reasons"], refusing)
        lines += ["", *_first(table, "status --json")]
    if marked:
        lines += ["", *_first(_marked_table(marked, zone), "status --json"), NOTE]
    return lines


def _degraded_row(row: DegradedDevice) -> list[str]:
    age_s = row.ages.get("telegram_s")
    return [row.device, row.health, "-" if age_s is None else f"{age_text(age_s)} ago"]


def _first(table: str, where: str) -> list[str]:
    """Return a table's first lines; `where` all of them are shown."""
    lines = table.splitlines()
    more = len(lines) - 1 - MANY
    return lines if more <= 0 else [*lines[: 1 + MANY], f"and {more} more: `{where}`"]


def _decided_table(devices: TroubledDevices, zone: tzinfo) -> str:
    decided = (devices.revoked, devices.held)
    since = [{row.device: row.since_s for row in rows} for rows in decided]
    rows = (
        [device, *(clock_text(of.get(device), zone) for of in since)]
        for device in sorted(since[0].keys() | since[1].keys())
    )
    return text_table(["device", f"revoked {zone}", f"quarantine {zone}"], rows)


def _marked_table(rows: Sequence[MarkedDevice], zone: tzinfo) -> str:
    head = ["marked", "codes", "seen", "of reports", "bound", "chance", f"first {zone}", "times"]
    cells = (
        [
            f"{row.device} {row.stream}",
            row.name,
            str(row.seen),
            str(row.reports),
            f"{row.bound:.4f}",
            f"{row.chance:.1e}",
            clock_text(row.first_s, zone),
            str(row.times),
        ]
        for row in rows
    )
    return text_table(head, cells)
