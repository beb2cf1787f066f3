"""`edge-ldp aggregator setup DIR`: all the files of a new fleet, which belong together."""

from __future__ import annotations

import getpass
import os
import pwd
import shutil
import socket
import sys
import time
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from aggregator.answers.fleet.changes import WrittenFleet
from aggregator.answers.fleet.check_view import check_answer
from aggregator.answers.local_time import offset_s
from aggregator.commands.asking import Shown
from aggregator.commands.common import order, warn
from aggregator.config import extra, load_config, parse_config
from aggregator.enrolment import texts as written
from aggregator.enrolment.logins import hashed, new_password, write_secret
from aggregator.errors import ConfigError
from aggregator.store.opening import open_store
from edge_ldp.arguments import epsilon_given, port_number, taken_as, whole_number
from edge_ldp.extras import pip_install
from edge_ldp.protocol.messages import check_name
from edge_ldp.service.zones import zone_of

if TYPE_CHECKING:
    import argparse

    from aggregator.commands.asking import Commands
    from aggregator.enrolment.authority import Certificates

BROKER_USER = "mosquitto"  # of Debian's package
PROGRAM = "mosquitto"
NEXT = "plan-next.key"
SERVERS = "/usr/sbin:/usr/local/sbin"  # where servers lie that a user's PATH may not name
DIRECTORY_MODE, OPEN_MODE = 0o755, 0o644
DESCRIPTION = """\
Write all that a new fleet needs into DIR, a directory that is not there yet: the configuration of
the aggregator, that of the broker with its access list, passwords and certificates, and a key that
plans are signed with; then say what to start. Without --host only this machine reaches the broker.
--gas: sums of homes, too, each of whose owners has to agree to it by name.
--wanted: totals are told best by sums that homes make, hours and densities by reports of single
values: `edge-ldp forecast` says how well, and what a home gives away.
"""
OPTIONS = {  # by which a key is written
    "query.zone": "--zone",
    "devices.host": "--host",
    "streams[0].epsilon": "--epsilon",
    "streams[0].ceiling": "--ceiling",
    "streams[0].survey_size": "--ceiling",
    "streams[0].slot_seconds": "--slot-seconds",
    "streams[0].home_sums": "--slot-seconds",
}


def setup(args: argparse.Namespace) -> Shown:
    """Write aggregator.toml and a broker's files for a new fleet, and say what to start."""
    place = args.directory.resolve()
    new = _checked(args, place)
    warn(check_answer(parse_config(written.aggregator_toml(new), "arguments")).warnings)
    try:
        (place / "broker").mkdir(parents=True, mode=DIRECTORY_MODE)
        files = _write_all(new, place, args)
    except OSError as exc:
        expected = f"expected a directory that can be made ({exc.strerror})"
        raise ConfigError(str(place), "DIR", expected) from exc
    view = WrittenFleet(directory=str(place), files=files, commands=_next(new, place))
    return Shown(view, lambda: _text(new, view))


