"""What a public function takes, and how it refuses the rest: one rule for a kind of argument.

    @taking(ceiling=integer_in(least=1), level=inner_chance, rng=GENERATOR)

A rule takes an argument's name and value, and returns the value as the function wants it, or raises
ParameterError, which never repeats the value. Integers of NumPy and pandas are integers here; a
truth value, an array, a masked value or NaN is no number.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache, wraps
from math import inf, isfinite, isnan, nan
from numbers import Real
from operator import index
from typing import Any, SupportsIndex, TypeAlias, TypeVar, cast

from edge_ldp.device.errors import ParameterError

MAX_EXACT = 1 << 53  # beyond, floats no longer count
C = TypeVar("C", bound=Callable[..., Any])
Rule: TypeAlias = Callable[[str, Any], Any]


def exact_integer(name: str, given: object) -> int:
    """Return an integer of any type as Python's own, which never wraps; raises ParameterError."""
    if type(given) is int:  # asking a protocol takes 20 times as long
        return given
    if isinstance(given, bool) or not isinstance(given, SupportsIndex):
        raise ParameterError(name, "an integer")
    try:
        found = index(given)
    except TypeError:  # an array promises what only a scalar can do
        raise ParameterError(name, "an integer") from None
    if is_masked(given):
        raise ParameterError(name, "an integer that is not masked")
    return found


def integer_in(least: int | None = None, most: int | None = None) -> Rule:
    """Return the rule of an integer from `least` to `most`, both included where they are given."""
    bounds = "".join(
        f" {word} {end:,}" for word, end in (("from", least), ("to", most)) if end is not None
    )

    def taken(name: str, given: object) -> int:
        number = exact_integer(name, given)
        if (least is not None and number < least) or (most is not None and number > most):
            raise ParameterError(name, f"an integer{bounds}")
        return number

    return taken


def real(name: str, given: object) -> float:
    """Return any number but NaN as a float; raises ParameterError for one too large, too."""
    if type(given) is bool or not isinstance(given, (Real, Decimal)):
        raise ParameterError(name, "a number")
    try:
        found = float(given)
    except (OverflowError, ValueError):  # too large for a float, or a Decimal that signals
        found = nan
    if isnan(found):
        raise ParameterError(name, "a number")
    return found


def finite(least: float = -inf, most: float = inf, *, inner: bool = False) -> Rule:
    """Return the rule of a finite number from `least` to `most`; `inner`: strictly between them."""
    words = ("above", "and below") if inner else ("from", "to")
    ends = [f"{word} {end:g}" for word, end in zip(words, (least, most), strict=True)]
    expected = " ".join(["a finite number", *(end for end in ends if "inf" not in end)])

    def taken(name: str, given: object) -> float:
        found = given if type(given) is float else real(name, given)
        inside = least < found < most if inner else least <= found <= most
        if not isfinite(found) or not inside:
            raise ParameterError(name, expected)
        return found

    return taken


COUNTABLE = integer_in(-MAX_EXACT, MAX_EXACT)
SIZE = integer_in(1, 1 << 24)
chance = finite(0, 1)
inner_chance = finite(0, 1, inner=True)


def a(*kinds: str) -> Rule:
    """Return the rule of an instance of one of some classes, by module and name.

    By name, so that no check imports what nobody made an instance of.
    """
    names = " or ".join(kind.rpartition(".")[2] for kind in kinds)

    def taken(name: str, given: object) -> object:
        if _kinds(cast("Any", type(given))).isdisjoint(kinds):
            raise ParameterError(name, f"a {names}")
        return given

    return taken


@lru_cache(maxsize=256)
def _kinds(made: Any) -> frozenset[str]:
    return frozenset(f"{kind.__module__}.{kind.__qualname__}" for kind in made.__mro__)


MECHANISM = a("edge_ldp.mechanisms.base.Mechanism")
MODELLED = a("edge_ldp.mechanisms.base.Mechanism", "edge_ldp.estimate.operator.Model")
ORACLE = a("edge_ldp.oracles.base.Oracle")
DENSITY = a("edge_ldp.estimate.density.Density")
SUPPORTS = a("edge_ldp.estimate.pure.Supports")
GENERATOR = a("numpy.random._generator.Generator")
FRACTION = a("fractions.Fraction")
BYTES = a("builtins.bytes")
TRUTH = a("builtins.bool", "numpy.bool", "numpy.bool_")


def optional(rule: Rule) -> Rule:
    """Return the rule that takes None, too."""
    return lambda name, given: None if given is None else rule(name, given)


def kept(rule: Rule) -> Rule:
    """Return the rule that checks as another does, and leaves what is given as it is."""

    def taken(name: str, given: object) -> object:
        rule(name, given)
        return given

    return taken


def word(*known: str) -> Rule:
    """Return the rule of one of some words."""

    def taken(name: str, given: object) -> object:
        if not isinstance(given, str) or given not in known:
            raise ParameterError(name, "|".join(known))
        return given

    return taken


