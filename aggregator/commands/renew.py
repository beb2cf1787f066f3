"""`edge-ldp aggregator renew`: a new certificate for the broker that `setup` wrote."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from aggregator.answers.changes import RenewedCertificates
from aggregator.commands.asking import Shown, add_command
from aggregator.commands.common import changing
from aggregator.commands.invite import RELOAD
from aggregator.config import ConfigError
from aggregator.enrolment.logins import tell_broker, write_secret
from edge_ldp.extras import pip_install
from edge_ldp.protocol.utc import utc

if TYPE_CHECKING:
    import argparse

    from aggregator.commands.asking import Commands

CERT, KEY = "broker.pem", "broker.key"  # as `setup` writes them, beside the authority's


def renew(args: argparse.Namespace) -> int:
    """Give the broker that `setup` wrote a new certificate, of the authority that devices trust."""
    try:
        from aggregator.enrolment import authority  # noqa: PLC0415 (an extra)
    except ImportError as exc:
        expected = f"expected the extra `sign` beside it: {pip_install('edge-ldp[sign]')}"
        raise ConfigError("arguments", "renew", expected) from exc
    with changing(args) as (config, session):
        table = config.devices
        if table is None or table.ca_file is None:
            expected = "expected the ca_file of a fleet that `setup --host` wrote"
            raise ConfigError(str(args.config), "devices.ca_file", expected)
        ca_file = Path(table.ca_file)
        ca, ca_key, _ = (_read(ca_file), _read(args.ca_key), _read(ca_file.with_name(CERT)))
        try:
            made = authority.renew_certificates(ca, ca_key, table.host, authority=args.authority)
        except ValueError as exc:
            expected = f"expected the key of {ca_file} ({exc}); renew it itself by --authority"
            raise ConfigError(str(args.ca_key), "--ca-key", expected) from exc
        texts = {ca_file.with_name(KEY): made.key, ca_file.with_name(CERT): made.cert}
        if args.authority:
            texts[ca_file] = made.ca
        with session.transaction():  # who renewed them
            for path, text in texts.items():
                write_secret(path, text, like=path)
    view = RenewedCertificates(
        files=[str(path) for path in texts],
        valid_s=min(authority.expires_s(made.cert), authority.expires_s(made.ca)),
        broker_told=tell_broker(table.pid_file),
    )
    return Shown(view, lambda: _text(view, is_authority=args.authority)).show(args)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as exc:
        expected = f"expected a file that can be read ({getattr(exc, 'strerror', 'not text')})"
        raise ConfigError(str(path), "file", expected) from exc


def _text(view: RenewedCertificates, *, is_authority: bool) -> str:
    lines = [f"written anew: {', '.join(view.files)}", f"valid until {utc(view.valid_s):%Y-%m-%d}"]
    lines.append("the broker uses them from now on" if view.broker_told else RELOAD)
    if is_authority:
        lines.append("devices go on with the old one until it expires: invite them again before")
    return "\n".join([*lines, ""])


def add(commands: Commands) -> None:
    """Add the command's options."""
    parser = add_command(commands, renew, RenewedCertificates)
    key = "the authority's private key, kept elsewhere"
    parser.add_argument("--ca-key", type=Path, required=True, metavar="FILE", help=key)
    parser.add_argument("--authority", action="store_true", help="its own certificate, too")
