"""Which registers of a meter give which reading: one rule for every protocol with OBIS numbers.

Which readings there are depends on which registers are shown, never on what they show, and only
the registers that are used are judged. Power comes from the first of these that is there: the net
power (16.7.0); power drawn and given (1.7.0, 2.7.0); the phases' sum, if all phases are there; the
power without a sign (15.7.0). Standard: IEC 62056-61 (groups C.D.E); what captures and owners'
reports show (docs/adr/0013-meters.md). docs/faults.md, SER-28..30.
"""

from collections.abc import Callable, Collection
from typing import NamedTuple

from agent.meters.reading import Reading, Withheld
from agent.meters.scale import rounded

NET, DRAWN, GIVEN, ABSOLUTE = "16.7.0", "1.7.0", "2.7.0", "15.7.0"
DRAWN_ENERGY, GIVEN_ENERGY = "1.8.0", "2.8.0"
_TARIFFS = range(1, 64)
_ENERGIES = (
    ("energy_import", DRAWN_ENERGY, tuple(f"1.8.{n}" for n in _TARIFFS)),
    ("energy_export", GIVEN_ENERGY, tuple(f"2.8.{n}" for n in _TARIFFS)),
)
_PHASES = {
    NET: ("36.7.0", "56.7.0", "76.7.0"),
    DRAWN: ("21.7.0", "41.7.0", "61.7.0"),
    GIVEN: ("22.7.0", "42.7.0", "62.7.0"),
}
_ALL_PHASES = 3
_OTHER_PHASES = frozenset(map(str, range(41, 81)))  # group C: 21 to 40 is the first phase's
POWERS = (NET, DRAWN, GIVEN, ABSOLUTE, *(key for keys in _PHASES.values() for key in keys))
REACTIVE, REACTIVE_GIVEN = "3.7.0", "4.7.0"
JUDGED = dict.fromkeys(POWERS, "W") | {
    key: "Wh" for _, total, tariffs in _ENERGIES for key in (total, *tariffs)
}
"""The unit of each register that refuses its telegram where it cannot be read, or stands twice."""

UNIT_OF = {**JUDGED, REACTIVE: "var", REACTIVE_GIVEN: "var"}
"""The unit of each register that may be read; all others are passed over."""

STATUS = "96.5.0"
"""Where a readout shows its status word."""


class Signs(NamedTuple):
    """What is known beside the numbers.

    `given`: whether power is given to the grid, where a status word says it. `unsigned`: power
    registers whose form has no sign. `has_others`: whether anything shows a phase but the first.
    """

    given: bool | None = None
    unsigned: Collection[str] = ()
    has_others: bool = False


NO_SIGNS = Signs()


class Electricity(NamedTuple):
    """The readings of one telegram, and the quantities that it shows and nobody can tell."""

    readings: tuple[Reading, ...]
    withheld: tuple[Withheld, ...]


def electricity(
    shown: Collection[str], value: Callable[[str], int], signs: Signs = NO_SIGNS
) -> Electricity:
    """Return what registers give; `value` returns one of them in NANO parts of its unit.

    Energy: the total where the meter shows it, else the sum of the tariffs it shows.
    """
    energies = []
    for quantity, total, tariffs in _ENERGIES:
        keys = (total,) if total in shown else [key for key in tariffs if key in shown]
        if keys:
            energies.append(Reading(quantity, rounded(sum(map(value, keys)))))
    powers = _powers(shown, value, signs, counts_both=len(energies) == len(_ENERGIES))
    reactive = []
    if REACTIVE in shown:
        given = value(REACTIVE_GIVEN) if REACTIVE_GIVEN in shown else 0
        reactive.append(Reading("reactive_power", rounded(value(REACTIVE) - given)))
    return Electricity((*powers.readings, *energies, *reactive), powers.withheld)


def is_other_phase(key: str) -> bool:
    """Say whether a register C.D.E is of the second or third phase."""
    return key.partition(".")[0] in _OTHER_PHASES


def is_profile(key: str) -> bool:
    """Say whether a register C.D.E begins a list of past values: what follows may repeat others."""
    return key.startswith(("98.", "99.1.", "99.2.", "P."))


def _powers(
    shown: Collection[str], value: Callable[[str], int], signs: Signs, *, counts_both: bool
) -> Electricity:
    """Return power drawn and power given, each at least 0."""
    parts = {key: (key,) for key in (NET, DRAWN, GIVEN) if key in shown} or _summed(shown, signs)
    watts = {key: rounded(sum(map(value, keys))) for key, keys in parts.items()}
    signed = {key for key, keys in parts.items() if not any(one in signs.unsigned for one in keys)}
    if NET in watts:
        return _net(watts[NET], signs, has_sign=NET in signed)
    if watts.keys() == {DRAWN} <= signed and counts_both:
        return _net(watts[DRAWN], signs, has_sign=True)  # it goes below 0 while feeding in
    if watts:
        return Electricity(_one_way(watts, signs), ())
    if ABSOLUTE in shown:
        return _net(abs(rounded(value(ABSOLUTE))), signs, has_sign=False)
    lacks_phases = any(key in shown for keys in _PHASES.values() for key in keys)
    return Electricity((), _both("phase") if lacks_phases else ())


def _summed(shown: Collection[str], signs: Signs) -> dict[str, tuple[str, ...]]:
    """Return the phases that are summed for each total: all three, or the only one there is."""
    found = {total: tuple(key for key in keys if key in shown) for total, keys in _PHASES.items()}
    whole = {
        total: keys
        for total, keys in found.items()
        if len(keys) == _ALL_PHASES or (keys == _PHASES[total][:1] and not signs.has_others)
    }
    if NET in whole:
        return {NET: whole[NET]}
    return {} if any(found[total] and total not in whole for total in (DRAWN, GIVEN)) else whole


def _net(watts: int, signs: Signs, *, has_sign: bool) -> Electricity:
    """Return a power as drawn or given: by the status word where there is one, else by its sign.

    A minus sign stands against a word that says drawn: feed-in is never taken for consumption.
    """
    if signs.given is None and not has_sign:
        return Electricity((), _both("direction"))
    net = -abs(watts) if signs.given else watts
    return Electricity(
        (Reading("power", max(net, 0)), Reading("power_export", max(-net, 0))),
        (),
    )


def _one_way(watts: dict[str, int], signs: Signs) -> tuple[Reading, ...]:
    """Return registers of one direction each; one alone is 0 while the word says the other."""
    is_alone = len(watts) == 1
    return tuple(
        Reading(quantity, 0 if is_alone and signs.given is other else max(watts[key], 0))
        for quantity, key, other in (("power", DRAWN, True), ("power_export", GIVEN, False))
        if key in watts
    )


def _both(why: str) -> tuple[Withheld, ...]:
    return (Withheld("power", why), Withheld("power_export", why))
