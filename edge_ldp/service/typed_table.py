"""A table of a configuration file, made into a frozen dataclass; all its faults at once, by key.

What a key may be is its field's annotation: `int`, `float`, `bool`, `str`, `Decimal`, a `Literal`,
`tuple[X, ...]`, `dict[str, Any]`, another such dataclass, several of these, and a number or text
`Annotated` with a `Range` or a `Form`. Nothing is coerced but a number to `float` or `Decimal`. No
value is ever quoted: it may be a secret in the wrong place. Pure.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from decimal import Decimal
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from edge_ldp.arguments import meant
from edge_ldp.device.errors import EdgeLdpError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Table = TypeVar("Table", bound="DataclassInstance")
Fault = tuple[str, str]
"""A key, and the form that was expected of it."""

_TAKES: dict[Any, tuple[type, ...]] = {
    float: (float, int, Decimal),
    Decimal: (Decimal, int),
    dict: (dict,),
    tuple: (list,),
}
_NAMES = {dict: "table", list: "array", tuple: "array", NoneType: "nothing"}


class Range(NamedTuple):
    """Bounds of a number."""

    ge: int | None = None
    gt: int | None = None
    le: int | None = None

    def holds(self, value: int | float | Decimal) -> bool:  # noqa: PYI041 (what TOML has)
        """Say whether a number lies inside; what is no number does not."""
        if value != value:  # noqa: PLR0124 (NaN; a Decimal's cannot be compared with <)
            return False
        return (
            (self.ge is None or value >= self.ge)
            and (self.gt is None or value > self.gt)
            and (self.le is None or value <= self.le)
        )

    def __str__(self) -> str:
        bounds = ((">=", self.ge), (">", self.gt), ("<=", self.le))
        return " and ".join(f"{sign} {bound}" for sign, bound in bounds if bound is not None)


class Form(NamedTuple):
    """A pattern that a text must match as a whole, and what to call it."""

    pattern: str
    told: str

    def holds(self, text: str) -> bool:
        """Say whether a text has this form."""
        return re.fullmatch(self.pattern, text) is not None


Text = Annotated[str, Form(r"[^\x00-\x1f\x7f]+", "text, and no control characters")]


class TableError(EdgeLdpError):
    """A table that is not what it should be; `faults` are all there are, (key, expected) each."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("; ".join(f"{key}: expected {expected}" for key, expected in faults))
        self.faults = faults


def read_table(
    kind: type[Table],
    table: Mapping[str, Any],
    contradictions: Callable[[Table], Iterable[Fault]],
    at: str = "",
) -> Table:
    """Return the dataclass that a table makes; `at` begins every key. Raises TableError.

    `contradictions` are what single keys cannot show. They are told beside wrong keys, which count
    as not written, unless something without a default is among those; of arrays with something
    wrong in them nothing else is told.
    """
    made, faults = _look(kind, table, at)
    if made is not None:
        faults += [one for one in contradictions(made) if not _is_known(one[0], faults)]
    if made is None or faults:
        raise TableError(faults)
    return made


def _is_known(key: str, faults: list[Fault]) -> bool:
    """Say whether a fault of this key is known, of a table that it lies in, or of what is in it."""
    return any(_holds(told, key) or _holds(key, told) for told, _ in faults)


def _holds(outer: str, inner: str) -> bool:
    return inner == outer or inner.startswith((f"{outer}.", f"{outer}["))


def _look(kind: type[Table], table: Mapping[str, Any], at: str) -> tuple[Table | None, list[Fault]]:
    """Return what the good keys of a table make, or None; and what is wrong in it."""
    hints = get_type_hints(kind, include_extras=True)
    known = {field.name: field for field in fields(kind)}
    faults = [(f"{at}{name}", _unknown(name, known)) for name in table if name not in known]
    good = {}
    is_whole = True
    for name, field in known.items():
        value: Any = MISSING
        has_default = (field.default, field.default_factory) != (MISSING, MISSING)
        if name in table:
            value, found = _read(hints[name], table[name], f"{at}{name}")
            faults += found
        elif not has_default:
            faults.append((f"{at}{name}", "a value: the key is missing"))
        if value is not MISSING:
            good[name] = value
        elif not has_default:
            is_whole = False
    return (kind(**good) if is_whole else None), faults


def _unknown(name: str, known: Iterable[str]) -> str:
    """Return what is told of a key that is none; a name close to one is taken for a slip."""
    return "no such key" + meant(name, known)


def _read(kind: Any, value: Any, key: str) -> tuple[Any, list[Fault]]:
    """Return what a value makes by its annotation, or MISSING; and what is wrong in it."""
    for choice, rule in _choices(kind):
        if _fits(choice, value):
            return _make(choice, rule, value, key)
    got = _NAMES.get(type(value), type(value).__name__.lower())
    return MISSING, [(key, f"{_in_words(kind)}, got `{got}`")]


def _make(kind: Any, rule: Any, value: Any, key: str) -> tuple[Any, list[Fault]]:
    """Return the same for a value whose type fits the kind."""
    if is_dataclass(kind) and isinstance(kind, type):
        made, faults = _look(kind, value, f"{key}.")
        return (MISSING if made is None else made), faults
    if get_origin(kind) is tuple:
        inner = get_args(kind)[0]
        read = [_read(inner, one, f"{key}[{at}]") for at, one in enumerate(value)]
        items = tuple(item for item, _ in read)
        # with a wrong one in it, it counts as empty, so that contradictions elsewhere are told
        return (() if MISSING in items else items), [one for _, found in read for one in found]
    if get_origin(kind) is Literal and value not in get_args(kind):
        return MISSING, [(key, _in_words(kind))]
    if rule is not None and not rule.holds(value):
        is_form = isinstance(rule, Form)
        return MISSING, [(key, rule.told if is_form else _in_words(Annotated[kind, rule]))]
    return (kind(value) if kind in (float, Decimal) else value), []


def _choices(kind: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each type that an annotation allows, with its rule or None."""
    if get_origin(kind) in (Union, UnionType):
        for part in get_args(kind):
            yield from _choices(part)
    elif get_origin(kind) is Annotated:
        yield get_args(kind)
    else:
        yield kind, None


def _fits(kind: Any, value: Any) -> bool:
    """Say whether the type of a value is one of those that a kind is made of; True is no int."""
    if get_origin(kind) is Literal:
        return type(value) in {type(choice) for choice in get_args(kind)}
    made_of = _made_of(kind)
    return type(value) in _TAKES.get(made_of, (made_of,))


def _made_of(kind: Any) -> Any:
    """Return the type that a kind is told by: `dict` for a table, `tuple` for `tuple[X, ...]`."""
    return dict if is_dataclass(kind) else get_origin(kind) or kind


def _in_words(kind: Any) -> str:
    """Return what an annotation allows, in words; that it may be left out says nothing here."""
    parts = []
    for choice, rule in _choices(kind):
        if get_origin(choice) is Literal:
            parts.append("one of " + ", ".join(map(repr, get_args(choice))))
        elif choice is not NoneType:
            made_of = _made_of(choice)
            name = _NAMES.get(made_of, made_of.__name__.lower())
            parts.append(f"`{name}` {rule}" if isinstance(rule, Range) else f"`{name}`")
    return " or ".join(parts)
