"""`edge-ldp agent setup`: from an adapter in the wall to a configuration that was tried.

Asks as little as possible; with --yes, or without a terminal, it asks nothing and what it cannot
know must be an option. `--from` a trial's file goes on with all that it says. A meter's values are
shown on a terminal only, to the one who installs it; they are neither written nor kept. Nothing is
overwritten, and nothing is written before it parses.
"""

import argparse
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from agent.commands.house import EXIT_FAILS, EXIT_OK, live
from agent.commands.setup.answers import PREFERRED, all_answers
from agent.commands.setup.found_meter import found_meter
from agent.commands.setup.going_on import TrialFile, refuse_beside, trial_here
from agent.commands.setup.invited import (
    USUAL_FUSE_W,
    OwnersBounds,
    objections,
)
from agent.commands.setup.places import files_of, is_systems, state_place, token_file, write_new
from agent.commands.setup.talk import SetupError, Talk
from agent.commands.setup.written import (
    Answers,
    configuration,
    explained,
)
from agent.config import AgentConfig, load_config, parse_config
from agent.config.doubts import doubts_of
from agent.errors import ConfigError, StorageError
from agent.home_time import home_time
from agent.state.place import doubt_of_place
from agent.state.state_file import refuse_place
from edge_ldp.arguments import whole_number
from edge_ldp.protocol.invitation import Invitation, parse_invitation
from edge_ldp.protocol.strict_json import MAX_BYTES, MessageError

EXIT_NO_METER = 3
UNIT = Path("/etc/systemd/system/edge-ldp-agent.service")
OPTIONS = {  # by which a key is written
    "device.fleet": "--fleet",
    "device.id": "--device",
    "policy.window": "--reports",
    "policy.window.slots": "--slots",
    "streams[0].sums.days": "--days",
}


def setup(args: argparse.Namespace) -> int:
    """Find the meter, take the invitation, write a configuration and try it all."""
    talk = Talk(is_silent=args.yes)
    if args.trial is not None:
        return _go_on(args, talk)
    earlier = _earlier(args, files_of(args.config))
    invitation = _invitation(args, talk)
    allows_plaintext = invitation is not None and _bounded(args, talk, invitation)
    wanted = {one.quantity for one in invitation.streams} if invitation else {PREFERRED[0]}
    port, meter, found = found_meter(args, talk, wanted)
    if meter is None:
        talk.say(f"{port}: no known meter answers here; see docs/meters.md")
        return EXIT_NO_METER
    answers, password, ca = all_answers(
        args, talk, invitation, meter, found, allows_plaintext=allows_plaintext
    )
    text = configuration(answers)
    try:
        config = parse_config(text, str(args.config))
    except ConfigError as exc:  # the line that it names is of a file that was not written
        raise ConfigError("setup", OPTIONS.get(exc.key, exc.key), exc.expected) from exc
    device = answers.device
    if trial := trial_here(args.config, answers.fleet, device, answers.state):
        file, state = trial
        remedy = f"to go on with it: --from {file}; to begin anew, in silence: delete {state}"
        raise SetupError(f"setup: {file} is a trial of {device}, with what it reported; {remedy}")
    _agree(talk, config)
    _keep(path for path in earlier if path != token_file(args.config))
    written = _write(args.config, text, answers, password, ca)
    return _tried(args, talk, config, written)


def _go_on(args: argparse.Namespace, talk: Talk) -> int:
    """Let a trial's configuration and state go on in another place."""
    refuse_beside(args)
    device = load_config(args.trial).device.id
    trial = TrialFile(args.trial, args.config, state_place(args, device))
    files = trial.files()
    earlier = _earlier(args, (args.config, *files))
    moves = trial.look(talk)
    _agree(talk, trial.config, goes_on=moves)
    if moves:
        trial.move()  # first: where it cannot be, nothing else is done
    _keep(earlier)
    for path, (text, mode) in files.items():
        write_new(path, text, mode)
    write_new(args.config, trial.text, 0o640)
    talk.say(f"kept: {trial.retire()}")
    return _tried(args, talk, trial.config, [args.config, *files])


def _earlier(args: argparse.Namespace, files: Iterable[Path]) -> list[Path]:
    """Return which files are there already; raises SetupError unless they may be replaced."""
    earlier = [path for path in files if path.exists()]
    if earlier and not args.replace:
        remedy = "name another file with -c, or --replace it: then it is kept as *.before"
        raise SetupError(f"{earlier[0]} is there already; {remedy}")
    return earlier


def _keep(earlier: Iterable[Path]) -> None:
    for path in earlier:
        path.replace(path.with_name(path.name + ".before"))


def _agree(talk: Talk, config: AgentConfig, *, goes_on: bool = False) -> None:
    """Say what a configuration means, and ask for it; raises SetupError.

    Also where `run` would refuse the state's place: it is known before anything is written.
    """
    try:
        refuse_place(Path(config.device.state))
    except StorageError as exc:
        remedy = "another place: -c, or --state for the state alone; nothing was written"
        raise SetupError(f"setup: {exc}; {remedy}") from exc
    talk.say("\n" + explained(config, goes_on=goes_on))
    for doubt in filter(None, [*doubts_of(config), doubt_of_place(Path(config.device.state))]):
        talk.say(f"warning: {doubt}")
    if talk.asks and not talk.agrees("is that what you allow", "--yes"):
        less = "--epsilon, --reports, --slots, --give, --share"
        raise SetupError(f"setup: to allow less: {less}; nothing was written")


