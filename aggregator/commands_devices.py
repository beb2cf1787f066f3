"""`edge-ldp aggregator devices …`: who may report, in which group, and whose counts are held."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aggregator.commands import (
    EXIT_NOTHING,
    add_command,
    changing,
    fail,
    find_group,
    make_clock,
    names,
    reading,
    refuse_own,
)
from aggregator.commands import show as _show
from aggregator.config import ConfigError
from aggregator.member_files import FORMATS, read_members, write_members
from aggregator.members import Listed, members_text, members_view, named_wishes
from aggregator.shell.archive import replace_file
from aggregator.shell.registry import apply, listed

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from aggregator.members import Wish
    from aggregator.shell.store import Reader

CHANGED = "command; devices: how many were named; changed[]: those of which something changed"
STATES = ("enrolled", "revoked", "held")


def list_(args: argparse.Namespace) -> int:
    """List devices: group, last status, when enrolled, revoked, put into quarantine."""
    with reading(args) as (config, reader):
        rows = _chosen(args, reader)
    view = members_view(config.fleet, rows)
    _show(args, view, lambda: members_text(view))
    return 0 if rows else fail(f"{config.fleet}: no device that this asks for", EXIT_NOTHING)


def enrol(args: argparse.Namespace) -> int:
    """Give devices a row, so that they may report; --group puts them into a group."""
    return _change(args, named_wishes(args.device, enrols=True, group=args.group))


def revoke(args: argparse.Namespace) -> int:
    """Refuse what devices send from now on; what they sent stays counted."""
    return _change(args, named_wishes(args.device, revoked=True))


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
    name = str(args.file)
    try:
        text = args.file.read_text()
    except (OSError, UnicodeDecodeError) as exc:
        reason = getattr(exc, "strerror", None) or "not UTF-8"
        raise ConfigError(name, "file", f"expected a readable file ({reason})") from exc
    return _change(args, read_members(text, _form(args), name))


def export(args: argparse.Namespace) -> int:
    """Write devices as `import` reads them: device, group, revoked."""
    with reading(args) as (config, reader):
        if args.file is not None:
            refuse_own(args, config, args.file)
        text = write_members(_chosen(args, reader), _form(args))
    if args.file is None:
        sys.stdout.write(text)
        return 0
    try:
        replace_file(args.file, text.encode())
    except OSError as exc:
        expected = f"expected a file that can be written ({exc.strerror})"
        raise ConfigError(str(args.file), "file", expected) from exc
    return 0


def groups(args: argparse.Namespace) -> int:
    """List groups and how many devices are in each; one that is empty keeps its counts."""
    with reading(args) as (config, reader):
        found = [row.group for row in listed(reader)]
        view: dict[str, Any] = {
            "fleet": config.fleet,
            "groups": [
                {"group": name, "devices": found.count(name)} for name in sorted(reader.groups())
            ],
        }
    lines = [f"{one['group'] or '-'}  {one['devices']} devices\n" for one in view["groups"]]
    _show(args, view, lambda: "".join(lines))
    return 0


def _change(args: argparse.Namespace, wishes: Sequence[Wish]) -> int:
    with changing(args) as (config, session):
        changed = apply(session, wishes, int(make_clock(config).now()))
    if args.json:
        view = {"command": args.name, "devices": len(wishes), "changed": changed}
        sys.stdout.write(json.dumps(view) + "\n")
        return 0
    told = f": {names(changed)}" if changed else ""
    sys.stdout.write(f"{args.name}: {len(changed)} of {len(wishes)} devices changed{told}\n")
    for line in _notes(args, config, changed):
        sys.stdout.write(line)
    return 0


def _notes(args: argparse.Namespace, config: Any, changed: Sequence[str]) -> list[str]:
    """Return what an operator might not expect."""
    mode = config.intake.enrolment
    unlisted = [] if isinstance(mode, str) else sorted(set(changed) - set(mode))
    if unlisted and args.name in ("enrol", "import", "reinstate"):
        return [f"not heard: intake.enrolment lists other devices, without {names(unlisted)}\n"]
    return []


def _chosen(args: argparse.Namespace, reader: Reader) -> list[Listed]:
    find_group(args, reader)
    tests = {
        "enrolled": lambda row: row.revoked_s is None,
        "revoked": lambda row: row.revoked_s is not None,
        "held": lambda row: row.held_s is not None,
    }
    return [
        row
        for row in listed(reader)
        if args.group in (None, row.group) and (args.only is None or tests[args.only](row))
    ]


def _form(args: argparse.Namespace) -> str:
    """Return the file's format: as said, else by its name."""
    form = args.format or ("csv" if args.file is None else args.file.suffix.lstrip("."))
    if form not in FORMATS:
        raise ConfigError(str(args.file), "--format", "expected csv or json")
    return str(form)


def add(commands: Any) -> None:
    """Add the commands' options."""
    parser = commands.add_parser("devices", help=__doc__.partition(": ")[2])
    below = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in (enrol, revoke, reinstate, group, quarantine, release):
        sub = add_command(below, command, CHANGED)
        sub.add_argument("device", nargs="+", help="its name")
        sub.set_defaults(name=command.__name__)
        if command is enrol:
            sub.add_argument("--group", help="the group to put them into")
        if command is group:
            sub.add_argument("--to", required=True, metavar="GROUP", help='its name; "" for none')
    sub = add_command(below, import_, CHANGED)
    sub.set_defaults(name="import")
    sub.add_argument("file", type=Path, help="CSV or JSON")
    form = f"{' or '.join(FORMATS)}; by the file's name unless given"
    sub.add_argument("--format", choices=FORMATS, help=form)
    sub = add_command(below, list_, members_view.__doc__)
    _add_choice(sub)
    sub = add_command(below, export)
    sub.add_argument("file", type=Path, nargs="?", help="standard output unless given")
    sub.add_argument("--format", choices=FORMATS, help=form)
    _add_choice(sub)
    add_command(below, groups, "fleet; groups[]: group, devices (how many are in it)")


def _add_choice(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--group", help='of one group; "" for those in none')
    parser.add_argument("--only", choices=STATES, help="that may report, are revoked, or held")
