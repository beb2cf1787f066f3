"""What an operator decides about devices: wishes, and what they come to.

A device may report unless it is revoked and, by `intake.enrolment` of the configuration, anyone
("open"), only those listed there, or only those that have a row in the store ("store"). Its group
is what its counts belong to from then on; what was counted before stays where it is. In quarantine
what it counts is kept apart until it is released.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aggregator.errors import MemberError
from edge_ldp.device.errors import ParameterError
from edge_ldp.protocol.messages import check_name


@dataclass(frozen=True, slots=True)
class Wish:
    """What shall be so of a device; None: as it is. `where`: the line it came from, for errors.

    `enrols`: the device gets a row if it has none.
    """

    device: str
    where: str
    enrols: bool = False
    group: str | None = None
    revoked: bool | None = None
    held: bool | None = None


@dataclass(frozen=True, slots=True)
class Listed:
    """A device as it is shown; times in seconds UTC, None where it is not so or not known."""

    device: str
    group: str
    state: str
    seen_s: int
    enrolled_s: int | None
    revoked_s: int | None
    held_s: int | None
    health: str = ""
    ages: str = ""


@dataclass(frozen=True, slots=True)
class Standing:
    """What a device's row says: its group's number, since when it is revoked, and held.

    `barred`: why nobody may report by that name again, else "".
    """

    group: int = 0
    revoked_s: int | None = None
    held_s: int | None = None
    barred: str = ""


@dataclass(frozen=True, slots=True)
class Decided:
    """What wishes come to: new groups by name, devices to enrol, and what to put, by its name.

    `released`: whose counts join the others; `changed`: devices of which anything changes.
    """

    groups: Mapping[str, int]
    enrolled: Sequence[str]
    changes: Mapping[str, Sequence[tuple[int | None, str]]]
    released: Sequence[str]
    changed: list[str]


def decided(
    wishes: Iterable[Wish],
    standing: Mapping[str, Standing],
    groups: Mapping[str, int],
    at_s: int,
) -> Decided:
    """Return what is to be done about wishes, given what devices are; raises MemberError."""
    known, made, enrolled, changed = dict(groups), {}, [], []
    changes: dict[str, list[tuple[int | None, str]]] = {}
    for wish in wishes:
        device, before = wish.device, standing.get(wish.device)
        if before is None:
            if not wish.enrols:
                raise MemberError(wish.where, "is not enrolled", "enrol it first (devices enrol)")
            before = Standing()
            enrolled.append(device)
        if before.barred:
            remedy = "its old reports would count again: give the home another name"
            raise MemberError(wish.where, before.barred, remedy)
        if wish.group is not None and wish.group not in known:
            known[wish.group] = made[wish.group] = max(known.values()) + 1
        found = _changes(wish, before, known, at_s)
        for what, value in found.items():
            changes.setdefault(what, []).append((value, device))
        if found or device in enrolled[-1:]:
            changed.append(device)
    released = [device for _, device in changes.get("cleared_s", ())]
    return Decided(made, enrolled, changes, released, changed)


def _changes(
    wish: Wish, before: Standing, groups: Mapping[str, int], at_s: int
) -> dict[str, int | None]:
    found: dict[str, int | None] = {}
    if wish.group is not None and groups[wish.group] != before.group:
        found["group"] = groups[wish.group]
    if wish.revoked is not None and wish.revoked != (before.revoked_s is not None):
        found["revoked_s"] = at_s if wish.revoked else None
    if wish.held and before.held_s is None:
        found["held_s"] = at_s
    if wish.held is False and before.held_s is not None:
        found["cleared_s"] = at_s
    return found


def named_wishes(devices: Iterable[str], **wanted: Any) -> list[Wish]:
    """Return one wish for each device named in a command; raises MemberError."""
    checked_name("group", "--to", wanted.get("group") or "x")
    return [
        Wish(checked_name("device", "device", name), f"device {name}", **wanted)
        for name in dict.fromkeys(devices)
    ]


def checked_name(what: str, where: str, name: object) -> str:
    """Return the name of a device or group; raises MemberError naming where it stands."""
    try:
        if isinstance(name, str):
            return check_name(what, name)
        expected = "a name"
    except ParameterError as exc:
        expected = exc.expected
    raise MemberError(where, f"{str(name)[:70]!r} is no {what}'s name", f"expected {expected}")
