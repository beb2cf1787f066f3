"""`devices invite`: a login and an invitation for each device; and its end, when it is revoked."""

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import wrap

from aggregator.answers.fleet.changes import EndedInvitations, InvitedDevice, InvitedDevices
from aggregator.answers.units import clock_text
from aggregator.commands.asking import Asked, Commands, Shown, option
from aggregator.commands.common import names, read_text
from aggregator.commands.member_files import read_members
from aggregator.config import AggregatorConfig, ConfigError, DevicesTable, extra
from aggregator.counting.members import Listed, Wish, named_wishes
from aggregator.enrolment import invitations
from aggregator.enrolment.logins import (
    changing_logins,
    hashed,
    new_password,
    tell_broker,
    write_secret,
)
from aggregator.enrolment.texts import AGGREGATOR, SIMULATOR
from aggregator.errors import MemberError
from aggregator.plans.signing import read_seal
from aggregator.store.administration.registry import apply, listed
from aggregator.store.contract import Session
from edge_ldp.arguments import whole_number
from edge_ldp.protocol.invitation import Invitation

DAY_S = 86_400
LOST = (
    "heard before: {}. A device that takes such an invitation anew begins with a silent window and "
    "a ledger at 0; what the one before kept unsent is lost, and so is a period that it was adding "
    "up, unless its state moves along: edge-ldp agent setup --from"
)
RELOAD = (
    "tell the broker to read its passwords again: start it, or where it runs as a service: "
    "systemctl reload mosquitto"
)


def invite(asked: Asked, session: Session) -> Shown:
    """Give devices a login and an invitation each, a file for `edge-ldp agent setup`."""
    args, now_s = asked.args, asked.now_s
    wishes, table = _wishes(args), _devices_table(asked)
    ca, keys = _authority(args, table), _plan_keys(asked)
    expires_s = None if args.days is None else now_s + args.days * DAY_S
    known = {one.device: one for one in listed(session)}
    groups = {wish.device: _group(wish, known) for wish in wishes}
    with invitations.changing_invited(Path(table.passwords_file)) as (logins, until_s):
        _refuse_known(wishes, logins, again=args.again)
        passwords = {wish.device: new_password() for wish in wishes}
        logins.update({device: hashed(word) for device, word in passwords.items()})
        made = [
            replace(
                invitations.invitation(asked.config, table, device, word, ca=ca, plan_keys=keys),
                expires_s=expires_s,
                once=args.once,
                group=groups[device],
            )
            for device, word in passwords.items()
        ]
        files = _write(args, made)
        for device in passwords:
            until_s.pop(device, None)
            if expires_s is not None:
                until_s[device] = expires_s
    apply(session, wishes, now_s)
    pairs = zip(passwords, files, strict=True)
    view = InvitedDevices(
        directory=str(_place(args)),
        devices=[InvitedDevice(device=device, file=file) for device, file in pairs],
        broker_told=tell_broker(table.pid_file),
        expires_s=expires_s,
        replaced=sorted(_heard(known.values()) & set(passwords)) if args.again else [],
    )
    return Shown(view, lambda: _text(view))


def expire(asked: Asked, session: Session) -> Shown:
    """End the logins of invitations that ran out before their device was heard."""
    heard, now_s, table = _heard(listed(session)), asked.now_s, _devices_table(asked)
    with invitations.changing_invited(Path(table.passwords_file)) as (logins, left):
        used = sorted(left.keys() & heard)
        ended = sorted(d for d, at_s in left.items() if at_s < now_s and d not in heard)
        for device in ended:
            logins.pop(device, None)
        for device in (*used, *ended):
            del left[device]
    apply(session, named_wishes(ended, revoked=True), now_s)
    is_told = bool(ended) and tell_broker(table.pid_file)
    view = EndedInvitations(ended=ended, used=used, open=left, broker_told=is_told)
    lines = [f"{len(ended)} ran out unused, and their logins ended: {names(ended)}"] * bool(ended)
    lines += [f"{len(used)} were used: {names(used)}"] * bool(used)
    lines += [f"{device}: good until {clock_text(at_s)}" for device, at_s in sorted(left.items())]
    lines += [RELOAD] * (bool(ended) and not is_told)
    return Shown(view, lambda: "\n".join([*(lines or ["no invitation runs out"]), ""]))


def _heard(devices: Iterable[Listed]) -> set[str]:
    """Return the devices of which any status came."""
    return {one.device for one in devices if one.state != "unknown"}


def _group(wish: Wish, known: Mapping[str, Listed]) -> str:
    """Return the group that a device will be in: as wished, else as it is."""
    at = known.get(wish.device)
    return wish.group or (at.group if at else "")


def end_logins(config: AggregatorConfig, devices: Iterable[str]) -> tuple[list[str], bool]:
    """Take devices' logins from the broker; return whose there were, and whether it was told."""
    table = config.devices
    if table is None:
        return [], False
    with changing_logins(Path(table.passwords_file)) as logins:
        ended = [device for device in devices if logins.pop(device, None) is not None]
    return ended, bool(ended) and tell_broker(table.pid_file)


