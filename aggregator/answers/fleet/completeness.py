"""Where the reports of each device and stream are, and whether the accounts agree.

Two things must hold. Of each device and stream: created = counted + rejected + expired + pending,
all of them counts, and no more held than counted. Of each stream, as one moment saw it: what the
devices' accounts say was counted is what the counts hold, those kept apart included. The second
is exact and independent of the first: counts and accounts lie in different tables.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from msgspec.structs import astuple

from aggregator.answers.crowds import account_told, is_sum_told
from aggregator.answers.parts import AnswerPart, Reports
from aggregator.answers.units import number_text, text_table
from aggregator.counting.records import Key, Record
from edge_ldp.protocol.released import FIRST_KEY, FIRST_SUMS_KEY


class Places(AnswerPart, frozen=True, kw_only=True):
    """Where the reports of a device's stream are, or the values of a curated one.

    created = counted + rejected + expired + pending (expired and pending by the device's last
    status); duplicates and conflicts came on top; unconfirmed: given up without a receipt by the
    device's last status, counted since or not (those that never came are the expired);
    highest_batch; gaps [[first, last]] of batches that are missing, each asked for again by
    receipt; null: whatever a counted report changes, where [query] min_devices is above 1: it would
    name who reported between two looks (--exact, for who can read the store itself, has all).
    """

    device: str
    created: Reports | None
    counted: Reports | None
    rejected: Reports
    expired: Reports | None
    unconfirmed: Reports
    pending: Reports | None
    duplicates: Reports | None
    conflicts: Reports
    highest_batch: int | None
    gaps: list[list[int]] | None

    @classmethod
    def of_record(cls, device: str, record: Record, **others: Any) -> Self:
        """Return it with `others` of its fields."""
        return cls.of(
            record,
            device=device,
            created=record.counted + record.rejected + record.given_up + record.pending,
            expired=record.given_up,
            unconfirmed=record.expired,
            highest_batch=record.state.highest,
            gaps=[[gap.first, gap.last] for gap in record.missing],
            **others,
        )


class StreamPlaces(Places, frozen=True, kw_only=True):
    """Where the reports of a device's stream are, named."""

    stream: str


class CuratedPlaces(Places, frozen=True, kw_only=True):
    """Where the values of a device's curated stream are.

    number of the stream, on its device.
    """

    number: int


class AccountRow(StreamPlaces, frozen=True, kw_only=True):
    """One device and stream of `completeness`.

    stream; group ("" for none); held: of those counted, kept apart; missing_batches: how many.
    """

    group: str
    held: Reports | None
    missing_batches: int | None


class AccountTotals(AnswerPart, frozen=True, kw_only=True):
    """Reports of all devices that are shown, and their missing batches.

    The same added up; null where they are of few devices or of all but few.
    """

    created: Reports | None
    counted: Reports | None
    held: Reports | None
    rejected: Reports | None
    expired: Reports | None
    pending: Reports | None
    duplicates: Reports | None
    conflicts: Reports | None
    unconfirmed: Reports | None
    missing_batches: int | None


class StreamSums(AnswerPart, frozen=True, kw_only=True):
    """One stream: what the accounts say, and what the counts hold.

    stream, counted (by the devices' accounts); in_counts, apart, deleted ([retention]): together
    they must be the first.
    """

    stream: str
    counted: Reports
    in_counts: Reports
    apart: Reports
    deleted: Reports


class AccountAnswer(AnswerPart, frozen=True, kw_only=True):
    """What `completeness` answers.

    fleet; holds: whether all is accounted for; violations[]: what is not, in words; exact: false
    where figures that would name who reported are null; devices[]; totals; counts[] of streams.
    """

    fleet: str
    holds: bool
    violations: list[str]
    exact: bool
    devices: list[AccountRow]
    totals: AccountTotals
    counts: list[StreamSums]


@dataclass(frozen=True, slots=True)
class DeviceAccount:
    """The record of one device and stream; `held` of its counted reports are kept apart."""

    device: str
    group: str
    stream: str
    record: Record
    held: int


def stream_places(
    key: Key, record: Record, names: Mapping[int, str], least: int = 1
) -> StreamPlaces:
    """Return one device and stream of `status`; `least` above 1: as `crowds.account_told` says."""
    device, stream = key
    places = StreamPlaces.of_record(device, record, stream=stream_name(stream, names))
    return account_told(places, least)


