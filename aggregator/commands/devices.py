"""`edge-ldp aggregator devices …`: who may report, in which group, and whose counts are held."""

import argparse
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from functools import wraps
from pathlib import Path

from aggregator.answers.fleet import lists
from aggregator.answers.fleet.changes import (
    ChangedDevices,
    ErasedDevice,
    ErasedDevices,
    RenamedDevice,
    erased_text,
)
from aggregator.answers.fleet.one_device import DeviceAnswer, device_text, read_device
from aggregator.answers.fleet.status import is_silent
from aggregator.archive.directory import replacing
from aggregator.commands import common, invite
from aggregator.commands.asking import ZONE, Asked, Commands, Order, Shown, option
from aggregator.commands.invite import RELOAD, end_logins, move_login
from aggregator.commands.member_files import FORMATS, read_members, write_members
from aggregator.config import AggregatorConfig, ConfigError
from aggregator.counting.members import Listed, Wish, named_wishes
from aggregator.errors import NothingError
from aggregator.store.administration.erasure import erase as erase_devices
from aggregator.store.administration.erasure import erased_devices
from aggregator.store.administration.registry import apply, listed
from aggregator.store.administration.renaming import rename as rename_device
from aggregator.store.contract import Reader, Session
from edge_ldp.arguments import whole_number
from edge_ldp.entropy import system_draw

PER_PAGE = 50
SORTS: dict[str, Callable[[Listed], tuple[object, ...] | str]] = {
    "name": lambda row: row.device,
    "silent": lambda row: (row.state == "unknown", row.seen_s, row.device),
    "state": lambda row: (row.state, row.device),
    "group": lambda row: (row.group, row.device),
}
STATES = ("enrolled", "revoked", "held", "silent")


def list_(asked: Asked) -> Shown:
    """List devices: group, last status, when enrolled, revoked, put into quarantine."""
    args, config, zone, now_s = asked.args, asked.config, asked.zone, asked.now_s
    old_s, least = config.silent_before(now_s), config.query.min_devices
    rows = sorted(_chosen(asked), key=SORTS[args.sort])
    shown, total = lists.page_of(rows, args.page, args.per_page), len(rows)
    view = lists.devices_answer(
        config.fleet, shown, total=total, now_s=now_s, old_s=old_s, least=least
    )
    told = Shown(view, lambda: lists.devices_text(view, zone))
    nobody = f"{config.fleet}: no device that this asks for"
    return told if rows else told.but(common.EXIT_NOTHING, nobody)


def show(asked: Asked) -> Shown:
    """Show a device: how it is, its last 30 days, and which commands named it in them."""
    config, device, zone = asked.config, asked.args.device, asked.zone
    view = read_device(asked.reader, config, device, asked.now_s, zone)
    if view is None:
        raise NothingError(f"{config.fleet}: no device {device}")
    return Shown(view, lambda: device_text(view, zone))


def enrol(args: argparse.Namespace) -> list[Wish]:
    """Give devices a row, so that they may report; --group puts them into a group."""
    return named_wishes(args.device, enrols=True, group=args.group)


def revoke(args: argparse.Namespace) -> list[Wish]:
    """Refuse what devices send from now on; what they sent stays counted."""
    return named_wishes(args.device, revoked=True)


def reinstate(args: argparse.Namespace) -> list[Wish]:
    """Let devices that were revoked report again."""
    return named_wishes(args.device, revoked=False)


def group(args: argparse.Namespace) -> list[Wish]:
    """Put devices into a group, a new one if need be; their counts belong to it from now on."""
    return named_wishes(args.device, group=args.to)


def quarantine(args: argparse.Namespace) -> list[Wish]:
    """Keep apart what devices count from now on, until they are released; nothing is deleted."""
    return named_wishes(args.device, held=True)


def release(args: argparse.Namespace) -> list[Wish]:
    """End the quarantine of devices: what was kept apart joins the counts, exactly."""
    return named_wishes(args.device, held=False)


