"""Where the reports of each device and stream are, and whether the accounts agree.

Two things must hold. Of each device and stream: created = counted + rejected + expired + pending,
all of them counts, and no more held than counted. Of each stream, as one moment saw it: what the
devices' accounts say was counted is what the counts hold, those kept apart included. The second
is exact and independent of the first: counts and accounts lie in different tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aggregator.answers.crowds import account_told, is_sum_told
from aggregator.answers.units import number_text, text_table
from aggregator.answers.views import completeness_view

if TYPE_CHECKING:
    from aggregator.counting.records import Record

REPORTS = ("created", "counted", "held", "rejected", "expired", "pending", "duplicates")
SHOWN = (*REPORTS, "conflicts", "unconfirmed")
ACCOUNT = """\
fleet; holds: whether all is accounted for; violations[]: what is not, in words; exact: where
[query] min_devices is above 1 it is false: devices[] have null for whatever a counted report
changes, which would name who reported between two looks (--exact, for who can read the store
itself, has all); devices[]: device, group, stream, and reports: created = counted + rejected +
expired + pending (expired and pending by the device's last status), unconfirmed (by the same: given
up without a receipt, counted since or not; those that never came are the expired), held (of those
counted: kept apart), duplicates and conflicts (on top), highest_batch, gaps [[first, last]] of
batches that are missing, each asked for again by receipt, missing_batches; totals: the same reports
and missing_batches added up, null where they are of few devices or of all but few; counts[]:
stream, counted (by the devices' accounts), and in_counts, apart, deleted ([retention]): together
they must be the first."""


@dataclass(frozen=True, slots=True)
class DeviceAccount:
    """The record of one device and stream; `held` of its counted reports are kept apart."""

    device: str
    group: str
    stream_id: int
    stream: str
    record: Record
    held: int


@dataclass(frozen=True, slots=True)
class Sums:
    """Reports of one stream that the counts hold, and those of devices in quarantine beside them.

    `may_forget`: the configuration lets old counts be deleted ([retention] day_days).
    """

    in_counts: int
    held: int
    may_forget: bool = False


def account_view(
    fleet: str,
    rows: Iterable[DeviceAccount],
    sums: Mapping[str, Sums],
    is_shown: Callable[[Mapping[str, Any]], bool] = lambda _: True,
    least: int = 1,
) -> dict[str, Any]:
    """Return the JSON of `completeness` (ACCOUNT); `is_shown` chooses from its `devices`.

    What is violated, and the sums, are of all rows. `least`: of how many devices figures are.
    """
    rows = list(rows)
    violations = [*_wrong_rows(rows), *_wrong_sums(rows, sums)]
    devices = [(row, told) for row in rows if is_shown(told := _row(row, least))]
    chosen = {row.device for row, _ in devices}
    others = {row.device for row in rows} - chosen
    is_told = not others or is_sum_told(len(chosen), len(others), least)
    exact = [_row(row) for row, _ in devices] if is_told else []
    added = (*SHOWN, "missing_batches")
    return {
        "fleet": fleet,
        "holds": not violations,
        "violations": violations,
        "exact": least <= 1,
        "devices": [told for _, told in devices],
        "totals": {key: sum(one[key] for one in exact) if is_told else None for key in added},
        "counts": [
            {
                "stream": stream,
                "counted": _counted(rows, stream),
                "in_counts": one.in_counts,
                "apart": one.held,
                "deleted": _deleted(rows, stream, one),
            }
            for stream, one in sorted(sums.items())
        ],
    }


def account_text(view: Mapping[str, Any]) -> str:
    """Return the accounts as people read them."""
    columns = (*SHOWN, "missing_batches")
    head = ["reports", "group", *columns[:-1], "missing batches"]
    rows = [
        [
            *(f"{one['device']} {one['stream']}", one["group"] or "-"),
            *(number_text(one[c]) for c in columns),
        ]
        for one in view["devices"]
    ]
    rows.append(["all of these", "", *(number_text(view["totals"][c]) for c in columns)])
    lines = [text_table(head, rows), ""]
    if not view["exact"]:
        lines.append("withheld (-): it would name who reported between two looks; --exact has it")
    for one in view["counts"]:
        both = f"{one['in_counts']} in the counts + {one['apart']} held"
        lines.append(f"{one['stream']}: {one['counted']} counted by the devices' accounts; {both}")
    lines += [f"WRONG: {one}" for one in view["violations"]]
    return "\n".join(lines) + "\n"


def _row(row: DeviceAccount, least: int = 1) -> dict[str, Any]:
    key, names = (row.device, row.stream_id), {row.stream_id: row.stream}
    view = completeness_view(key, row.record, names, least)
    missing = sum(gap.last - gap.first + 1 for gap in row.record.missing)
    more = {"held": row.held, "missing_batches": missing}
    return {**view, "group": row.group, **account_told(more, least)}


def is_incomplete(view: Mapping[str, Any]) -> bool:
    """Say whether any report of one of `devices` is not counted, or may not be, as it is told."""
    lost = view["unconfirmed"] if view["expired"] is None else view["expired"]
    return bool(view["pending"] or view["gaps"] or lost or view["rejected"])


def _counted(rows: Iterable[DeviceAccount], stream: str) -> int:
    return sum(row.record.counted for row in rows if row.stream == stream)


def _deleted(rows: Iterable[DeviceAccount], stream: str, sums: Sums) -> int:
    """Return how many reports retention has deleted: what is missing, where it may delete any."""
    missing = _counted(rows, stream) - sums.in_counts - sums.held
    return max(0, missing) if sums.may_forget else 0


def _wrong_rows(rows: Iterable[DeviceAccount]) -> Iterable[str]:
    for row in rows:
        view = _row(row)
        parts = [view[key] for key in ("counted", "rejected", "expired", "pending")]
        if min(parts) < 0 or view["created"] != sum(parts):
            yield f"{row.device} {row.stream}: created is not the sum of its parts"
        if _knows_all_settled(row.record) and view["created"] > row.record.created:
            text = f"{row.record.created} created by its status, {view['created']} by its reports"
            yield f"{row.device} {row.stream}: {text}"
        if not 0 <= row.held <= row.record.counted:
            yield f"{row.device} {row.stream}: {row.held} held of {row.record.counted} counted"


def _knows_all_settled(record: Record) -> bool:
    """Say whether the last status knows every batch settled, under the only state there was."""
    return record.next > record.state.highest > 0 and not record.before


def _wrong_sums(rows: list[DeviceAccount], sums: Mapping[str, Sums]) -> Iterable[str]:
    for stream, one in sorted(sums.items()):
        counted, held = _counted(rows, stream), sum(r.held for r in rows if r.stream == stream)
        if counted != one.in_counts + one.held + _deleted(rows, stream, one):
            both = f"{one.in_counts} in the counts and {one.held} kept apart"
            yield f"{stream}: {counted} counted by the devices' accounts, {both}"
        if held != one.held:
            yield f"{stream}: {one.held} kept apart, {held} of devices that are known"
