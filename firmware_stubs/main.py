"""The command `edge-ldp simulate`: hands over to a simulated meter, homes or a fleet."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from edge_ldp.cli import hand_over

if TYPE_CHECKING:
    from collections.abc import Sequence

KINDS = {  # the extra that has what it needs
    "meter": ("agent", "a DSMR P1 meter on a pseudo-terminal"),
    "homes": ("aggregator", "homes with real load series on one MQTT connection"),
    "fleet": ("demo", "a whole fleet's frames at a rate, some of them bad"),
}
EXIT_USAGE = 2


def main(argv: Sequence[str]) -> int:
    """Run `edge-ldp simulate KIND ...` and return its exit code; 2 for wrong usage."""
    if argv and argv[0] in KINDS:
        module, (extra, _) = f"firmware_stubs.{argv[0]}.main", KINDS[argv[0]]
        return hand_over(f"simulate {argv[0]}", module, extra, argv[1:])
    usage = "usage: edge-ldp simulate KIND [...]\n\nkinds (each has --help):\n" + "\n".join(
        f"  {name:<7} {what}" for name, (_, what) in KINDS.items()
    )
    if argv and argv[0] in ("-h", "--help"):
        sys.stdout.write(usage + "\n")
        return 0
    sys.stderr.write(usage + "\n")
    return EXIT_USAGE
