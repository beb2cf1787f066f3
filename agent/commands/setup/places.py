"""Where a setup writes, and for whom: new files alone, and those of the service are its own."""

import argparse
import os
from pathlib import Path

from agent.commands.setup.talk import SetupError

SYSTEM = Path("/etc/edge-ldp")
SYSTEM_STATE = Path("/var/lib/edge-ldp")


def is_systems(path: Path) -> bool:
    """Say whether a file, also one named from there, is the service's."""
    return path.absolute().parent == SYSTEM


def state_place(args: argparse.Namespace, device: str) -> str:
    """Return where the state file goes: as asked, the system's place, or beside the file."""
    if args.state:
        return str(Path(args.state).absolute())
    where = SYSTEM_STATE if is_systems(args.config) else args.config.parent
    return str(where.absolute() / f"{device}.db")


def files_of(config: Path) -> tuple[Path, ...]:
    """Return all that a setup may write."""
    return config, beside(config, ".password"), beside(config, ".ca.pem"), token_file(config)


def token_file(config: Path) -> Path:
    """Return where the token of a dongle goes that wants one."""
    return beside(config, ".meter-token")


def beside(config: Path, ending: str) -> Path:
    """Return the file of the same name with another ending."""
    return config.with_name(config.stem + ending)


def named(config: Path, ending: str) -> str:
    """Return its full name, as a configuration has it."""
    return str(beside(config, ending).absolute())


def write_new(path: Path, text: str, mode: int) -> None:
    """Write a file that was not there before, for whom the service runs as."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with os.fdopen(handle, "w") as file:
            os.fchmod(file.fileno(), mode)
            file.write(text)
        _give(path)
    except OSError as exc:
        remedy = "name a file that this user can write: -c"
        raise SetupError(f"{path}: {exc.strerror}; {remedy}") from exc


def _give(path: Path) -> None:
    """Let the service read what root writes for it: its state directory says who it is."""
    if os.geteuid() == 0 and is_systems(path) and SYSTEM_STATE.is_dir():
        owner = SYSTEM_STATE.stat()
        os.chown(path, owner.st_uid, owner.st_gid)
