"""`edge-ldp aggregator renew`: new certificates for what `setup` wrote, or the next plan key."""

from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path

from aggregator.answers.fleet.changes import RenewedCertificates
from aggregator.commands.asking import Asked, Commands, Shown, option
from aggregator.commands.common import read_text
from aggregator.commands.invite import RELOAD
from aggregator.config import ConfigError, extra
from aggregator.config.sections import PlansTable
from aggregator.enrolment.logins import tell_broker, write_secret
from aggregator.plans.signing import read_seal
from aggregator.store.contract import Session
from edge_ldp.protocol.utc import utc

CERT, KEY = "broker.pem", "broker.key"  # as `setup` writes them, beside the authority's
PLAN_KEY = """\
restart every worker: the first plan that the key signs ends the old one's word on every device
that knows it, also for whoever stole the old one. A device that does not refuses plans as `key` and
keeps its reports, until its file has it as next_key. Then make the next one: edge-ldp keys make
FILE, its public half as [plans] next_key here and on devices
"""


def renew(asked: Asked, session: Session) -> Shown:
    """Give the broker that `setup` wrote a new certificate, or sign plans with the next key."""
    change = _plan_key if asked.args.ca_key is None else _certificates
    return change(asked, session)


def _plan_key(asked: Asked, session: Session) -> Shown:
    file, key, plans = str(asked.args.config), asked.args.plan_key, asked.config.plans
    signer = read_seal(replace(asked.config, plans=PlansTable(str(key))), file).signer
    if signer is None or plans.signing_key_file is None or signer.public.hex() != plans.next_key:
        expected = "expected the key that [plans] next_key names, which devices know"
        raise ConfigError(file, "--plan-key", expected)
    path = Path(plans.signing_key_file)
    with session.transaction():  # who renewed it
        write_secret(path, read_text(key), like=path)
    view = RenewedCertificates(files=[str(path)], valid_s=None, broker_told=None)
    return Shown(view, lambda: f"written anew: {path}\n{PLAN_KEY}")


def _certificates(asked: Asked, session: Session) -> Shown:
    args, table = asked.args, asked.config.devices
    with extra("the extra `sign` beside it", "edge-ldp[sign]", "arguments", "renew"):
        from aggregator.enrolment import authority  # noqa: PLC0415
    if table is None or table.ca_file is None:
        expected = "expected the ca_file of a fleet that `setup --host` wrote"
        raise ConfigError(str(args.config), "devices.ca_file", expected)
    ca_file = Path(table.ca_file)
    ca, ca_key, _ = (read_text(one) for one in (ca_file, args.ca_key, ca_file.with_name(CERT)))
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
    told = partial(_text, view, utc(view.valid_s or 0), is_authority=args.authority)
    return Shown(view, told)


def _text(view: RenewedCertificates, until: datetime, *, is_authority: bool) -> str:
    lines = [f"written anew: {', '.join(view.files)}", f"valid until {until:%Y-%m-%d}"]
    lines.append("the broker uses them from now on" if view.broker_told else RELOAD)
    if is_authority:
        lines.append("devices go on with the old one until it expires: invite them again before")
    return "\n".join([*lines, ""])


def add(commands: Commands) -> None:
    """Add the command's options."""
    authority = option("--authority", action="store_true", help="its own certificate, too")
    parser = commands.order(renew, RenewedCertificates, authority)
    one = parser.add_mutually_exclusive_group(required=True)
    key = "the authority's private key, kept elsewhere"
    one.add_argument("--ca-key", type=Path, metavar="FILE", help=key)
    key = "the private key that follows the one that signs plans, kept elsewhere"
    one.add_argument("--plan-key", type=Path, metavar="FILE", help=key)
