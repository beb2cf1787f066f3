"""Ed25519 keys on disk, and signing with them; `edge_ldp.service.verify` checks (extra `sign`).

A private key is a PEM file of mode 0600, as `openssl genpkey -algorithm ed25519` writes it; a
public key is 64 hexadecimal digits in a configuration. Only who has keys configured imports this.
"""

import argparse
import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from edge_ldp.arguments import Parser
from edge_ldp.device.errors import EdgeLdpError
from edge_ldp.protocol.signing import Signer, key_id

MODE = 0o600
OTHERS = 0o077
MAX_FILE_BYTES = 1 << 16
EXIT_UNUSABLE = 4


class KeyFileError(EdgeLdpError):
    """A key file that cannot be made or used; `remedy` says what to do. Never shows a key."""

    def __init__(self, path: Path, reason: str, remedy: str) -> None:
        super().__init__(f"{path}: {reason}; {remedy}")
        self.path = path
        self.reason = reason
        self.remedy = remedy


def make_key(path: Path) -> bytes:
    """Write a new private key to a file of mode 0600 and return the public one.

    Raises KeyFileError, also when there is such a file: a key is never overwritten.
    """
    key = Ed25519PrivateKey.generate()
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, MODE)
        with os.fdopen(handle, "wb") as file:
            os.fchmod(file.fileno(), MODE)  # whatever the umask adds or takes
            file.write(pem)
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError as exc:
        remedy = "name another file: a key that plans are signed with is never overwritten"
        raise KeyFileError(path, "is there already", remedy) from exc
    except OSError as exc:
        raise KeyFileError(path, exc.strerror or "cannot be written", "name a file") from exc
    return _public(key)


def read_signer(path: Path, *, shielded: bool = False) -> Signer:
    """Return the signer of a private key's file, which only its owner may read.

    `shielded`: the file lies where the system lets nobody else go (systemd credentials), so its
    mode says nothing. Raises KeyFileError.
    """
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_FILE_BYTES:
                raise KeyFileError(path, "is no key file", "see `edge-ldp keys make`")
            if found.st_mode & OTHERS and not shielded:
                raise KeyFileError(path, "others may read it", f"chmod 600 {path}")
            pem = file.read()
    except OSError as exc:
        raise KeyFileError(path, exc.strerror or "cannot be read", "name a readable file") from exc
    try:
        key = load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as exc:  # TypeError: it has a password
        remedy = "make one with `edge-ldp keys make`"
        raise KeyFileError(path, "holds no private key in PEM without password", remedy) from exc
    if not isinstance(key, Ed25519PrivateKey):
        remedy = "make one with `edge-ldp keys make`"
        raise KeyFileError(path, "holds a key of another kind than Ed25519", remedy)
    return Signer(_public(key), key.sign)


def main(argv: Sequence[str]) -> int:
    """Make a pair of keys or show the public one; 4: a file that cannot be used."""
    args = _parser().parse_args(argv)
    try:
        public = make_key(args.file) if args.make else read_signer(args.file).public
    except KeyFileError as exc:
        sys.stderr.write(f"edge-ldp keys: {exc}\n")
        return EXIT_UNUSABLE
    sys.stdout.write(_text(public, args.file))
    return 0


def _public(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


def _text(public: bytes, path: Path) -> str:
    return (
        f"key id        {key_id(public).hex()}\n"
        f"public key    {public.hex()}\n\n"
        "# each agent's file: plans signed by none of these keys are refused\n"
        f'[plans]\nkeys = ["{public.hex()}"]\n\n'
        "# the aggregator's file\n"
        f'[plans]\nsigning_key_file = "{path.absolute()}"\n'
    )


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="edge-ldp keys", description="Keys that plans are signed with (Ed25519).")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, makes, what in (
        ("make", True, "make a pair: the private key in FILE (mode 0600), the public one shown"),
        ("show", False, "show the public key of a private key's FILE"),
    ):
        sub = commands.add_parser(name, help=what, description=what)
        sub.add_argument("file", metavar="FILE", type=Path, help="the private key's file (PEM)")
        sub.set_defaults(make=makes)
    return parser
