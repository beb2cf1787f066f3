"""The command `edge-ldp`: hands over to the part that serves, loaded only when asked for.

The services and the demo are distributions of their own, which say by an entry point what serves a
command. So the library alone needs no dependency, and what is missing gives a sentence.
"""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from edge_ldp.arguments import meant
from edge_ldp.extras import pip_install
from edge_ldp.version import __version__


class Command(NamedTuple):
    """What a command does, what pip installs for it, and its module if that is in the library."""

    what: str
    needs: str
    module: str = ""


_AGENT, _AGGREGATOR, _DEMO = "edge-ldp-agent", "edge-ldp-aggregator", "edge-ldp-demo"
_STUDIES = "edge-ldp-studies"
COMMANDS = {
    "agent": Command("read a meter, randomise, report (run, check, read, ports)", _AGENT),
    "aggregator": Command("collect, estimate, choose θ, answer queries", _AGGREGATOR),
    "certify": Command(
        "prove a mechanism or a plan, or check a certificate",
        "edge-ldp",
        "edge_ldp.certify.certify_command",
    ),
    "console": Command("look at a fleet in a browser; API, metrics", f"{_AGGREGATOR}[console]"),
    "dossier": Command("what a data-protection officer asks", _AGGREGATOR),
    "estimate": Command(
        "the density behind a survey's counts, no NumPy",
        "edge-ldp",
        "edge_ldp.gateway.estimate_command",
    ),
    "evaluate": Command("the papers' experiments on any data", _STUDIES),
    "forecast": Command(
        "intervals to expect, before anything is asked",
        "edge-ldp[plot]",
        "edge_ldp.sums.forecast_command",
    ),
    "keys": Command("make or show the keys that plans are signed with", f"{_AGGREGATOR}[sign]"),
    "replay": Command("count archived reports anew", f"{_AGGREGATOR}[archive]"),
    "simulate": Command("simulated meter, homes and fleet", _DEMO),
    "tune": Command("the best table for an ε that has no ready one", _STUDIES),
    "demo": Command("the whole main job on bundled real data", _DEMO),
}
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
GROUP = "edge_ldp.commands"
RARELY = ("urllib.parse", "urllib.request", "uuid")  # paho's proxies, websockets: 1.5 MiB or 2
_OURS = ("agent", "aggregator", "edge_ldp", "firmware_stubs", "studies")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; 2 for wrong usage or what is not installed."""
    args = list(sys.argv[1:] if argv is None else argv)
    if args[:1] == ["--version"]:
        sys.stdout.write(f"edge-ldp {__version__}\n")
        return 0
    if not args or args[0] in ("-h", "--help"):
        sys.stdout.write(_usage())
        return 0 if args else EXIT_USAGE
    name = args[0]
    if name not in COMMANDS:
        sys.stderr.write(f"{_usage()}\nedge-ldp: no command {name!r}{meant(name, COMMANDS)}\n")
        return EXIT_USAGE
    command = COMMANDS[name]
    module = command.module or serving(name)
    if not module:
        return not_installed(name, command.needs.partition("[")[0])
    # our matrices are small: more threads only wait for each other, and other counts of them round
    # other ways
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    return hand_over(name, module, command.needs, args[1:])


def not_installed(command: str, part: str) -> int:
    """Say in one line what a command comes with and how to install it; return 2."""
    whole = part.partition("[")[0]
    sys.stderr.write(
        f"edge-ldp {command} comes with {whole}, which is not installed: {pip_install(part)}\n"
    )
    return EXIT_USAGE


def hand_over(command: str, module: str, needs: str, args: Sequence[str]) -> int:
    """Run the part that serves a command; where a package is missing name the remedy, return 2.

    Interrupted (Ctrl-C) it returns 130, as shells do, without a traceback.
    """
    for rarely in RARELY:
        later(rarely)
    try:
        run = import_module(module).main
    except ModuleNotFoundError as exc:
        if exc.name is None or exc.name.split(".")[0] in _OURS:
            raise
        sys.stderr.write(
            f"edge-ldp {command} needs the package {exc.name!r}: {pip_install(needs)}\n"
        )
        return EXIT_USAGE
    try:
        return int(run(args))
    except KeyboardInterrupt:
        sys.stderr.write("\ninterrupted\n")
        return EXIT_INTERRUPTED


def serving(command: str, group: str = GROUP) -> str:
    """Return the module whose `main` serves a command by an installed entry point; "" for none.

    Read by hand: importlib.metadata would cost the agent 3 MiB for as long as it runs.
    """
    for folder in sys.path:
        for file in sorted(Path(folder or ".").glob("*.dist-info/entry_points.txt")):
            section = ""
            for line in file.read_text("utf-8", errors="replace").splitlines():
                key, equals, value = (part.strip() for part in line.partition("="))
                if key.startswith("["):
                    section = key
                elif section == f"[{group}]" and equals and key == command:
                    return value.removesuffix(":main")
    return ""


def later(name: str) -> None:
    """Have a module of the library imported when something of it is first asked for."""
    if name in sys.modules:
        return
    stand_in = ModuleType(name)

    def of_the_real(attribute: str) -> Any:
        if sys.modules.get(name) is stand_in:
            del sys.modules[name]
        return getattr(import_module(name), attribute)

    stand_in.__getattr__ = of_the_real  # type: ignore[method-assign] # PEP 562
    package, _, last = name.rpartition(".")
    if package:
        setattr(import_module(package), last, stand_in)
    sys.modules[name] = stand_in


def _usage() -> str:
    lines = [f"  {name:<11} {command.what}" for name, command in COMMANDS.items()]
    return (
        "usage: edge-ldp COMMAND [...]\n\n"
        "Meter readings randomised on the device, before they are stored or sent.\n\n"
        "commands (each has --help):\n" + "\n".join(lines) + "\n"
    )


if __name__ == "__main__":
    sys.exit(main())
