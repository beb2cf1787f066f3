"""The command `edge-ldp`: hands over to the part that serves, loaded only when asked for.

The one place that knows the other packages by name; it imports none of them before it is told to,
so the library alone needs no dependency and a missing extra gives a sentence, not a traceback.
"""

import os
import sys
from collections.abc import Sequence
from importlib import import_module

from edge_ldp.version import __version__

COMMANDS = {
    "agent": ("agent.main", "agent", "read a meter, randomise, report (run, check, read, ports)"),
    "aggregator": ("aggregator.main", "aggregator", "collect, estimate, choose θ, answer queries"),
    "certify": ("edge_ldp.certify.main", "", "prove a mechanism or a plan, or check a certificate"),
    "estimate": ("edge_ldp.estimate.main", "", "the density behind a survey's counts, no NumPy"),
    "evaluate": ("aggregator.evaluate.main", "evaluate", "the papers' experiments on any data"),
    "forecast": ("edge_ldp.sums.main", "evaluate", "intervals to expect, before anything is asked"),
    "keys": ("edge_ldp.shell.keys", "sign", "make or show the keys that plans are signed with"),
    "replay": ("aggregator.shell.replay_command", "archive", "count archived reports anew"),
    "simulate": ("firmware_stubs.main", "agent", "simulated meter, homes and fleet"),
    "demo": ("firmware_stubs.demo.main", "demo", "the whole main job on bundled real data"),
}
EXIT_USAGE = 2
_OURS = ("agent", "aggregator", "edge_ldp", "firmware_stubs")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; 2 for wrong usage or a missing extra."""
    args = list(sys.argv[1:] if argv is None else argv)
    if args[:1] == ["--version"]:
        sys.stdout.write(f"edge-ldp {__version__}\n")
        return 0
    if not args or args[0] in ("-h", "--help"):
        sys.stdout.write(_usage())
        return 0 if args else EXIT_USAGE
    if args[0] not in COMMANDS:
        sys.stderr.write(f"edge-ldp: no command {args[0]!r}\n\n{_usage()}")
        return EXIT_USAGE
    module, extra, _ = COMMANDS[args[0]]
    # our matrices are small: more threads only wait for each other, and other counts of them round
    # other ways
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    return hand_over(args[0], module, extra, args[1:])


def hand_over(command: str, module: str, extra: str, args: Sequence[str]) -> int:
    """Run the part that serves a command; where a package is missing name the extra, return 2."""
    try:
        run = import_module(module).main
    except ModuleNotFoundError as exc:
        if exc.name is None or exc.name.split(".")[0] in _OURS:
            raise
        sys.stderr.write(
            f"edge-ldp {command} needs the package {exc.name!r}: pip install 'edge-ldp[{extra}]'\n"
        )
        return EXIT_USAGE
    return int(run(args))


def _usage() -> str:
    lines = [f"  {name:<11} {what}" for name, (_, _, what) in COMMANDS.items()]
    return (
        "usage: edge-ldp COMMAND [...]\n\n"
        "Meter readings randomised on the device, before they are stored or sent.\n\n"
        "commands (each has --help):\n" + "\n".join(lines) + "\n"
    )


if __name__ == "__main__":
    sys.exit(main())
