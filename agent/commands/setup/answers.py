"""What `setup` must know beside the meter: from the invitation, from options, or asked."""

import argparse
import os
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from agent.claims.slots import REGISTERS
from agent.commands.setup.asked_plans import asked_epsilon, has_namesake
from agent.commands.setup.asked_sums import given_sums, has_sums_alone
from agent.commands.setup.invited import doubt_of_refusing, needed_epsilon
from agent.commands.setup.places import named, state_place
from agent.commands.setup.talk import SetupError, Talk
from agent.commands.setup.written import Answers, from_register_text, introduced
from agent.config.doubts import a_day_and_a_month, doubt_of_ceiling, doubt_of_epsilon
from agent.meters.reading import UNITS
from edge_ldp.arguments import epsilon_given, port_number, whole_number
from edge_ldp.device.errors import ParameterError
from edge_ldp.protocol.invitation import Invitation, InvitedStream
from edge_ldp.protocol.messages import check_name
from edge_ldp.service.broker import LOOPBACK, Broker
from edge_ldp.service.trial import own_name

PREFERRED = ("power", "apparent_power", "energy_import")
CEILING_W = 17_250
"""What is offered as the largest power: a connection of 3 × 25 A at 230 V."""

SLOT_SECONDS = 900
ASKING_S = 5.0


def all_answers(  # noqa: PLR0913 (what is known by then)
    args: argparse.Namespace,
    talk: Talk,
    invitation: Invitation | None,
    meter: tuple[str, ...],
    known: tuple[str, ...],
    *,
    allows_plaintext: bool,
) -> tuple[Answers, str | None, str | None]:
    """Return the answers, the password and the authority's certificate that are to be written."""
    streams = invitation.streams if invitation else (_stream(args, talk, known),)
    alone = [one for one in streams if has_sums_alone(one, streams)]
    there = [one for one in streams if one.quantity in known or one not in alone]
    sums = given_sums(args, talk, there) if there else {}
    left = [one for one in alone if one.name not in sums]
    if left:
        names = ", ".join(one.name for one in left)
        talk.say(f"left out, as the meter tells none or you give none: {names}")
    streams = tuple(one for one in streams if one not in left)
    if not streams:
        raise SetupError("setup: nothing is left to report; nothing was written")
    registers = tuple(one for one in streams if one.quantity not in known)
    for stream in registers:
        if REGISTERS.get(stream.quantity) not in known:
            quantities = ", ".join(known) or "nothing that is known"
            asked = f"the fleet counts {stream.quantity}, and this meter tells {quantities}"
            raise SetupError(f"setup: {asked}: ask the operator for a stream of one of these")
    for stream in registers:
        talk.say("\n" + from_register_text(stream))
    common = {
        "allows_plaintext": allows_plaintext,
        "meter": meter,
        "streams": streams,
        "from_register": tuple(stream.name for stream in registers),
        "epsilon": Decimal(0),  # asked last: the broker says what its plans need
        "reports": args.reports,
        "slots": args.slots,
        "clock": args.clock,
        "page": args.page,
        "sums": sums,
    }
    if invitation:
        made, password, ca = _invited(args, invitation, common)
        if invitation.once and not args.take_over:
            _refuse_namesake(made, password, ca)
    else:
        made, password, ca = _asked(args, talk, common)
    if [one.mode for one in made.sums.values()] == ["sums"] * len(streams):  # no plan is needed
        return replace(made, epsilon=args.epsilon or Decimal(1)), password, ca
    needed = _needed(talk, invitation, made, password, ca)
    return replace(made, epsilon=_epsilon(args, talk, made, needed)), password, ca


def _needed(
    talk: Talk, invitation: Invitation | None, made: Answers, password: str | None, ca: str | None
) -> Decimal | None:
    """Return the ε that the fleet's plans need, as broker or invitation say; None: neither does."""
    if password is None and made.password_file is not None:
        with suppress(OSError):
            password = Path(made.password_file).read_text().strip()
    names = [
        stream.name
        for stream in made.streams
        if stream.name not in made.sums or made.sums[stream.name].mode != "sums"
    ]
    found = asked_epsilon(_broker(made, password, ca), ca, made.fleet, names)
    if found:
        talk.say(f"the broker's plans need ε {found}")
    return max(found, needed_epsilon(invitation) or found) or None


def _refuse_namesake(made: Answers, password: str | None, ca: str | None) -> None:
    """Raise SetupError where another device has a name that is for one: there is no state of it."""
    if Path(made.state).exists() or not has_namesake(
        _broker(made, password, ca), ca, made.fleet, made.device
    ):
        return
    raise SetupError(
        f"setup: a device was heard as {made.device} already, and this invitation is for one: ask "
        "the operator for another; nothing was written. If this one takes its place, --take-over: "
        "what the other kept unsent is lost, a silent window begins, and its ledger at 0; its "
        "state, brought along with --from, loses nothing"
    )


