"""What commands answer that change something, or write files; plans and streams have their own."""

from __future__ import annotations

from msgspec import field

from aggregator.answers.parts import AnswerPart, Seconds


class ChangedDevices(AnswerPart, frozen=True, kw_only=True):
    """What `devices enrol | revoke | …` answer.

    command; devices: how many were named; changed[]: those of which something changed;
    logins_ended[]: devices that cannot log in at the broker any more ([devices] passwords_file).
    """

    command: str
    devices: int
    changed: list[str]
    logins_ended: list[str]


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
    """Whose token it is, and since when."""

    name: str
    made_s: Seconds


class ConsoleTokens(AnswerPart, frozen=True, kw_only=True):
    """What `console tokens list` answers.

    tokens[]: name, made_s.
    """

    tokens: list[ConsoleToken]
