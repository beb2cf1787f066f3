"""The command `edge-ldp simulate`: hands over to a simulated meter, homes or a fleet."""

import sys
from collections.abc import Sequence

from edge_ldp.arguments import meant
from edge_ldp.cli import hand_over, not_installed, serving

KINDS = {  # its module, unless it comes with the studies
    "meter": ("firmware_stubs.meters.meter_command", "a DSMR P1 meter on a pseudo-terminal"),
    "homes": (
        "firmware_stubs.simulator.homes_command",
        "homes with real load series on one connection",
    ),
    "fleet": ("", "a whole fleet's frames at a rate, some of them bad; with edge-ldp-studies"),
}
GROUP = "edge_ldp.simulators"
STUDIES = "edge-ldp-studies[fleets]"
EXIT_USAGE = 2


def main(argv: Sequence[str]) -> int:
    """Run `edge-ldp simulate KIND ...` and return its exit code; 2 for wrong usage."""
    if argv and argv[0] in KINDS:
        command, own = f"simulate {argv[0]}", KINDS[argv[0]][0]
        module = own or serving(argv[0], GROUP)
        if not module:
            return not_installed(command, STUDIES)
        return hand_over(command, module, "edge-ldp-demo" if own else STUDIES, argv[1:])
    usage = "usage: edge-ldp simulate KIND [...]\n\nkinds (each has --help):\n" + "\n".join(
        f"  {name:<7} {what}" for name, (_, what) in KINDS.items()
    )
    if argv and argv[0] in ("-h", "--help"):
        sys.stdout.write(usage + "\n")
        return 0
    problem = f"\nedge-ldp simulate: no kind {argv[0]!r}{meant(argv[0], KINDS)}\n" if argv else ""
    sys.stderr.write(usage + "\n" + problem)
    return EXIT_USAGE
