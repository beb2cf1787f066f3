"""The command `edge-ldp simulate`: hands over to a simulated meter, homes or a fleet."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

KINDS = {
    "meter": ("firmware_stubs.meter.main", "a DSMR P1 meter on a pseudo-terminal"),
    "homes": ("firmware_stubs.homes.main", "homes with real load series on one MQTT connection"),
    "fleet": ("firmware_stubs.fleet.main", "a whole fleet's frames at a rate, some of them bad"),
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
