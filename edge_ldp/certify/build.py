"""From names and numbers, or from a plan's integers, to what is certified."""

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

from edge_ldp import mechanisms
from edge_ldp.device.errors import ParameterError
from edge_ldp.oracles import Grr, HaarHrr, Hierarchy, Hrr, Olh, Oracle, Oue, oracle_from_plan
from edge_ldp.ratio import Epsilon

Subject: TypeAlias = mechanisms.Mechanism | Oracle
SPAN = 65_536  # of the default range: as wide as any number of buckets or knots


class Recipe(NamedTuple):
    """A name of the command line: what makes it, and which options it takes."""

    make: Callable[..., Subject]
    options: tuple[str, ...]


RANGE = ("low", "high")
KINDS: dict[str, Recipe] = {
    mechanisms.SquareWave.name: Recipe(mechanisms.SquareWave, (*RANGE, "size")),
    mechanisms.StochasticRounding.name: Recipe(mechanisms.StochasticRounding, RANGE),
    mechanisms.Piecewise.name: Recipe(mechanisms.Piecewise, (*RANGE, "size")),
    mechanisms.Hybrid.name: Recipe(mechanisms.Hybrid, (*RANGE, "size")),
    mechanisms.Tuned.name: Recipe(mechanisms.Tuned, (*RANGE, "bits")),
    mechanisms.GeneralWave.name: Recipe(mechanisms.GeneralWave, (*RANGE, "size", "top")),
    Grr.name: Recipe(Grr, ("size",)),
    Olh.name: Recipe(Olh, ("size",)),
    Hrr.name: Recipe(Hrr, ("size",)),
    Oue.name: Recipe(Oue, ("size",)),
    Hierarchy.name: Recipe(Hierarchy, ("size", "fanout")),
    HaarHrr.name: Recipe(HaarHrr, ("size",)),
}
ORACLES = frozenset({Grr.name, Olh.name, Hrr.name, Oue.name, Hierarchy.name, HaarHrr.name})
CATEGORIES = 1024  # default size of the oracles


def build(name: str, epsilon: Epsilon, options: Mapping[str, int | str]) -> Subject:
    """Return the mechanism or oracle of a name; raises ParameterError naming the option.

    Defaults: low 0, high = low + 65536; sizes as in the library, 1024 for categories.
    """
    recipe = KINDS.get(name)
    if recipe is None:
        raise ParameterError("mechanism", "one of " + ", ".join(KINDS))
    for option in options:
        if option not in recipe.options:
            takers = ", ".join(name for name, recipe in KINDS.items() if option in recipe.options)
            raise ParameterError(option, f"only with {takers}")
    given: dict[str, int | str] = dict(options)
    if name in ORACLES:
        given.setdefault("size", CATEGORIES)
    else:
        low = given.setdefault("low", 0)
        given.setdefault("high", int(low) + SPAN)
    return recipe.make(epsilon=epsilon, **given)


def subject_of(table: Mapping[str, object]) -> Subject:
    """Return the mechanism or oracle of a plan's table; raises ParameterError for the field."""
    is_oracle = str(table.get("mechanism")) in ORACLES
    return oracle_from_plan(table) if is_oracle else mechanisms.from_plan(table)
