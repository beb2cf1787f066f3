"""`edge-ldp console`: a fleet in a browser, and who may look.

Exit codes: 0 ended as told; 2 wrong usage or configuration, or a port that is taken.
"""

import argparse
import mimetypes
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType

import uvicorn

from aggregator.answers.fleet.changes import ConsoleToken, ConsoleTokens
from aggregator.answers.units import clock_text, text_table
from aggregator.commands.asking import Commands, Shown, option, run
from aggregator.commands.common import EXIT_CONFIG, warn
from aggregator.config import (
    AggregatorConfig,
    ConfigError,
    ConsoleTable,
    extra,
    is_loopback,
    load_config,
    secret_file,
)
from aggregator.console.answering import Attendant, Desk, keep
from aggregator.console.confinement import code_paths, confine
from aggregator.console.desks import Desks
from aggregator.console.half_open import Asking, BoundedProtocol
from aggregator.console.roles import OPERATOR, ROLES, viewer_of
from aggregator.console.server import Console
from aggregator.enrolment.tokens import Tokens
from edge_ldp.arguments import Parser, port_or_any
from edge_ldp.device.errors import ParameterError
from edge_ldp.service.service_manager import ServiceManager

CONSOLE = "edge-ldp console"  # who says what is wrong
CLOSING_S = 1
SOCKET_MODE = 0o660
IDLE_S = 60  # viewers ask again at each commit
OPEN = """\
edge-ldp console: Linux's Landlock (5.13) does not hold here: whoever breaks into the process that
others reach could open the store itself
"""
SAID = """\
Shows a fleet in a browser, as an API and as metrics: it only reads. Without a command it serves
until it is told to stop; `edge-ldp console tokens make NAME` lets somebody look from elsewhere.
"""


def main(argv: Sequence[str]) -> int:
    """Serve, or keep tokens; return the exit code."""
    parser = _parser()
    args = parser.parse_args(argv)
    if args.config is None:
        parser.error("the following arguments are required: -c/--config")
    return run(args, CONSOLE)


def serve(args: argparse.Namespace) -> Shown:
    """Serve until told to stop (SIGTERM, SIGINT)."""
    config = load_config(args.config)
    own = config.console
    tokens = None if own.tokens_file is None else Tokens(Path(own.tokens_file))
    if tokens is not None and not tokens.all():
        warn(["nobody may look yet: edge-ldp console tokens make NAME"], CONSOLE)
    port = own.port if args.port is None else args.port
    _check_roles(own, str(args.config))
    signing = _signing_desk(config, str(args.config))
    try:
        listening = _listening(own.listen, port)
    except OSError as exc:
        reason = f"cannot listen on {own.listen}, port {port}: {exc.strerror}: [console] port"
        return Shown().but(EXIT_CONFIG, reason)
    made = (
        socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for _ in range(1 + own.processes + (signing is not None))
    )
    ours, theirs = zip(*made, strict=True)
    makers: dict[socket.socket, Callable[[], Attendant]]
    makers = dict.fromkeys(theirs, partial(Desk, str(args.config)))
    if signing is not None:
        makers[theirs[-1]] = signing
    asks = os.getpid()
    if not os.fork():
        for one in (listening, *ours):
            one.close()
        return Shown(code=keep(makers, asks))
    for one in theirs:
        one.close()
    answering = ours if signing is None else ours[:-1]
    console = Console(
        str(args.config), own, Desks(answering, None if signing is None else ours[-1])
    )
    served = _served(console, own)
    served.load()
    mimetypes.init()  # it reads files of /etc
    if not confine(code_paths()):
        sys.stderr.write(OPEN)
    is_path = own.listen.startswith("/")
    address = own.listen if is_path else _address(config, listening.getsockname()[1])
    _Server(served, address, console.end).run(sockets=[listening])
    return Shown()


def _listening(place: str, port: int) -> socket.socket:
    """Return a socket of the port, or at a path, which its owner and group may enter."""
    if not place.startswith("/"):
        family = socket.AF_INET6 if ":" in place else socket.AF_INET
        return socket.create_server((place, port), family=family)
    if Path(place).is_socket():  # of one before; anything else is not ours to delete
        Path(place).unlink()
    listening = socket.socket(socket.AF_UNIX)
    try:
        listening.bind(place)
        Path(place).chmod(SOCKET_MODE)
        listening.listen()
    except OSError:
        listening.close()
        raise
    return listening


def _served(console: Console, own: ConsoleTable) -> uvicorn.Config:
    return uvicorn.Config(
        console.app(),
        loop="uvloop",
        http=partial(BoundedProtocol, asking=Asking()),  # type: ignore[arg-type] # called as a class is
        log_level="warning",
        server_header=False,
        date_header=False,
        access_log=False,
        proxy_headers=False,
        ws="none",
        ssl_certfile=own.cert_file,
        ssl_keyfile=own.key_file,
        timeout_graceful_shutdown=CLOSING_S,
        timeout_keep_alive=IDLE_S,
    )