def _checked(args: argparse.Namespace, place: Path) -> written.NewFleet:
    """Return what is wanted, all of it tried before anything is written; raises ConfigError."""
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise ConfigError(str(place), "DIR", "expected a directory that is not there yet, or empty")
    if args.rehearsal and args.host is not None:
        raise ConfigError("arguments", "--rehearsal", "expected no --host: it is for this machine")
    if args.gas and written.GAS_SLOT_S % args.slot_seconds:
        expected = f"expected --slot-seconds of which {written.GAS_SLOT_S} is a multiple"
        raise ConfigError("arguments", "--gas", expected)
    if not str(place).isprintable() or " " in str(place):
        raise ConfigError(str(place), "DIR", "expected a path without spaces: the broker reads it")
    _must_be_entered(place)
    now_s = time.time()
    clock = None
    if args.rehearsal:
        clock = (
            float(int(now_s) // written.DAY_S * written.DAY_S),
            now_s,
            written.DAY_S / args.day,
        )
    new = written.NewFleet(
        directory=str(place),
        fleet=args.fleet,
        host=args.host,
        port=args.port,
        tls_port=args.tls_port,
        zone=args.zone,
        epsilon=str(args.epsilon),
        mechanism="tuned",
        ceiling=args.ceiling,
        slot_seconds=args.slot_seconds,
        wanted=args.wanted or _asked(args),
        day_s=_day_s(args.zone, args.slot_seconds, int(now_s)),
        is_signed=not args.rehearsal and _can_sign(),
        next_key=None,
        threshold=args.threshold,
        gas=args.gas,
        clock=clock,
        user=_broker_user(),
    )
    if args.host is not None:
        _certificates(new)  # cannot be made: say so before anything is written
    new = _with_mechanism(new)
    _must_be_free("--port", new.port)
    if new.host is not None:
        _must_be_free("--tls-port", new.tls_port)
    return new


def _day_s(zone: str, slot_seconds: int, now_s: int) -> int:
    """Return how long after midnight UTC a day begins in a zone in winter, 0 where no slot does."""
    try:
        found = zone_of(zone)
    except ValueError:  # told with the rest of the file
        return 0
    ahead_s = min(offset_s(found, at_s) for at_s in (now_s, now_s + 182 * written.DAY_S))
    return 0 if ahead_s % max(1, slot_seconds) else -ahead_s % written.DAY_S


def _asked(args: argparse.Namespace) -> str:
    """Return what is wanted, of whoever sits there; the first where nobody does."""
    usual, *_ = written.WANTED
    while not args.json and sys.stdin is not None and sys.stdin.isatty():
        sys.stderr.write(f"what is wanted most: {', '.join(written.WANTED)} [{usual}] ")
        sys.stderr.flush()
        line = sys.stdin.readline()
        if (told := line.strip() or usual) in written.WANTED:
            return told
    return usual


def _must_be_free(option: str, port: int) -> None:
    """Raise ConfigError for a port that something listens on: Debian starts a broker by itself."""
    with socket.socket() as sock:
        if sock.connect_ex(("127.0.0.1", port)) == 0:
            expected = (
                f"expected a port that is free: something listens on {port} (another broker?)"
            )
            raise ConfigError("arguments", option, expected)


def _must_be_entered(place: Path) -> None:
    """Raise ConfigError for a place that the broker's user could not enter."""
    if _broker_user() in ("root", getpass.getuser()):
        return
    for parent in place.parents:
        if parent.exists() and not parent.stat().st_mode & 0o001:
            expected = f"expected a place that {_broker_user()} may enter, as /srv/fleet: {parent}"
            raise ConfigError(str(place), "DIR", f"{expected} is closed to others")


def _with_mechanism(new: written.NewFleet) -> written.NewFleet:
    """Return it with a ready table, or the hybrid for an ε that has none; raises ConfigError."""
    for mechanism in ("tuned", "hybrid"):
        new = replace(new, mechanism=mechanism)
        try:
            parse_config(written.aggregator_toml(new), "arguments")
            break
        except ConfigError as exc:
            if mechanism == "hybrid" or exc.others or exc.key != "streams[0].epsilon":
                raise _of_option(exc) from exc
    return new


def _of_option(exc: ConfigError) -> ConfigError:
    """Return what is wrong of the option that a key is written by: there is no file yet."""
    option = OPTIONS.get(exc.key)
    if option is None or exc.others:
        return exc
    key = exc.key.rpartition(".")[2]
    is_named = option == f"--{key.replace('_', '-')}"
    return ConfigError("arguments", option, exc.expected if is_named else f"{key}: {exc.expected}")


def _write_all(new: written.NewFleet, place: Path, args: argparse.Namespace) -> list[str]:
    broker = place / "broker"
    (broker / "data").mkdir(mode=0o700)
    logins = {written.AGGREGATOR: new_password()}
    if new.clock is not None:
        logins[written.SIMULATOR] = new_password()
    secrets = {f"{name}.password": f"{password}\n" for name, password in logins.items()}
    secrets["broker/passwords"] = "".join(
        f"{name}:{hashed(password)}\n" for name, password in logins.items()
    )
    if new.is_signed:
        from aggregator.plans.keys import make_key  # noqa: PLC0415 (an extra)

        make_key(place / "plan.key")
        new = replace(new, next_key=make_key(place / NEXT).hex())
    texts = {
        "aggregator.toml": written.aggregator_toml(new),
        "broker/mosquitto.conf": written.mosquitto_conf(new),
        "broker/acl": written.access_list(new),
    }
    if new.host is not None:
        made = _certificates(new)
        texts |= {"broker/ca.pem": made.ca, "broker/broker.pem": made.cert}
        secrets |= {"broker/broker.key": made.key, "ca.key": made.ca_key}
    for name, text in (secrets | texts).items():
        write_secret(place / name, text)
        if name in texts:
            (place / name).chmod(OPEN_MODE)
    config = load_config(place / "aggregator.toml")
    with closing(open_store(config, str(place))) as store:  # devices can be invited before it runs
        store.add_audit([order(args, config)])
    if os.geteuid() == 0:
        found = pwd.getpwnam(new.user)
        for path in (broker, *broker.rglob("*")):
            os.chown(path, found.pw_uid, found.pw_gid)
    return sorted(str(path.relative_to(place)) for path in place.rglob("*") if path.is_file())


def _next(new: written.NewFleet, place: Path) -> list[str]:
    program = shutil.which(PROGRAM, path=f"{os.environ.get('PATH', '')}:{SERVERS}") or PROGRAM
    config = place / "aggregator.toml"
    commands = [
        f"{program} -d -c {place}/broker/mosquitto.conf",
        f"edge-ldp aggregator run -c {config}",
    ]
    if new.clock is not None:
        commands.append(f"edge-ldp simulate homes --of {config}")
    else:
        commands.append(f"edge-ldp aggregator devices invite -c {config} home-0001 home-0002")
    return [*commands, f"edge-ldp aggregator query -c {config}"]


def _text(new: written.NewFleet, view: WrittenFleet) -> str:
    lines = [f"written to {view.directory}: {', '.join(view.files)}", ""]
    if new.host is None and new.clock is None:
        lines += ["only this machine can reach the broker; for others: setup --host NAME", ""]
    away = [file for file in ("ca.key", NEXT) if file in view.files]
    if away:
        lines += [f"keep away from this machine, for `renew`: {' and '.join(away)}", ""]
    if not new.is_signed and new.clock is None:
        lines += [f"plans are not signed; before setup: {pip_install('edge-ldp[sign]')}", ""]
    what = ["the broker, in the background", "the aggregator, until it is stopped"]
    what.append("50 homes of a simulated fleet" if new.clock else "a login for each device")
    lines.append("next:")
    for command, words in zip(view.commands, [*what, "what they used"], strict=True):
        lines += [f"  # {words}", f"  {command}"]
    return "\n".join([*lines, ""])


def _certificates(new: written.NewFleet) -> Certificates:
    with extra("the extra `sign` beside it", "edge-ldp[sign]", "arguments", "--host"):
        from aggregator.enrolment.authority import make_certificates  # noqa: PLC0415
    return make_certificates(new.fleet, str(new.host))


def _can_sign() -> bool:
    try:
        import aggregator.plans.keys  # noqa: F401, PLC0415 (an extra)
    except ImportError:
        return False
    return True


def _broker_user() -> str:
    """Return whose rights the broker takes: ours, or as root those of its own user if there is."""
    if os.geteuid() != 0:
        return getpass.getuser()
    try:
        return pwd.getpwnam(BROKER_USER).pw_name
    except KeyError:
        return "root"


_name = taken_as(
    "1 to 63 of a-z 0-9 _ -, starting with a letter or digit", partial(check_name, "fleet")
)
_day = taken_as("seconds, above 0 and at most 86400", float, lambda s: 0 < s <= written.DAY_S)


def add(commands: Commands) -> None:
    """Add the command's options."""
    parser = commands.add(setup, WrittenFleet, has_config=False)
    parser.description = DESCRIPTION
    add = parser.add_argument
    add("directory", metavar="DIR", type=Path, help="for all files; not there yet, or empty")
    add("--fleet", type=_name, default="homes", help="its name (homes)")
    add("--host", help="how devices reach the broker: TLS, with certificates made here")
    add("--port", type=port_number, default=1883, help="of the broker on this machine (1883)")
    add("--tls-port", type=port_number, default=8883, help="of the broker for devices (8883)")
    add("--zone", default="UTC", help='whose time people read, as "Europe/Berlin" (UTC)')
    add("--epsilon", type=epsilon_given, default="1", metavar="E", help="of one report (1)")
    add(
        "--ceiling",
        type=whole_number,
        default=43_470,
        metavar="W",
        help="largest possible load (43470)",
    )
    add(
        "--slot-seconds", type=whole_number, default=900, metavar="S", help="length of a slot (900)"
    )
    least = "whose rule of how many homes a figure needs: " + ", ".join(
        f"{name} {many}" for name, (many, _) in written.THRESHOLDS.items()
    )
    add("--threshold", choices=tuple(written.THRESHOLDS), default="usual", help=least)
    wanted = "most: sums of homes, or reports alone (total, or as asked)"
    add("--wanted", choices=tuple(written.WANTED), help=wanted)
    gas = "also a week's gas, of homes that show it (6000 dm³ in an hour at most)"
    add("--gas", type=whole_number, nargs="?", default=0, const=6000, metavar="DM3", help=gas)
    add("--rehearsal", action="store_true", help="for simulated homes, on a clock that runs fast")
    add("--day", type=_day, default=5.0, metavar="S", help="real seconds of a rehearsal's day (5)")
