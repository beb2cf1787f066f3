"""What is said about what a meter shows and is not read: one text for log, health, read and probe.

No text names a value. Source: docs/faults.md, SER-28, SER-30; docs/meters.md.
"""

from collections.abc import Iterable

from agent.meters.reading import Withheld

WITHHELD = {
    "direction": (
        "the meter tells its power without a sign, and no status word says whether it is drawn or "
        "given: report energy_import and energy_export, which say it, or ask the grid operator for "
        "the full data set"
    ),
    "phase": (
        "the meter tells the power of some of its phases and no total: report energy_import and "
        "energy_export, or ask the grid operator for the full data set"
    ),
}
"""Why a quantity that is shown is not read, and what helps."""


def withheld_text(withheld: Iterable[Withheld], wanted: Iterable[str] | None = None) -> str:
    """Return which quantities are withheld and why, of `wanted` alone where given; "" for none."""
    asked = None if wanted is None else set(wanted)
    named: dict[str, list[str]] = {}
    for one in withheld:
        if asked is None or one.quantity in asked:
            named.setdefault(one.why, []).append(one.quantity)
    return "; ".join(
        f"no {' and no '.join(names)}: {WITHHELD[why]}" for why, names in named.items()
    )
