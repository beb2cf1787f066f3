"""`edge-ldp aggregator devices …`: who may report, in which group, and whose counts are held."""

import argparse
import sys
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
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
from aggregator.archive.directory import replace_file
from aggregator.commands import common, invite
from aggregator.commands.asking import Commands, Shown, add_command, add_question
from aggregator.commands.invite import RELOAD, end_logins, move_login
from aggregator.commands.member_files import FORMATS, read_members, write_members
from aggregator.config import AggregatorConfig, ConfigError
from aggregator.counting.members import Listed, Wish, named_wishes
from aggregator.store.administration.erasure import erase as erase_devices
from aggregator.store.administration.erasure import erased_devices
from aggregator.store.administration.registry import apply, listed
from aggregator.store.administration.renaming import rename as rename_device
from aggregator.store.contract import Reader
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


def list_(args: argparse.Namespace, config: AggregatorConfig, reader: Reader) -> Shown:
    """List devices: group, last status, when enrolled, revoked, put into quarantine."""
    zone, now_s = common.find_zone(args, config), int(common.make_clock(config).now())
    old_s, least = config.silent_before(now_s), config.query.min_devices
    rows = sorted(_chosen(args, reader, old_s), key=SORTS[args.sort])
    shown, total = lists.page_of(rows, args.page, args.per_page), len(rows)
    view = lists.devices_answer(
        config.fleet, shown, total=total, now_s=now_s, old_s=old_s, least=least
    )
    told = Shown(view, lambda: lists.devices_text(view, zone))
    nobody = f"{config.fleet}: no device that this asks for"
    return told if rows else told.but(common.EXIT_NOTHING, nobody)


def show(args: argparse.Namespace, config: AggregatorConfig, reader: Reader) -> Shown:
    """Show a device: how it is, its last 30 days, and which commands named it in them."""
    zone, now_s = common.find_zone(args, config), int(common.make_clock(config).now())
    view = read_device(reader, config, args.device, now_s, zone)
    if view is None:
        return Shown(
            None, code=common.EXIT_NOTHING, reason=f"{config.fleet}: no device {args.device}"
        )
    return Shown(view, lambda: device_text(view, zone))


def enrol(args: argparse.Namespace) -> int:
    """Give devices a row, so that they may report; --group puts them into a group."""
    return _change(args, named_wishes(args.device, enrols=True, group=args.group))


def revoke(args: argparse.Namespace) -> int:
    """Refuse what devices send from now on; what they sent stays counted."""
    return _change(args, named_wishes(args.device, revoked=True), ends_logins=True)


def reinstate(args: argparse.Namespace) -> int:
    """Let devices that were revoked report again."""
    return _change(args, named_wishes(args.device, revoked=False))


def group(args: argparse.Namespace) -> int:
    """Put devices into a group, a new one if need be; their counts belong to it from now on."""
    return _change(args, named_wishes(args.device, group=args.to))


def quarantine(args: argparse.Namespace) -> int:
    """Keep apart what devices count from now on, until they are released; nothing is deleted."""
    return _change(args, named_wishes(args.device, held=True))


def release(args: argparse.Namespace) -> int:
    """End the quarantine of devices: what was kept apart joins the counts, exactly."""
    return _change(args, named_wishes(args.device, held=False))


def import_(args: argparse.Namespace) -> int:
    """Enrol, group, revoke and reinstate as a file says: all of its devices, or none."""
    return _change(args, read_members(common.read_text(args.file), _form(args), str(args.file)))


def export(args: argparse.Namespace) -> int:
    """Write devices as `import` reads them: device, group, revoked."""
    with common.reading(args) as (config, reader):
        if args.file is not None:
            common.refuse_own(args, config, args.file)
        old_s = config.silent_before(int(common.make_clock(config).now()))
        text = write_members(_chosen(args, reader, old_s), _form(args))
    if args.file is None:
        sys.stdout.write(text)
        return 0
    try:
        replace_file(args.file, text.encode())
    except OSError as exc:
        expected = f"expected a file that can be written ({exc.strerror})"
        raise ConfigError(str(args.file), "file", expected) from exc
    return 0


def groups(_args: argparse.Namespace, config: AggregatorConfig, reader: Reader) -> Shown:
    """List groups and how many devices are in each; one that is empty keeps its counts."""
    view = lists.groups_answer(config.fleet, reader.groups(), listed(reader))
    return Shown(view, lambda: lists.groups_text(view))


def erase(args: argparse.Namespace) -> int:
    """Erase what is kept of devices alone, for ever; sums of many homes stay as they are."""
    wanted = [wish.device for wish in named_wishes(args.device)]
    if not args.yes:
        expected = "expected it: what is erased is gone for good, and its name cannot be used again"
        raise ConfigError("arguments", "--yes", expected)
    with common.changing(args) as (config, session):
        at_s = int(common.make_clock(config).now())
        found, is_overwritten = erase_devices(session, wanted, at_s, system_draw())
        archived = _erase_archived(config, session)
    ended, is_broker_told = end_logins(config, wanted)
    view = ErasedDevices(
        at_s=at_s,
        devices=[ErasedDevice(**one._asdict()) for one in found],
        logins_ended=ended,
        overwritten=is_overwritten,
        archived=archived,
    )
    return Shown(view, lambda: erased_text(view, told="" if is_broker_told else RELOAD)).show(args)


