"""The command `edge-ldp simulate`: hands over to a simulated meter, a fleet or a load."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

KINDS = {
    "meter": ("firmware_stubs.meter.main", "a DSMR P1 meter on a pseudo-terminal"),
    "fleet": ("firmware_stubs.fleet.main", "homes with real load series on one MQTT connection"),
    "load": (
        "firmware_stubs.load.main",
        "much traffic, some of it bad, and whether all was counted",
    ),
}
EXIT_USAGE = 2


def main(argv: Sequence[str]) -> int:
    """Run `edge-ldp simulate KIND ...` and return its exit code; 2 for wrong usage."""
    if argv and argv[0] in KINDS:
        return int(import_module(KINDS[argv[0]][0]).main(argv[1:]))
    usage = "usage: edge-ldp simulate KIND [...]\n\nkinds (each has --help):\n" + "\n".join(
        f"  {name:<7} {what}" for name, (_, what) in KINDS.items()
    )
    if argv and argv[0] in ("-h", "--help"):
        sys.stdout.write(usage + "\n")
        return 0
    sys.stderr.write(usage + "\n")
    return EXIT_USAGE
