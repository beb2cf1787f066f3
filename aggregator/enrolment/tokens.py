"""Tokens that let somebody look: kept as hashes, shown once, listed and revoked by name.

The file has a JSON object of names: sha256 of the token, when it was made (seconds UTC), and the
role, an operator's in files of before there were any. A token is 256 bits of the system's
randomness, so a plain hash of it tells nothing.
"""

import base64
import hashlib
import hmac
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

from msgspec import MsgspecError, Struct, to_builtins
from msgspec.json import decode

from aggregator.config import ConfigError
from aggregator.enrolment.logins import write_secret

NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
PREFIX = "ldp_"
_BYTES = 32
_OTHERS = 0o077


class Token(Struct, frozen=True):
    """What is kept of a token under its owner's name; `made_s`: seconds UTC."""

    sha256: str
    made_s: int
    role: str = "operator"


class Tokens:
    """The file of tokens; read again whenever it changed, so that revoking holds at once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, int] | None = None
        self._kept: dict[str, Token] = {}

    def owner_of(self, token: str) -> tuple[str, str] | None:
        """Return whose token it is and the role, None for nobody's; raises ConfigError."""
        digest = _digest(token)
        found = None
        for name, row in self.all().items():  # all of them: time tells nothing
            if hmac.compare_digest(digest, row.sha256):
                found = name, row.role
        return found

    def all(self) -> Mapping[str, Token]:
        """Return what is kept by name; raises ConfigError."""
        try:
            state = self._path.stat()
            stamp = (state.st_mtime_ns, state.st_ino)
            if stamp != self._stamp:
                if state.st_mode & _OTHERS:
                    raise self._wrong(f"a file of mode 0600: chmod 600 {self._path}")
                kept = decode(self._path.read_bytes(), type=dict[str, Token])
                self._kept, self._stamp = kept, stamp
        except FileNotFoundError:
            self._kept, self._stamp = {}, None
        except OSError as exc:
            raise self._wrong(f"a readable file ({exc.strerror})") from exc
        except (MsgspecError, UnicodeDecodeError) as exc:
            raise self._wrong("a file of `edge-ldp console tokens make`") from exc
        return self._kept

    def make(self, name: str, now_s: int, role: str) -> str:
        """Keep a new token under a name and return it; raises ConfigError."""
        if not NAME.fullmatch(name):
            raise ConfigError("console tokens", "name", "expected a-z 0-9 . _ -, 64 at most")
        if name in self.all():
            raise ConfigError("console tokens", name, "expected a new name: revoke this one first")
        drawn = base64.urlsafe_b64encode(os.urandom(_BYTES)).decode().rstrip("=")
        token = PREFIX + drawn
        self._write({**self.all(), name: Token(_digest(token), now_s, role)})
        return token

    def revoke(self, name: str) -> bool:
        """Forget a token; return whether there was one; raises ConfigError."""
        left = {other: row for other, row in self.all().items() if other != name}
        is_gone = len(left) < len(self.all())
        if is_gone:
            self._write(left)
        return is_gone

    def _write(self, rows: Mapping[str, Token]) -> None:
        try:
            write_secret(self._path, json.dumps(to_builtins(rows), indent=1) + "\n")
        except OSError as exc:
            raise self._wrong(f"a file that can be written ({exc.strerror})") from exc
        self._stamp = None

    def _wrong(self, expected: str) -> ConfigError:
        return ConfigError(str(self._path), "console.tokens_file", f"expected {expected}")


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
