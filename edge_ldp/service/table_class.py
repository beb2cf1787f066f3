"""A frozen dataclass that is made without writing and compiling its methods: for configuration.

`dataclasses` makes six methods of each class by executing source text. Of the tables of the agent's
file that was an eighth of what it did before its first telegram, for classes of which most have one
object each. Here they share their methods; fields, defaults, `replace` and `fields` are the same.
"""

from dataclasses import MISSING, Field, FrozenInstanceError, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

__all__ = ["table_class"]

if TYPE_CHECKING:  # a checker of types takes it for what it stands for
    from dataclasses import dataclass as table_class
else:

    def table_class(*, frozen: bool, slots: bool) -> Any:
        """Return what makes such a class; for any other, `dataclass` itself."""
        return _made if frozen and slots else dataclass(frozen=frozen, slots=slots)


class _Table:
    """The methods that all tables share."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __init__(self, *values: Any, **named: Any) -> None:
        known = self.__dataclass_fields__
        given = dict(zip(known, values, strict=False))
        if len(given) < len(values) or given.keys() & named or named.keys() - known:
            raise TypeError(f"{type(self).__name__} takes {', '.join(known)}, each once")
        given |= named
        for name, field in known.items():
            value = given.get(name, field.default)
            make: Any = field.default_factory
            if value is MISSING and make is MISSING:
                raise TypeError(f"{type(self).__name__} needs {name}")
            if value is MISSING:
                value = make()
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        known = self.__dataclass_fields__.items()
        told = (f"{name}={getattr(self, name)!r}" for name, field in known if field.repr)
        return f"{type(self).__name__}({', '.join(told)})"

    def __eq__(self, other: object) -> bool:
        return _values(self) == _values(other) if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash(_values(self))

    def __setattr__(self, name: str, value: Any) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")


def _values(table: Any) -> tuple[Any, ...]:
    return tuple(getattr(table, name) for name in table.__dataclass_fields__)


def _made(kind: Any) -> Any:
    kind.__init__, kind.__repr__ = _Table.__init__, _Table.__repr__
    kind.__eq__, kind.__hash__ = _Table.__eq__, _Table.__hash__
    kind.__setattr__, kind.__delattr__ = _Table.__setattr__, _Table.__delattr__
    return dataclass(init=False, repr=False, eq=False, slots=True)(kind)
