"""Which registers of a meter give which reading: one rule for every protocol with OBIS numbers.

Standard: IEC 62056-61 (groups C.D.E); what the captures hold (docs/adr/0013-meters.md).
"""

from collections.abc import Mapping

from agent.meters.reading import Reading
from agent.meters.scale import rounded

NET, DRAWN, GIVEN, ABSOLUTE = "16.7.0", "1.7.0", "2.7.0", "15.7.0"
DRAWN_ENERGY, GIVEN_ENERGY = "1.8.0", "2.8.0"
TARIFFS = (1, 2, 3, 4)
ENERGIES = (
    ("energy_import", DRAWN_ENERGY, tuple(f"1.8.{n}" for n in TARIFFS)),
    ("energy_export", GIVEN_ENERGY, tuple(f"2.8.{n}" for n in TARIFFS)),
)
UNIT_OF = dict.fromkeys((NET, DRAWN, GIVEN, ABSOLUTE), "W") | {
    key: "Wh" for _, total, tariffs in ENERGIES for key in (total, *tariffs)
}
"""The unit of each register that is read; all others are passed over."""


def electricity(found: Mapping[str, int]) -> tuple[Reading, ...]:
    """Return the readings that registers in NANO parts of their unit give, at most one each.

    Which readings there are depends on which registers there are, never on what they show.
    Energy: the total where the meter shows it, else the sum of the tariffs it shows.
    """
    energies = []
    for quantity, total, tariffs in ENERGIES:
        keys = (total,) if total in found else [key for key in tariffs if key in found]
        if keys:
            energies.append(Reading(quantity, rounded(sum(found[key] for key in keys))))
    return (*_powers(found, {reading.quantity for reading in energies}), *energies)


def _powers(found: Mapping[str, int], energies: set[str]) -> list[Reading]:
    """Return power drawn and power given, each at least 0.

    A net power (16.7.0) is one of both. An absolute one (15.7.0) has no direction but that of the
    only energy register; with registers of both it is passed over.
    """
    if NET in found:
        net = rounded(found[NET])
        return [Reading("power", max(net, 0)), Reading("power_export", max(-net, 0))]
    powers = [
        Reading(quantity, max(rounded(found[key]), 0))
        for quantity, key in (("power", DRAWN), ("power_export", GIVEN))
        if key in found
    ]
    if powers or ABSOLUTE not in found or len(energies) != 1:
        return powers
    quantity = "power" if energies == {"energy_import"} else "power_export"
    return [Reading(quantity, abs(rounded(found[ABSOLUTE])))]