def _broker(made: Answers, password: str | None, ca: str | None) -> Broker:
    return Broker(
        made.host,
        made.port,
        own_name(),
        username=made.username,
        password=password,
        tls=made.tls,
        ca_file=None if ca else made.ca_file,
        connect_timeout_s=ASKING_S,
    )


def _epsilon(
    args: argparse.Namespace, talk: Talk, made: Answers, needed: Decimal | None
) -> Decimal:
    """Return the ε that the owner allows; raises SetupError where it refuses every plan."""
    seconds = made.streams[0].slot_seconds
    shared = sum((one.table.share for one in made.sums.values()), Decimal(0))
    reports = max(1, int(args.reports * (1 - shared)))  # beside the sums
    if talk.asks:
        talk.say("\n" + introduced(seconds, reports, args.slots))
    question = "ε of one report: a smaller one hides more, but the fleet's plans must fit it"
    if needed is not None:
        question = f"ε of one report (the fleet's plans need {needed}; smaller hides more)"
    epsilon = talk.taken(
        question,
        "--epsilon",
        epsilon_given,
        "1" if needed is None else str(min(Decimal(1), needed)),
        given=args.epsilon,
        doubt=lambda one: doubt_of_refusing(one, needed) or doubt_of_epsilon(one),
    )
    if not talk.asks and (why := doubt_of_refusing(epsilon, needed)):
        day = a_day_and_a_month(needed or epsilon, reports, args.slots, seconds)
        remedy = f"ask the operator for less, or allow it: --epsilon {needed} ({day})"
        raise SetupError(f"setup: {why}; nothing was written; {remedy}")
    return epsilon


def _invited(
    args: argparse.Namespace, invitation: Invitation, common: dict[str, Any]
) -> tuple[Answers, str | None, str | None]:
    broker = invitation.broker
    made = Answers(
        fleet=invitation.fleet,
        device=invitation.device,
        group=invitation.group,
        state=state_place(args, invitation.device),
        host=broker.host,
        port=broker.port,
        tls=broker.tls,
        username=invitation.username,
        password_file=named(args.config, ".password"),
        ca_file=named(args.config, ".ca.pem") if broker.ca else None,
        plan_keys=invitation.plan_keys,
        **common,
    )
    return made, invitation.password, broker.ca


def _asked(
    args: argparse.Namespace, talk: Talk, common: dict[str, Any]
) -> tuple[Answers, str | None, str | None]:
    asked = "the broker's name, or NAME:PORT"
    host, port = talk.taken(asked, "--broker, its port", _endpoint, given=args.broker)
    tls = not args.no_tls and talk.agrees("does it use TLS", "--no-tls")
    question = "certificate file of its own authority (Enter: a public one)"
    ca = args.ca_file or (talk.taken(question, "--ca-file", _file, "") if tls else None)
    question = "this device's name in the fleet"
    device = args.device or talk.taken(question, "--device", _name)
    username = args.username or talk.ask("user name at the broker", "--username", device)
    password = None if args.password_file else talk.secret(f"password of {username} (Enter: none)")
    file = named(args.config, ".password") if password else args.password_file
    common["allows_plaintext"] = not tls and host not in LOOPBACK  # that is what was said
    made = Answers(
        fleet=args.fleet or talk.taken("the fleet's name", "--fleet", _name),
        device=device,
        group="",
        state=state_place(args, device),
        host=host,
        port=port or (8883 if tls else 1883),
        tls=tls,
        username=username,
        password_file=file and str(Path(file).absolute()),
        ca_file=str(Path(ca).absolute()) if ca else None,
        plan_keys=(),
        **common,
    )
    return made, password, None


def _endpoint(text: str) -> tuple[str, int | None]:
    """Return the name of a broker and its port; None: the usual one."""
    if text.count(":") != 1:
        return text, None
    host, _, port = text.rpartition(":")
    return host, port_number(port)


def _name(text: str) -> str:
    try:
        return check_name("name", text)
    except ParameterError as exc:
        raise argparse.ArgumentTypeError(f"expected {exc.expected}, not {text!r}") from exc


def _file(text: str) -> str:
    if text and not os.access(text, os.R_OK):
        raise argparse.ArgumentTypeError(f"expected a file that can be read, not {text!r}")
    return text


def _stream(args: argparse.Namespace, talk: Talk, known: tuple[str, ...]) -> InvitedStream:
    quantity = next((one for one in PREFERRED if one in known), None)
    if quantity is None:
        raise SetupError("setup: the meter tells nothing that a stream can be made of")
    unit = UNITS[quantity]
    usual = CEILING_W * SLOT_SECONDS // 3600 if unit == "Wh" else CEILING_W
    ceiling = talk.taken(
        f"largest possible {quantity}, in {unit}",
        "--ceiling",
        whole_number,
        str(usual) if talk.asks else None,
        given=args.ceiling,
        doubt=lambda most: doubt_of_ceiling(most, unit, quantity, SLOT_SECONDS),
    )
    return InvitedStream(quantity, quantity, unit, 0, ceiling, SLOT_SECONDS)
