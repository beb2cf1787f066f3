"""What commands answer that change something, or write files; plans and streams have their own."""

from msgspec import field

from aggregator.answers.parts import AnswerPart, Reports, Seconds
from edge_ldp.protocol.utc import utc


class ChangedDevices(AnswerPart, frozen=True, kw_only=True):
    """What `devices enrol | revoke | …` answer.

    command; devices: how many were named; changed[]: those of which something changed;
    logins_ended[]: devices that cannot log in at the broker any more ([devices] passwords_file).
    """

    command: str
    devices: int
    changed: list[str]
    logins_ended: list[str]


class ErasedDevice(AnswerPart, frozen=True, kw_only=True):
    """What was erased of a device.

    rows: how many, by the store's table; audited: lines of the log of changes that lost its name;
    reports: that stay in counts of many; unnamed: its sums of a period that stay.
    """

    device: str
    rows: dict[str, int]
    audited: int
    reports: Reports
    unnamed: int


class ErasedDevices(AnswerPart, frozen=True, kw_only=True):
    """What `devices erase` answers.

    at_s; devices[]; logins_ended[]; overwritten: no free page has bytes of them; archived: reports
    that were erased in the archive, or null where there is none.
    """

    at_s: Seconds
    devices: list[ErasedDevice]
    logins_ended: list[str]
    overwritten: bool
    archived: Reports | None


class RenamedDevice(AnswerPart, frozen=True, kw_only=True):
    """What `devices rename` answers.

    device: its old name; to: its new one; changed: false if it had that already; login_moved:
    whether its login at the broker has the new name now, with the same password.
    """

    device: str
    to: str
    changed: bool
    login_moved: bool


class RenewedCertificates(AnswerPart, frozen=True, kw_only=True):
    """What `renew` answers.

    files[]: written anew; valid_s: until when the broker's certificate and its authority's are
    valid; broker_told: whether the broker reads its files again by itself; null of a plan's key.
    """

    files: list[str]
    valid_s: Seconds | None
    broker_told: bool | None


class ExportedAnswers(AnswerPart, frozen=True, kw_only=True):
    """What `export` answers.

    rows: written, of so many days; withheld: rows without figures.
    """

    rows: int
    withheld: int
    days: int


class InvitedDevice(AnswerPart, frozen=True, kw_only=True):
    """A device and the file of its invitation."""

    device: str
    file: str


class InvitedDevices(AnswerPart, frozen=True, kw_only=True):
    """What `devices invite` answers.

    directory; devices[]: device, file of its invitation; broker_told: whether the broker reads its
    passwords again by itself; expires_s: until when they are good, or null; replaced[]: those of
    which another device was heard before, whose state is lost unless it moves along.
    """

    directory: str
    devices: list[InvitedDevice]
    broker_told: bool
    expires_s: Seconds | None
    replaced: list[str]


class EndedInvitations(AnswerPart, frozen=True, kw_only=True):
    """What `devices expire` answers.

    ended[]: devices whose invitation ran out unused, so that their login ended; used[]: devices
    that were heard in time; open[]: device, until_s; broker_told as of `devices invite`.
    """

    ended: list[str]
    used: list[str]
    open: dict[str, Seconds]
    broker_told: bool


class WrittenBackup(AnswerPart, frozen=True, kw_only=True):
    """What `backup` answers.

    file; bytes; engine (sqlite, postgresql).
    """

    file: str
    bytes: int
    engine: str


class RestoredPlan(AnswerPart, frozen=True, kw_only=True):
    """A stream whose plans go on.

    stream, epoch of the plan that goes on, taken_over (plans newer than the backup's, from the
    store that was replaced).
    """

    stream: str
    epoch: int
    taken_over: int


class RestoredStore(AnswerPart, frozen=True, kw_only=True):
    """What `restore` answers.

    file; engine; plans[]; replaced: where the store is kept that was there before, or null.
    """

    file: str
    engine: str
    plans: list[RestoredPlan]
    replaced: str | None


class MovedStore(AnswerPart, frozen=True, kw_only=True):
    """What `migrate` answers.

    tables: {name: rows copied}, empty if that was done before; from, to.
    """

    tables: dict[str, int]
    from_: str = field(name="from")
    to: str


class WrittenFleet(AnswerPart, frozen=True, kw_only=True):
    """What `setup` answers.

    directory; files[]; commands[]: what to run next, in order.
    """

    directory: str
    files: list[str]
    commands: list[str]


class ConsoleToken(AnswerPart, frozen=True, kw_only=True):
    """Whose token it is, for what role, and since when."""

    name: str
    role: str
    made_s: Seconds


class ConsoleTokens(AnswerPart, frozen=True, kw_only=True):
    """What `console tokens list` answers.

    tokens[]: name, role, made_s.
    """

    tokens: list[ConsoleToken]


def erased_text(view: ErasedDevices, *, told: str = "") -> str:
    """Return what was erased, as a receipt for whoever asked for it; `told`: of the broker."""
    lines = []
    for one in view.devices:
        rows = ", ".join(f"{many} {name}" for name, many in one.rows.items() if many)
        lines += [
            f"{one.device}: erased {utc(view.at_s):%Y-%m-%d %H:%M} UTC, and its name is barred",
            f"  gone: its status, group and what it sent when; rows: {rows or 'none'}",
            f"  gone: its name from {one.audited} lines of the log of changes",
            f"  stays: {one.reports:,} reports, in counts of many homes: they cannot be told apart",
            f"  stays: {one.unnamed} noisy sums, of a random name each",
        ]
    if view.logins_ended:
        lines.append(f"logins at the broker ended: {len(view.logins_ended)}{told and f'; {told}'}")
    if not view.overwritten:
        lines.append("its bytes may remain in free pages until VACUUM, with the service stopped")
    if view.archived is not None:
        lines.append(f"gone from the archive: {view.archived:,} reports; `replay` knows of it")
    lines.append("older backups still have it: they must go, or be restored and erased again")
    return "\n".join([*lines, ""])
