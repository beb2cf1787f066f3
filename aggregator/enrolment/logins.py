"""The broker's passwords file: who may log in, as Mosquitto reads it.

A line is `name:$7$iterations$salt$hash` (PBKDF2 with SHA-512, both base64), as `mosquitto_passwd`
writes it. Passwords are made here, of 144 random bits, so iterations add nothing to them.
"""

import fcntl
import os
import signal
import tempfile
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import pbkdf2_hmac
from pathlib import Path

from aggregator.config import ConfigError

PASSWORD_BYTES = 18
ITERATIONS = 101  # mosquitto_passwd's own
SALT_BYTES, HASH_BYTES = 12, 64
MODE = 0o600
BROKER = "mosquitto"


def new_password() -> str:
    """Return a password that nobody guesses, of characters that fit any file."""
    return urlsafe_b64encode(os.urandom(PASSWORD_BYTES)).decode()


def hashed(password: str, salt: bytes | None = None) -> str:
    """Return what the passwords file holds of a password."""
    salt = os.urandom(SALT_BYTES) if salt is None else salt
    found = pbkdf2_hmac("sha512", password.encode(), salt, ITERATIONS, HASH_BYTES)
    return f"$7${ITERATIONS}${b64encode(salt).decode()}${b64encode(found).decode()}"


@contextmanager
def changing_logins(path: Path) -> Iterator[dict[str, str]]:
    """Give the logins of a file, name to hash; what is changed in them is written at the end.

    One process at a time; a reader sees the old file or the new one. Raises ConfigError.
    """
    try:
        with Path(f"{path}.lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            lines = path.read_text().splitlines() if path.exists() else []
            parts = (line.partition(":") for line in lines if line.strip())
            before = {name: found for name, _, found in parts}
            logins = dict(before)
            yield logins
            if logins != before:
                _write(path, logins)
    except OSError as exc:
        expected = f"expected a file that can be read and replaced ({exc.strerror})"
        raise ConfigError(str(path), "devices.passwords_file", expected) from exc


def tell_broker(pid_file: str | None) -> bool:
    """Tell the broker to read its passwords again; say whether that was possible.

    Only a process that is a broker is told: a number in an old file may be another's by now.
    """
    if pid_file is None:
        return False
    with suppress(OSError, ValueError):
        pid = int(Path(pid_file).read_text())
        if pid > 0 and Path(f"/proc/{pid}/comm").read_text().strip() == BROKER:
            os.kill(pid, signal.SIGHUP)
            return True
    return False


def write_secret(path: Path, text: str | bytes, *, like: Path | None = None) -> None:
    """Write a file that only its owner may read, whole or not at all; owner and mode as `like`."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode() if isinstance(text, str) else text)
            file.flush()
            os.fchmod(file.fileno(), MODE)
            if like is not None and like.exists():
                found = like.stat()
                os.fchmod(file.fileno(), found.st_mode & 0o777)
                if os.geteuid() == 0:
                    os.fchown(file.fileno(), found.st_uid, found.st_gid)
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _write(path: Path, logins: Mapping[str, str]) -> None:
    lines = [f"{name}:{found}\n" for name, found in logins.items()]
    write_secret(path, "".join(lines), like=path)