def _check_roles(own: ConsoleTable, file: str) -> None:
    """Raise ConfigError for a role that is none."""
    for table in ("sign_on", "oidc"):
        for of, text in getattr(getattr(own, table), "roles", {}).items():
            try:
                viewer_of(of, text)
            except ParameterError as exc:
                key = f"console.{table}.roles.{of}"
                raise ConfigError(file, key, f"expected {exc.expected}") from exc


def _signing_desk(config: AggregatorConfig, file: str) -> Callable[[], Attendant] | None:
    """Return what makes the one who asks the provider, None: there is none; raises ConfigError."""
    table = config.console.oidc
    if table is None:
        return None
    secret_file(table.secret_file, "console.oidc.secret_file", file)
    with extra("the extra `oidc`", "edge-ldp-aggregator[oidc]", file, "console.oidc"):
        from aggregator.console.provider import SignOnDesk  # noqa: PLC0415
    return partial(SignOnDesk.confined, table, file)


class _Server(uvicorn.Server):
    """Says where it is once it answers, to people and to the service manager."""

    def __init__(self, config: uvicorn.Config, address: str, end: Callable[[], None]) -> None:
        super().__init__(config)
        self._address = address
        self._end = end

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        self._end()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End in order when told to: the original would die of the signal afterwards."""
        ends = (signal.SIGINT, signal.SIGTERM)
        before = [signal.signal(number, self.handle_exit) for number in ends]
        try:
            yield
        finally:
            for number, handler in zip(ends, before, strict=True):
                signal.signal(number, handler)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            sys.stdout.write(f"{self._address}\n")
            sys.stdout.flush()
            ServiceManager(os.environ).tell("READY=1")


def make(args: argparse.Namespace) -> Shown:
    """Make a token, shown once: only its hash is kept."""
    role = " ".join([args.role, *args.group])
    try:
        viewer_of(args.name, role)
    except ParameterError as exc:
        raise ConfigError("arguments", "--role", f"expected {exc.expected}") from exc
    token = _tokens(args).make(args.name, int(time.time()), role)
    sys.stderr.write(f"token of {args.name}: it is shown this once, and let in at once\n")
    return Shown(text=lambda: f"{token}\n")


def list_(args: argparse.Namespace) -> Shown:
    """List whose tokens there are, and since when."""
    every = sorted(_tokens(args).all().items())
    made = [ConsoleToken(name=name, made_s=row.made_s, role=row.role) for name, row in every]
    rows = [[one.name, one.role, clock_text(one.made_s)] for one in made]
    text = text_table(["token of", "role", "made UTC"], rows) + "\n"
    return Shown(ConsoleTokens(tokens=made), lambda: text)


def revoke(args: argparse.Namespace) -> Shown:
    """Let in somebody's token no longer, from now on."""
    if not _tokens(args).revoke(args.name):
        return Shown().but(EXIT_CONFIG, f"there is no token of {args.name!r}")
    return Shown(text=lambda: f"{args.name} is not let in any longer\n")


def _tokens(args: argparse.Namespace) -> Tokens:
    name = load_config(args.config).console.tokens_file
    if name is None:
        raise ConfigError(
            str(args.config), "console.tokens_file", "expected a file to keep them in"
        )
    return Tokens(Path(name))


def _address(config: AggregatorConfig, port: int) -> str:
    own = config.console
    kind = "http" if own.cert_file is None else "https"
    name = next(iter(own.hosts), own.listen) if not is_loopback(own.listen) else own.listen
    return f"{kind}://{f'[{name}]' if ':' in name else name}:{port}/"


def _parser() -> argparse.ArgumentParser:
    shape = argparse.RawDescriptionHelpFormatter
    top = Parser(prog=CONSOLE, description=SAID, formatter_class=shape)
    top.add_argument("-c", "--config", type=Path, help="the aggregator's TOML")
    told = "in the place of [console] port; 0: any that is free"
    top.add_argument("--port", type=port_or_any, metavar="PORT", help=told)
    top.set_defaults(command=serve)
    commands = Commands(top, required=False)
    below = commands.below("tokens", "who may look: make, list, revoke")
    name = option("name", help="a-z 0-9 . _ -")
    seen, alone = "what may be seen: docs/console.md", "figures of this group alone"
    role = option("--role", choices=ROLES, default=OPERATOR, help=seen)
    told = f"{alone} (repeat for more); for a viewer"
    group = option("--group", action="append", default=[], help=told)
    below.add(make, None, name, role, group)
    below.add(revoke, None, name)
    below.add(list_, ConsoleTokens)
    return top