def import_(args: argparse.Namespace) -> list[Wish]:
    """Enrol, group, revoke and reinstate as a file says: all of its devices, or none."""
    return read_members(common.read_text(args.file), _form(args), str(args.file))


def export(asked: Asked) -> Shown:
    """Write devices as `import` reads them: device, group, revoked."""
    args = asked.args
    if args.file is not None:
        common.refuse_own(args, asked.config, args.file)
    text = write_members(_chosen(asked), _form(args))
    if args.file is None:
        return Shown(text=lambda: text)
    try:
        with replacing(args.file) as draft:
            draft.write_text(text)
    except OSError as exc:
        expected = f"expected a file that can be written ({exc.strerror})"
        raise ConfigError(str(args.file), "file", expected) from exc
    return Shown()


def groups(asked: Asked) -> Shown:
    """List groups and how many devices are in each; one that is empty keeps its counts."""
    view = lists.groups_answer(asked.config.fleet, asked.reader.groups(), listed(asked.reader))
    return Shown(view, lambda: lists.groups_text(view))


def erase(asked: Asked, session: Session) -> Shown:
    """Erase what is kept of devices alone, for ever; sums of many homes stay as they are."""
    wanted, at_s = [wish.device for wish in named_wishes(asked.args.device)], asked.now_s
    if not asked.args.yes:
        expected = "expected it: what is erased is gone for good, and its name cannot be used again"
        raise ConfigError("arguments", "--yes", expected)
    found, is_overwritten = erase_devices(session, wanted, at_s, system_draw())
    archived = _erase_archived(asked.config, session)
    ended, is_broker_told = end_logins(asked.config, wanted)
    view = ErasedDevices(
        at_s=at_s,
        devices=[ErasedDevice(**one._asdict()) for one in found],
        logins_ended=ended,
        overwritten=is_overwritten,
        archived=archived,
    )
    return Shown(view, lambda: erased_text(view, told="" if is_broker_told else RELOAD))


def _erase_archived(config: AggregatorConfig, reader: Reader) -> int | None:
    if config.archive is None:
        return None
    from aggregator.archive.files import compact, erase_archived  # noqa: PLC0415 (an extra)

    place, slots = Path(config.archive.path), {one.id: one.slot_seconds for one in config.streams}
    gone = erased_devices(reader.facts())
    compact(place, slots, reader.committed, erased=gone)
    return erase_archived(place, gone)


def rename(asked: Asked, session: Session) -> Shown:
    """Let a device go on under another name; nothing is lost, and the old name is barred."""
    old, new = asked.args.device, asked.args.to
    is_new = rename_device(session, old, new, asked.now_s)
    moved, is_told = move_login(asked.config, old, new)
    view = RenamedDevice(device=old, to=new, changed=is_new, login_moved=moved)
    lines = [
        f"{old} {'is' if is_new else 'already was'} {new}, and its old name is barred",
        f'on the device, in agent.toml: id = "{new}", and the same username; then restart it:',
        "until then its reports are refused and wait there",
        *([RELOAD] if view.login_moved and not is_told else []),
    ]
    return Shown(view, lambda: "\n".join([*lines, ""]))


def _fulfilled(wishes_of: Callable[[argparse.Namespace], list[Wish]]) -> Order:
    """Return the order that fulfils what a command wishes of devices."""

    @wraps(wishes_of)
    def order(asked: Asked, session: Session) -> Shown:
        name, wishes = wishes_of.__name__.removesuffix("_"), wishes_of(asked.args)
        changed = apply(session, wishes, asked.now_s)
        ends_logins = name in ("revoke", "import")
        gone = [wish.device for wish in wishes if wish.revoked and ends_logins]
        ended, is_broker_told = end_logins(asked.config, gone)
        view = ChangedDevices(
            command=name, devices=len(wishes), changed=changed, logins_ended=ended
        )
        which = f": {common.names(changed)}" if changed else ""
        lines = [f"{name}: {len(changed)} of {len(wishes)} devices changed{which}\n"]
        if ended:
            logins = "1 login" if len(ended) == 1 else f"{len(ended)} logins"
            remedy = "" if is_broker_told else f"; {RELOAD}"
            lines.append(f"{logins} at the broker ended: {common.names(ended)}{remedy}\n")
        lines += _notes(name, asked.config, changed)
        return Shown(view, lambda: "".join(lines))

    return order