def stream_name(key: int, names: Mapping[int, str]) -> str:
    """Return what a record's stream is called: a home's own by its kind and the home's number."""
    if key >= FIRST_SUMS_KEY:
        return f"sums {key - FIRST_SUMS_KEY}"
    return f"curated {key - FIRST_KEY}" if key >= FIRST_KEY else names.get(key, str(key))


def account_answer(
    fleet: str,
    rows: Sequence[DeviceAccount],
    counts: list[StreamSums],
    is_shown: Callable[[AccountRow], bool] = lambda _: True,
    least: int = 1,
) -> AccountAnswer:
    """Return what `completeness` answers; `is_shown` chooses from its `devices`.

    What is violated, and the sums, are of all rows. `least`: of how many devices figures are.
    """
    violations = [*_wrong_rows(rows), *_wrong_sums(rows, counts)]
    devices = [(row, told) for row in rows if is_shown(told := _row(row, least))]
    chosen = {row.device for row, _ in devices}
    others = {row.device for row in rows} - chosen
    is_told = not others or is_sum_told(len(chosen), len(others), least)
    exact = [_row(row) for row, _ in devices]
    keys = AccountTotals.__struct_fields__
    totals = {key: sum(getattr(one, key) for one in exact) if is_told else None for key in keys}
    return AccountAnswer(
        fleet=fleet,
        holds=not violations,
        violations=violations,
        exact=least <= 1,
        devices=[told for _, told in devices],
        totals=AccountTotals(**totals),
        counts=counts,
    )


def account_text(view: AccountAnswer) -> str:
    """Return the accounts as people read them."""
    columns = AccountTotals.__struct_fields__
    head = ["reports", "group", *columns[:-1], "missing batches"]
    rows = [
        [
            *(f"{one.device} {one.stream}", one.group or "-"),
            *(number_text(getattr(one, column)) for column in columns),
        ]
        for one in view.devices
    ]
    rows.append(["all of these", "", *map(number_text, astuple(view.totals))])
    lines = [text_table(head, rows), ""]
    if not view.exact:
        lines.append("withheld (-): it would name who reported between two looks; --exact has it")
    for one in view.counts:
        both = f"{one.in_counts} in the counts + {one.apart} held"
        lines.append(f"{one.stream}: {one.counted} counted by the devices' accounts; {both}")
    lines += [f"WRONG: {one}" for one in view.violations]
    return "\n".join(lines) + "\n"


def _row(row: DeviceAccount, least: int = 1) -> AccountRow:
    found = AccountRow.of_record(
        row.device,
        row.record,
        stream=row.stream,
        group=row.group,
        held=row.held,
        missing_batches=sum(gap.last - gap.first + 1 for gap in row.record.missing),
    )
    return account_told(found, least)


def is_incomplete(view: AccountRow) -> bool:
    """Say whether any report of one of `devices` is not counted, or may not be, as it is told."""
    lost = view.unconfirmed if view.expired is None else view.expired
    return bool(view.pending or view.gaps or lost or view.rejected)


def _wrong_rows(rows: Iterable[DeviceAccount]) -> Iterable[str]:
    for row in rows:
        record = row.record
        parts = (record.counted, record.rejected, record.given_up, record.pending)
        if min(parts) < 0:
            yield f"{row.device} {row.stream}: created is not the sum of its parts"
        if _knows_all_settled(record) and sum(parts) > record.created:
            text = f"{record.created} created by its status, {sum(parts)} by its reports"
            yield f"{row.device} {row.stream}: {text}"
        if not 0 <= row.held <= record.counted:
            yield f"{row.device} {row.stream}: {row.held} held of {record.counted} counted"


def _knows_all_settled(record: Record) -> bool:
    """Say whether the last status knows every batch settled, under the only state there was."""
    return record.next > record.state.highest > 0 and not record.before


def _wrong_sums(rows: Sequence[DeviceAccount], counts: Iterable[StreamSums]) -> Iterable[str]:
    for one in counts:
        if one.counted != one.in_counts + one.apart + one.deleted:
            both = f"{one.in_counts} in the counts and {one.apart} kept apart"
            yield f"{one.stream}: {one.counted} counted by the devices' accounts, {both}"
        if (held := sum(row.held for row in rows if row.stream == one.stream)) != one.apart:
            yield f"{one.stream}: {one.apart} kept apart, {held} of devices that are known"
