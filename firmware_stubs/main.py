"""The command `edge-ldp simulate`: hands over to a simulated meter, homes or a fleet."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from edge_ldp.arguments import meant
from edge_ldp.cli import hand_over

if TYPE_CHECKING:
    from collections.abc import Sequence

KINDS = {  # its room
    "meter": ("meters", "a DSMR P1 meter on a pseudo-terminal"),
    "homes": (
        "simulator.homes",
        "homes with real load series on one MQTT connection",
    ),
    "fleet": ("simulator.fleet", "a whole fleet's frames at a rate, some of them bad"),
}
EXIT_USAGE = 2


def main(argv: Sequence[str]) -> int:
    """Run `edge-ldp simulate KIND ...` and return its exit code; 2 for wrong usage."""
    if argv and argv[0] in KINDS:
        room, _ = KINDS[argv[0]]
        module = f"firmware_stubs.{room}.main"
        return hand_over(f"simulate {argv[0]}", module, "edge-ldp-demo", argv[1:])
    usage = "usage: edge-ldp simulate KIND [...]\n\nkinds (each has --help):\n" + "\n".join(
        f"  {name:<7} {what}" for name, (_, what) in KINDS.items()
    )
    if argv and argv[0] in ("-h", "--help"):
        sys.stdout.write(usage + "\n")
        return 0
    problem = f"\nedge-ldp simulate: no kind {argv[0]!r}{meant(argv[0], KINDS)}\n" if argv else ""
    sys.stderr.write(usage + "\n" + problem)
    return EXIT_USAGE