def _tried(
    args: argparse.Namespace, talk: Talk, config: AgentConfig, written: Iterable[Path]
) -> int:
    """Try all that was written, and say what is next; return the exit code."""
    talk.say(f"written: {', '.join(map(str, written))}\n")
    verdicts = live(config, args.config)
    sys.stdout.write("".join(verdict.text() for verdict in verdicts))
    return conclude(args, talk, failed=any(one.outcome == "fails" for one in verdicts))


def _write(
    config: Path, text: str, answers: Answers, password: str | None, ca: str | None
) -> list[Path]:
    """Write the secret first and the configuration last, each a new file; return them."""
    files = [config]
    if password is not None:
        files.append(Path(answers.password_file or ""))
        write_new(files[-1], password + "\n", 0o600)
    if ca is not None:
        files.append(Path(answers.ca_file or ""))
        write_new(files[-1], ca, 0o644)
    write_new(config, text, 0o640)
    return files


def conclude(args: argparse.Namespace, talk: Talk, *, failed: bool) -> int:
    """Say what is next, or what is to be mended first; return the exit code."""
    talk.say("")
    file = None if _is_text(args.invitation or "-") else args.invitation
    if file not in (None, "-") and not (args.forget_invitation and not failed and _forget(file)):
        talk.say(f"The invitation is used up: delete {file}, which holds the password.")
    if failed:
        talk.say(f"fix what fails, then: edge-ldp agent check --live -c {args.config}")
        return EXIT_FAILS
    is_system = is_systems(args.config) and UNIT.exists()
    command = "sudo systemctl enable --now edge-ldp-agent"
    talk.say("next: " + (command if is_system else f"edge-ldp agent run -c {args.config}"))
    if args.page is not None:
        talk.say(f"then look: http://127.0.0.1:{args.page}")
    return EXIT_OK


def _forget(file: str) -> bool:
    """Delete an invitation that was taken, over its bytes; return whether it is gone."""
    try:
        with Path(file).open("r+b") as used:
            size = os.fstat(used.fileno()).st_size
            used.write(bytes(size))
            used.flush()
            os.fsync(used.fileno())
        Path(file).unlink()
    except OSError:
        return False
    return True


def _invitation(args: argparse.Namespace, talk: Talk) -> Invitation | None:
    if args.invitation is None and args.broker is None:
        question = "the invitation's file or text (Enter: none, I know the broker)"
        default = "" if talk.asks else None
        args.invitation = talk.ask(question, "--invitation or --broker", default) or None
    given = args.invitation
    if given is None:
        return None
    shown, text = _invitation_bytes(given)
    try:
        found = parse_invitation(text)
    except MessageError as exc:
        fault = f"it is not what `edge-ldp aggregator devices invite` writes: {exc}"
        if exc.reason != "version":
            fault = f"is it whole? If not, ask the operator for it again ({exc})"
        raise SetupError(f"{shown}: {fault}") from None
    if found.expires_s is not None and time.time() > found.expires_s:
        until = home_time(found.expires_s, "%Y-%m-%d %H:%M")
        raise SetupError(f"{shown}: it was good until {until}; ask the operator for another one")
    talk.say(f"invited into fleet {found.fleet} as {found.device}, broker {found.broker.host}")
    return found


def _bounded(args: argparse.Namespace, talk: Talk, invitation: Invitation) -> bool:
    """Ask for what goes beyond the owner's bounds; return whether plain text was allowed.

    Raises SetupError where the owner does not allow it, or nobody is there.
    """
    question = "largest power of your connection in W (3 × 25 A: 17250, 3 × 63 A: 43470)"
    fuse_w = talk.taken(question, "--fuse", whole_number, str(USUAL_FUSE_W), given=args.fuse)
    args.fuse = fuse_w if talk.asks else args.fuse
    bounds = OwnersBounds(fuse_w, args.least_slot, args.allow_plaintext)
    allowed = args.allow_plaintext
    for one in objections(invitation, bounds):
        talk.say(f"The invitation: {one.text}")
        if not (talk.asks and talk.agrees("take it anyway", one.option, default="n")):
            remedy = f"ask the operator, or allow it: {one.option}"
            raise SetupError(f"setup: {one.text}; nothing was written; {remedy}")
        allowed |= one.option == "--allow-plaintext"
    return bool(allowed)


def _is_text(given: str) -> bool:
    """Say whether an invitation is given itself, and not its file's name."""
    return given.lstrip().startswith(("edge-ldp:", "{"))


def _invitation_bytes(given: str) -> tuple[str, bytes]:
    """Return what to call an invitation, and what it holds.

    What is no file's name may be a piece of an invitation, and so of its password: it is not shown.
    """
    if _is_text(given):
        return "--invitation", given.encode(errors="surrogatepass")
    if given == "-":
        return "standard input", sys.stdin.buffer.read(MAX_BYTES)
    try:
        with Path(given).open("rb") as file:
            return given, file.read(MAX_BYTES)
    except (OSError, ValueError) as exc:  # ValueError: what no file can be called
        reason = (isinstance(exc, OSError) and exc.strerror) or "no file has such a name"
        shown = given if os.path.lexists(given) else "--invitation"
        remedy = "name the invitation's file, or give all of its text in quotes"
        raise SetupError(f"{shown}: {reason}; {remedy}") from None