def move_login(config: AggregatorConfig, old: str, new: str) -> tuple[bool, bool]:
    """Give a device's login its new name; return whether there was one, and the broker was told."""
    table = config.devices
    if table is None:
        return False, False
    with invitations.changing_invited(Path(table.passwords_file)) as (logins, until_s):
        if moved := old in logins:
            logins[new] = logins.pop(old)
            if old in until_s:
                until_s[new] = until_s.pop(old)
    return moved, moved and tell_broker(table.pid_file)


def _wishes(args: argparse.Namespace) -> list[Wish]:
    if bool(args.device) == (args.csv is not None):
        raise ConfigError("arguments", "NAME", "expected names of devices, or --csv FILE")
    if args.csv is None:
        wishes = named_wishes(args.device, enrols=True, group=args.group, revoked=False)
    else:
        found = read_members(read_text(args.csv), "csv", str(args.csv))
        wishes = [
            Wish(one.device, one.where, enrols=True, group=one.group or args.group, revoked=False)
            for one in found
        ]
    for wish in wishes:
        if wish.device in (AGGREGATOR, SIMULATOR):
            raise MemberError(wish.where, "is a login of the fleet itself", "name it otherwise")
    return wishes


def _refuse_known(wishes: Sequence[Wish], logins: dict[str, str], *, again: bool) -> None:
    known = [wish.device for wish in wishes if wish.device in logins]
    if known and not again:
        where = f"device {names(known)}"
        remedy = "--again gives a new password, which ends the one in use"
        raise MemberError(where, "has a login already", remedy)


def _devices_table(asked: Asked) -> DevicesTable:
    if asked.config.devices is None:
        expected = "expected a [devices] with host and passwords_file (config/aggregator.toml)"
        raise ConfigError(str(asked.args.config), "devices", expected)
    return asked.config.devices


def _authority(args: argparse.Namespace, table: DevicesTable) -> str | None:
    if table.ca_file is None:
        return None
    what = f" of certificates, {table.ca_file}"
    return read_text(Path(table.ca_file), str(args.config), "devices.ca_file", what)


def _plan_keys(asked: Asked) -> tuple[str, ...]:
    config = asked.config
    signer, following = read_seal(config, str(asked.args.config)).signer, config.plans.next_key
    found = () if signer is None else (signer.public.hex(), following)
    return tuple(dict.fromkeys(key for key in found if key is not None))


def _place(args: argparse.Namespace) -> Path:
    return Path(args.to or args.config.resolve().parent / "invitations")


def _write(args: argparse.Namespace, made: Sequence[Invitation]) -> list[str]:
    place = _place(args)
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        files = []
        for one in made:
            file = place / f"{one.device}{invitations.ENDING}"
            write_secret(file, one.to_json().decode() + "\n")
            files.append(str(file))
            if args.qr is not None:
                _write_qr(file.with_suffix(f".{args.qr}"), one, args.qr)
        if args.texts is not None:
            lines = [f"{one.device},{one.to_text()}" for one in made]
            write_secret(args.texts, "\n".join(["device,text", *lines, ""]))
    except OSError as exc:
        expected = f"expected a place that can be written to ({exc.strerror})"
        raise ConfigError(str(exc.filename or place), "--to", expected) from exc
    return files


def _write_qr(file: Path, made: Invitation, form: invitations.QrForm) -> None:
    text = made.to_text()
    if len(text) > invitations.MOST_IN_QR:
        most = f"expected an invitation of {invitations.MOST_IN_QR} characters"
        expected = f"{most}, not {len(text)}: a shorter ca_file"
        raise ConfigError("arguments", "--qr", expected)
    with extra("the extra `qr` beside it", "edge-ldp-aggregator[qr]", "arguments", "--qr"):
        picture = invitations.qr_picture(text, form)
    write_secret(file, picture)


def _text(view: InvitedDevices) -> str:
    devices = [one.device for one in view.devices]
    lines = [
        f"{len(devices)} {'device' if len(devices) == 1 else 'devices'} invited: {names(devices)}",
        f"one file each in {view.directory}: a secret; bring it to the device, then there:",
        f"  edge-ldp agent setup --invitation {devices[0]}{invitations.ENDING}",
    ]
    if view.expires_s is not None:
        until = clock_text(view.expires_s)
        lines.append(f"good until {until} UTC; `devices expire` then ends what nobody used")
    if view.replaced:
        lines += wrap(LOST.format(names(view.replaced)), 90)
    if not view.broker_told:
        lines.append(RELOAD)
    return "\n".join([*lines, ""])


def add(below: Commands) -> None:
    """Add the commands' options."""
    known = "also those that have a login: a new one"
    text = "setup refuses a second device under the name, unless it says --take-over"
    invited = (
        option("device", nargs="*", metavar="NAME", help="of a device"),
        option("--csv", type=Path, metavar="FILE", help="names, as `devices import` reads them"),
        option("--group", help="to put them into; their tap and page show its month"),
        option("--again", action="store_true", help=known),
        option("--to", type=Path, metavar="DIR", help="for the files (beside the TOML)"),
        option("--days", type=whole_number, metavar="N", help="they are good for so long"),
        option("--once", action="store_true", help=text),
        option("--qr", choices=["svg", "png"], help="also a picture of each, for a camera"),
        option("--texts", type=Path, metavar="FILE", help="also a CSV of texts for QR codes"),
    )
    below.order(invite, InvitedDevices, *invited)
    below.order(expire, EndedInvitations)
