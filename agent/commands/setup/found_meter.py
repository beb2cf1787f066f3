"""Which meter `setup` sets up: on a serial port, or at an address of the network.

A meter's values are shown on a terminal only, to the one who installs it. A dongle that lets in who
has a token gives one while its button is pressed; it is written at once, for its owner alone.
"""

import argparse
import asyncio
import json
import sys

from agent.commands.commissioning import list_ports, read_meter, stable_path
from agent.commands.setup.places import token_file, write_new
from agent.commands.setup.talk import SetupError, Talk
from agent.config import parse_meter
from agent.errors import PortError
from agent.meters.port_names import host_of, is_device
from agent.meters.reading import UNITS
from agent.meters.section import AccessTable
from agent.ports.findings import Found, toml_lines
from edge_ldp.extras import pip_install

Lines = tuple[str, ...]
LISTENED_S = 4.0
_ACCESS = "access."
_FINDS = f"to have dongles found by themselves: {pip_install('edge-ldp-agent[find]')}"
_NO_PORT = (
    "setup: no serial port was found; plug the meter's adapter in, or name it: --port "
    "/dev/ttyUSB0, a dongle: --port http://ITS-ADDRESS, or your broker: --port mqtt://ITS-ADDRESS"
)


class UnknownTextError(SetupError):
    """Text comes, which does not say by itself what it means."""


def found_meter(
    args: argparse.Namespace, talk: Talk, wanted: set[str]
) -> tuple[str, Lines | None, tuple[str, ...]]:
    """Return the port, the lines of [meter] and the quantities that it tells."""
    ports = [args.port] if args.port else _ports(talk)
    if not all(line.startswith(_ACCESS) for line in args.set):
        port = ports[0]
        table = parse_meter("\n".join([f"port = {json.dumps(port)}", *args.set]), "--set")
        known = table.quantities or tuple(UNITS)
        return port, ("[meter]", f"port = {json.dumps(port)}", *args.set), known
    for name in ports:
        try:
            if (found := _found_at(args, talk, name, wanted)) is not None:
                return found
        except (PortError, UnknownTextError) as exc:  # a PC lists ports that are not there
            if len(ports) == 1:
                raise
            talk.say(f"  {exc}")
    return ports[0], None, ()


def _found_at(
    args: argparse.Namespace, talk: Talk, port: str, wanted: set[str]
) -> tuple[str, Lines, tuple[str, ...]] | None:
    access = tuple(args.set)
    if host_of(port):
        if (there := _at_address(args, talk, port, access)) is None:
            return None
        port, access = there
    if not (outcome := _probe(args, talk, port, access, wanted)):
        return None
    talk.say(f"found: {outcome.text()}")
    lines = (*toml_lines(stable_path(port), outcome), *access)
    if outcome.keys["protocol"] == "lines" and "fields" not in outcome.keys:
        text = f"{port}: {outcome.note}. Or setup again, with: {_options(lines)}"
        raise UnknownTextError(text)
    if is_device(port):
        talk.say("What read this port before reads on from [share], docs/security.md")
    _show(talk, lines)
    return port, lines, outcome.quantities


def _ports(talk: Talk) -> list[str]:
    found = list_ports() or _announced(talk)
    if not found:
        raise SetupError(_NO_PORT)
    for number, port in enumerate(found, 1):
        talk.say(f"{number}  {port['path']}  {port['description']}")
    if len(found) == 1 or not talk.asks:
        return [port["path"] for port in found]
    chosen = talk.ask("which port (number; Enter: try each)", "--port", "all")
    if chosen.isdecimal() and 1 <= int(chosen) <= len(found):
        return [found[int(chosen) - 1]["path"]]
    return [port["path"] for port in found] if chosen == "all" else [chosen]


def _announced(talk: Talk) -> list[dict[str, str]]:
    """Return the products that say in the network that they are there, as ports."""
    from agent.ports import announced  # noqa: PLC0415 (memory: rarely asked)

    try:
        found = asyncio.run(announced.announced_products(LISTENED_S))
    except ModuleNotFoundError:
        raise SetupError(f"{_NO_PORT}; {_FINDS}") from None
    except OSError:
        return []
    if found:
        talk.say("no serial port; these are in the network, by their own word:")
    return [{"path": address, "description": name} for address, name in found]


def _at_address(
    args: argparse.Namespace, talk: Talk, host: str, access: Lines
) -> tuple[str, Lines] | None:
    """Return the port of what is at an address, and what lets us in; None: nothing is known."""
    from agent.ports.at_address import at_address, token_at  # noqa: PLC0415 (memory: rarely asked)

    table = _access(f"{host.rstrip('/')}/any", access)
    found = asyncio.run(at_address(host, table, talk.say, args.seconds))
    if found is None:
        return None
    talk.say(f"{found.port}: {found.product.name}")
    if not found.wants_token:
        return found.port, access
    token = asyncio.run(token_at(found, talk.say))
    file = token_file(args.config)
    if file.exists():  # which --replace allows, or nothing would have been looked for
        file.replace(file.with_name(file.name + ".before"))
    write_new(file, token + "\n", 0o600)
    talk.say(f"written: {file}")
    where = json.dumps(str(file.absolute()))
    return found.port, (f'access.certificate = "{found.pin}"', f"access.token_file = {where}")


def _probe(
    args: argparse.Namespace, talk: Talk, port: str, access: Lines, wanted: set[str]
) -> Found | None:
    from agent.ports.probe import probe  # noqa: PLC0415 (memory: the service never probes)

    table = _access(port, access)
    talk.say(f"{port}: looking for a meter; this takes some seconds for each speed")
    probing = probe(port, talk.say, seconds=args.seconds, wanted=wanted, access=table)
    outcome, tried = asyncio.run(probing)
    for one in tried:
        talk.say(f"  {one.text()}")
    return outcome


def _access(port: str, access: Lines) -> AccessTable | None:
    return parse_meter("\n".join([f"port = {json.dumps(port)}", *access]), "--port").access


def _options(lines: Lines) -> str:
    """Return the options for a meter that prints lines, which alone do not say what they mean."""
    field = '{ field = "NAME", quantity = "power", unit = "W" }'
    return " ".join(f"--set '{line}'" for line in (*lines[2:], f"fields = [{field}]"))


def _show(talk: Talk, lines: Lines) -> None:
    """Show one telegram's values to the person there, and to nobody else."""
    if not (talk.asks and sys.stdout.isatty()):
        return
    table = parse_meter("\n".join(lines[1:]), "[meter]")
    talk.say("\nWhat it says now (shown here only, kept nowhere):")
    asyncio.run(read_meter(table, once=True))
    if not talk.agrees("is this your meter", "--yes"):
        raise SetupError("setup: name another port with --port; nothing was written")