def _erase_archived(config: AggregatorConfig, reader: Reader) -> int | None:
    if config.archive is None:
        return None
    from aggregator.archive.files import compact, erase_archived  # noqa: PLC0415 (an extra)

    place, slots = Path(config.archive.path), {one.id: one.slot_seconds for one in config.streams}
    gone = erased_devices(reader.facts())
    compact(place, slots, reader.committed, erased=gone)
    return erase_archived(place, gone)


def rename(args: argparse.Namespace) -> int:
    """Let a device go on under another name; nothing is lost, and the old name is barred."""
    with common.changing(args) as (config, session):
        at_s = int(common.make_clock(config).now())
        is_new = rename_device(session, args.device, args.to, at_s)
    moved, is_told = move_login(config, args.device, args.to)
    view = RenamedDevice(device=args.device, to=args.to, changed=is_new, login_moved=moved)
    lines = [
        f"{view.device} {'is' if is_new else 'already was'} {view.to}, and its old name is barred",
        f'on the device, in agent.toml: id = "{view.to}", and the same username; then restart it:',
        "until then its reports are refused and wait there",
        *([RELOAD] if view.login_moved and not is_told else []),
    ]
    return Shown(view, lambda: "\n".join([*lines, ""])).show(args)


def _change(args: argparse.Namespace, wishes: Sequence[Wish], *, ends_logins: bool = False) -> int:
    with common.changing(args) as (config, session):
        changed = apply(session, wishes, int(common.make_clock(config).now()))
    gone = [wish.device for wish in wishes if wish.revoked]
    ended, is_broker_told = end_logins(config, gone if ends_logins or args.name == "import" else [])
    view = ChangedDevices(
        command=args.name, devices=len(wishes), changed=changed, logins_ended=ended
    )
    which = f": {common.names(changed)}" if changed else ""
    lines = [f"{args.name}: {len(changed)} of {len(wishes)} devices changed{which}\n"]
    if ended:
        logins = "1 login" if len(ended) == 1 else f"{len(ended)} logins"
        remedy = "" if is_broker_told else f"; {RELOAD}"
        lines.append(f"{logins} at the broker ended: {common.names(ended)}{remedy}\n")
    lines += _notes(args, config, changed)
    return Shown(view, lambda: "".join(lines)).show(args)


def _notes(args: argparse.Namespace, config: AggregatorConfig, changed: Sequence[str]) -> list[str]:
    """Return what an operator might not expect."""
    if args.name == "reinstate" and config.devices is not None and changed:
        return ["their logins ended when they were revoked: devices invite --again\n"]
    mode = config.intake.enrolment
    unlisted = [] if isinstance(mode, str) else sorted(set(changed) - set(mode))
    if unlisted and args.name in ("enrol", "import", "reinstate"):
        return [
            f"not heard: intake.enrolment lists other devices, without {common.names(unlisted)}\n"
        ]
    return []


def _chosen(args: argparse.Namespace, reader: Reader, old_s: int) -> list[Listed]:
    common.find_group(args, reader)
    tests = {
        "enrolled": lambda row: row.revoked_s is None,
        "revoked": lambda row: row.revoked_s is not None,
        "held": lambda row: row.held_s is not None,
        "silent": lambda row: is_silent(row.state, row.seen_s, old_s),
    }
    return [
        row
        for row in listed(reader)
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
    parser = commands.add_parser("devices", help=__doc__.partition(": ")[2])
    below = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in (enrol, revoke, reinstate, group, quarantine, release):
        sub = add_command(below, command, ChangedDevices)
        sub.add_argument("device", nargs="+", help="its name")
        sub.set_defaults(name=command.__name__)
        if command is enrol:
            sub.add_argument("--group", help="the group to put them into")
        if command is group:
            sub.add_argument("--to", required=True, metavar="GROUP", help='its name; "" for none')
    sub = add_command(below, erase, ErasedDevices)
    sub.add_argument("device", nargs="+", help="its name")
    sub.add_argument("--yes", action="store_true", help="for ever")
    sub = add_command(below, rename, RenamedDevice)
    sub.add_argument("device", help="its name")
    sub.add_argument("to", metavar="NEW", help="one that no device ever had")
    invite.add(below)
    sub = add_command(below, import_, ChangedDevices)
    sub.set_defaults(name="import")
    sub.add_argument("file", type=Path, help="CSV or JSON")
    form = f"{' or '.join(FORMATS)}; by the file's name unless given"
    sub.add_argument("--format", choices=FORMATS, help=form)
    sub = add_question(below, list_, lists.DevicesAnswer)
    _add_choice(sub)
    sub.add_argument("--sort", choices=sorted(SORTS), default="name", help="silent: longest first")
    sub.add_argument("--page", type=whole_number, metavar="N", help="only this one, from 1 on")
    sub.add_argument("--per-page", type=whole_number, default=PER_PAGE, metavar="N", help="(50)")
    common.add_zone(sub)
    sub = add_question(below, show, DeviceAnswer)
    sub.add_argument("--device", required=True, help="its name")
    common.add_zone(sub)
    sub = add_command(below, export)
    sub.add_argument("file", type=Path, nargs="?", help="standard output unless given")
    sub.add_argument("--format", choices=FORMATS, help=form)
    _add_choice(sub)
    add_question(below, groups, lists.GroupsAnswer)


def _add_choice(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--group", help='of one group; "" for those in none')
    parser.add_argument("--filter", metavar="TEXT", help="in its name; * is anything")
    parser.add_argument(
        "--only", choices=STATES, help="that may report, are revoked, held, or silent"
    )