def every(rule: Rule) -> Rule:
    """Return what `each` does, of a rule that looks at types alone: each type is asked once."""

    def taken(name: str, given: object) -> object:
        many = _listed(name, given)
        for one in {type(one): one for one in many}.values():
            rule(name, one)
        return many

    return taken


def _listed(name: str, given: object) -> Sequence[Any]:
    many = given.tolist() if hasattr(given, "tolist") else given  # of NumPy, of pandas
    if not isinstance(many, Sequence) or isinstance(many, (str, bytes)):
        raise ParameterError(name, "a list")
    return many


def each(rule: Rule, count: int | None = None) -> Rule:
    """Return the rule of a list, tuple or array of what a rule takes, given as a list."""

    def taken(name: str, given: object) -> object:
        many = _listed(name, given)
        if count not in (None, len(many)):
            raise ParameterError(name, f"a list of {count}")
        return [rule(name, one) for one in many]

    return taken


def mapping(key: Rule | None = None, value: Rule | None = None) -> Rule:
    """Return the rule of a mapping, and of what it maps where that is given."""

    def taken(name: str, given: object) -> object:
        if not isinstance(given, Mapping):
            raise ParameterError(name, "a table")
        for one, rule in ((list(given), key), (list(given.values()), value)):
            if rule is not None:
                each(rule)(name, one)
        return given

    return taken


def is_masked(given: object) -> bool:
    """Say whether NumPy's masked values are among what is given: they are missing, not numbers."""
    many = given if isinstance(given, (list, tuple)) else [given]
    made = {kind.__qualname__ for one in {type(one) for one in many} for kind in one.__mro__}
    if "MaskedArray" not in made:
        return False  # without loading numpy.ma
    import numpy as np  # noqa: PLC0415 (only where there are arrays)

    return any(bool(np.ma.is_masked(one)) for one in many)


def row(rule: Rule) -> Rule:
    """Return the rule of an array, of one dimension, of what a rule of arrays takes."""

    def taken(name: str, given: object) -> Any:
        found = rule(name, given)
        if found.ndim != 1:
            raise ParameterError(name, "a list of numbers")
        return found

    return taken


def iterable(name: str, given: object) -> Iterable[Any]:
    """Return what can be gone through; raises ParameterError for the rest."""
    try:
        iter(cast("Iterable[Any]", given))
    except TypeError:  # an array of no dimension promises it, too
        raise ParameterError(name, "a list") from None
    return cast("Iterable[Any]", given)


def floats(name: str, given: object) -> Any:
    """Return an array of floats, which may be infinite; raises ParameterError for NaN, too."""
    found = array(name, given).astype("float64")
    if (found != found).any():  # noqa: PLR0124 (NaN)
        raise ParameterError(name, "numbers, none of them NaN")
    return found


def ints(name: str, given: object) -> Any:
    """Return an array of integers of 64 bits; floats are taken where they are whole numbers."""
    found = array(name, given)
    if found.dtype.kind == "f":
        if not ((found == found.round()) & (abs(found) <= MAX_EXACT)).all():
            raise ParameterError(name, "whole numbers")
    elif found.dtype.kind == "u" and found.size and found.max() >> 63:
        raise ParameterError(name, "whole numbers below 2**63")
    return found.astype("int64")


def array(name: str, given: object) -> Any:
    """Return an array of numbers as they are; raises ParameterError for masked ones, too."""
    import numpy as np  # noqa: PLC0415 (only where there are arrays)

    if is_masked(given):
        raise ParameterError(name, "an array of numbers, none of them masked")
    try:
        found = np.asarray(given)
    except (TypeError, ValueError, OverflowError):  # rows of unequal length
        raise ParameterError(name, "an array of numbers") from None
    if found.size and found.dtype.kind not in "iuf":
        raise ParameterError(name, "an array of numbers")
    return found if found.dtype.kind in "iuf" else found.astype("float64")


def taking(**rules: Rule) -> Callable[[C], C]:
    """Return the decorator of a function or class whose named arguments are taken by rules.

    Of a class it is what makes an object.
    """

    def decorate(what: C) -> C:
        if isinstance(what, type):
            what.__init__ = _taking(what.__init__, rules)  # type: ignore[misc]
            return what
        return cast("C", _taking(what, rules))

    return decorate


def _taking(function: Callable[..., Any], rules: Mapping[str, Rule]) -> Callable[..., Any]:
    code = function.__code__
    places = {name: at for at, name in enumerate(code.co_varnames[: code.co_argcount])}

    @wraps(function)
    def checked(*args: Any, **named: Any) -> Any:
        given = list(args)
        for name, rule in rules.items():
            at = places.get(name, len(given))
            if name in named:
                named[name] = rule(name, named[name])
            elif at < len(given):
                given[at] = rule(name, given[at])
        return function(*given, **named)

    return checked
