"""The lists of devices, of their groups, and of the configured streams."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, tzinfo

from aggregator.answers.fleet.status import is_silent, told_ages
from aggregator.answers.parts import AnswerPart, Seconds, Span
from aggregator.answers.units import age_text, clock_text, text_table
from aggregator.config import StreamTable
from aggregator.counting.members import Listed


def page_of(rows: Sequence[Listed], number: int | None, length: int) -> Sequence[Listed]:
    """Return one page of rows, from 1 on; all of them without a number."""
    return rows if number is None else rows[(number - 1) * length : number * length]


class ListedDevice(AnswerPart, frozen=True, kw_only=True):
    """A device.

    device; group ("" for none); state by its last status (online, offline, unknown); seen_s,
    enrolled_s, revoked_s, held_s, or null; by its last status, where it told: health ("ok", or what
    is wrong), ages: seconds then since the last telegram_s, commit_s (not told where [query]
    min_devices is above 1), receipt_s, and since link_s; silent: no status came for a day (in a
    rehearsal of real time), or ever.
    """

    device: str
    group: str
    state: str
    seen_s: Seconds | None
    enrolled_s: Seconds | None
    revoked_s: Seconds | None
    held_s: Seconds | None
    health: str
    ages: dict[str, Span]
    silent: bool


class DevicesAnswer(AnswerPart, frozen=True, kw_only=True):
    """What `devices list` answers.

    fleet; now_s; total: devices that were asked for, on all pages; devices[].
    """

    fleet: str
    now_s: Seconds
    total: int
    devices: list[ListedDevice]


class GroupSize(AnswerPart, frozen=True, kw_only=True):
    """A group of devices, and how many are in it."""

    group: str
    devices: int


class GroupsAnswer(AnswerPart, frozen=True, kw_only=True):
    """What `devices groups` answers.

    fleet; groups[]: group, devices (how many are in it).
    """

    fleet: str
    groups: list[GroupSize]


def devices_answer(  # noqa: PLR0913 (what is known)
    fleet: str, devices: Sequence[Listed], *, total: int, now_s: int, old_s: int, least: int
) -> DevicesAnswer:
    """Return what `devices list` answers; `least`: of how many devices figures are."""
    rows = [
        ListedDevice.of(
            one,
            seen_s=None if one.state == "unknown" else one.seen_s,
            ages=told_ages(one.ages, least),
            silent=is_silent(one.state, one.seen_s, old_s),
        )
        for one in devices
    ]
    return DevicesAnswer(fleet=fleet, now_s=now_s, total=total, devices=rows)


def groups_answer(fleet: str, groups: Iterable[str], devices: Sequence[Listed]) -> GroupsAnswer:
    """Return what `devices groups` answers."""
    many = Counter(one.group for one in devices)
    rows = [GroupSize(group=name, devices=many[name]) for name in sorted(groups)]
    return GroupsAnswer(fleet=fleet, groups=rows)


def devices_text(view: DevicesAnswer, zone: tzinfo = UTC) -> str:
    """Return the list as people read it."""
    head = ["device", "group", "state", "last status", "ago", "enrolled", "revoked", "quarantine"]
    head.append("health")
    rows = [
        [
            *(one.device, one.group or "-", _state(one)),
            *_seen(one, view.now_s, zone),
            *(clock_text(at_s, zone) for at_s in (one.enrolled_s, one.revoked_s, one.held_s)),
            one.health or "-",
        ]
        for one in view.devices
    ]
    lines = [text_table(head, rows)]
    if len(rows) < view.total:
        lines.append(f"{len(rows)} of {view.total} devices")
    return "\n".join([*lines, ""])


def groups_text(view: GroupsAnswer) -> str:
    """Return groups as people read them."""
    return "".join(f"{one.group or '-'}  {one.devices} devices\n" for one in view.groups)


def _state(one: ListedDevice) -> str:
    """Return the state, or that it is an old one; of "unknown" nothing newer can be said."""
    return "silent" if one.silent and one.state != "unknown" else one.state


def _seen(one: ListedDevice, now_s: int, zone: tzinfo) -> tuple[str, str]:
    if one.seen_s is None:  # no status yet
        return "-", "-"
    return clock_text(one.seen_s, zone), age_text(now_s - one.seen_s)


class ListedStream(AnswerPart, frozen=True, kw_only=True):
    """A configured stream.

    stream, id, unit, slot_seconds; epoch of the newest plan (null: none yet); retired_s: since when
    it counts nothing, or null.
    """

    stream: str
    id: int
    unit: str
    slot_seconds: Span
    epoch: int | None
    retired_s: Seconds | None


class StreamsAnswer(AnswerPart, frozen=True, kw_only=True):
    """What `streams list` answers.

    fleet; streams[].
    """

    fleet: str
    streams: list[ListedStream]


class RetiredStream(AnswerPart, frozen=True, kw_only=True):
    """What `streams retire` and `streams reinstate` answer.

    stream; retired: whether it counts nothing more; changed: whether it was otherwise.
    """

    stream: str
    retired: bool
    changed: bool


def streams_answer(
    fleet: str,
    streams: Iterable[StreamTable],
    epochs: Mapping[int, int],
    retired: Mapping[int, int],
) -> StreamsAnswer:
    """Return what `streams list` answers."""
    rows = [
        ListedStream.of(
            one, stream=one.name, epoch=epochs.get(one.id), retired_s=retired.get(one.id)
        )
        for one in streams
    ]
    return StreamsAnswer(fleet=fleet, streams=rows)


def streams_text(view: StreamsAnswer, zone: tzinfo = UTC) -> str:
    """Return the list as people read it."""
    head = ["stream", "id", "unit", "slot s", "epoch", f"retired {zone}"]
    rows = [
        [
            *(row.stream, row.id, row.unit, row.slot_seconds, row.epoch),
            clock_text(row.retired_s, zone),
        ]
        for row in view.streams
    ]
    return text_table(head, rows) + "\n"


def retired_text(view: RetiredStream) -> str:
    """Return what `retire` or `reinstate` did, in a line."""
    words = "is retired: nothing more of it counts" if view.retired else "counts"
    return f"{view.stream} {words}{'' if view.changed else ', as before'}\n"