def _notes(name: str, config: AggregatorConfig, changed: Sequence[str]) -> list[str]:
    """Return what an operator might not expect."""
    if name == "reinstate" and config.devices is not None and changed:
        return ["their logins ended when they were revoked: devices invite --again\n"]
    mode = config.intake.enrolment
    unlisted = [] if isinstance(mode, str) else sorted(set(changed) - set(mode))
    if unlisted and name in ("enrol", "import", "reinstate"):
        return [
            f"not heard: intake.enrolment lists other devices, without {common.names(unlisted)}\n"
        ]
    return []


def _chosen(asked: Asked) -> list[Listed]:
    args, old_s = asked.args, asked.config.silent_before(asked.now_s)
    asked.find_group()
    tests = {
        "enrolled": lambda row: row.revoked_s is None,
        "revoked": lambda row: row.revoked_s is not None,
        "held": lambda row: row.held_s is not None,
        "silent": lambda row: is_silent(row.state, row.seen_s, old_s),
    }
    return [
        row
        for row in listed(asked.reader)
        if args.group in (None, row.group)
        and (args.only is None or tests[args.only](row))
        and (args.filter is None or fnmatchcase(row.device, f"*{args.filter}*"))
    ]


def _form(args: argparse.Namespace) -> str:
    """Return the file's format: as said, else by its name."""
    form = args.format or ("csv" if args.file is None else args.file.suffix.lstrip("."))
    if form not in FORMATS:
        raise ConfigError(str(args.file), "--format", "expected csv or json")
    return str(form)


def add(commands: Commands) -> None:
    """Add the commands' options."""
    below = commands.below("devices", f"Say {__doc__.partition(': ')[2]}")
    named, several = option("device", help="its name"), option("device", nargs="+", help="its name")
    to_group = option("--to", required=True, metavar="GROUP", help='its name; "" for none')
    for command, *more in (
        (enrol, option("--group", help="the group to put them into")),
        (revoke,),
        (reinstate,),
        (group, to_group),
        (quarantine,),
        (release,),
    ):
        below.order(_fulfilled(command), ChangedDevices, several, *more)
    yes = option("--yes", action="store_true", help="for ever")
    below.order(erase, ErasedDevices, several, yes)
    new = option("to", metavar="NEW", help="one that no device ever had")
    below.order(rename, RenamedDevice, named, new)
    invite.add(below)
    told = f"{' or '.join(FORMATS)}; by the file's name unless given"
    form = option("--format", choices=FORMATS, help=told)
    file = option("file", type=Path, help="CSV or JSON")
    below.order(_fulfilled(import_), ChangedDevices, file, form)
    chosen = (
        option("--group", help='of one group; "" for those in none'),
        option("--filter", metavar="TEXT", help="in its name; * is anything"),
        option("--only", choices=STATES, help="that may report, are revoked, held, or silent"),
    )
    pages = (
        option("--sort", choices=sorted(SORTS), default="name", help="silent: longest first"),
        option("--page", type=whole_number, metavar="N", help="only this one, from 1 on"),
        option("--per-page", type=whole_number, default=PER_PAGE, metavar="N", help="(50)"),
    )
    below.question(list_, lists.DevicesAnswer, *chosen, *pages, ZONE)
    device = option("--device", required=True, help="its name")
    below.question(show, DeviceAnswer, device, ZONE)
    file = option("file", type=Path, nargs="?", help="standard output unless given")
    below.question(export, None, file, form, *chosen)
    below.question(groups, lists.GroupsAnswer)
