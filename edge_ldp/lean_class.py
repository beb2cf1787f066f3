"""A frozen dataclass that is made without writing and compiling its methods.

`dataclasses` makes six methods of each class by executing source text, and keeps the class that it
was first. In the agent that was an eighth of what it did before its first telegram, and 9 kB of
memory a class, for classes of which most have one object each. Here they share their methods;
fields, defaults, `replace`, `fields` and `__post_init__` are the same. What is made for each
telegram or report stays a dataclass: its own `__init__` is faster.
"""

from dataclasses import MISSING, Field, FrozenInstanceError, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

__all__ = ["lean_class"]

if TYPE_CHECKING:  # a checker of types takes it for what it stands for
    from dataclasses import dataclass as lean_class
else:

    def lean_class(*, frozen: bool, slots: bool) -> Any:
        """Return what makes such a class; for any other, `dataclass` itself."""
        return _made if frozen and slots else dataclass(frozen=frozen, slots=slots)


class _Shared:
    """The methods that all such classes share."""

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
        if after := getattr(self, "__post_init__", None):
            after()

    def __repr__(self) -> str:
        known = self.__dataclass_fields__.items()
        told = (f"{name}={getattr(self, name)!r}" for name, field in known if field.repr)
        return f"{type(self).__name__}({', '.join(told)})"

    def __eq__(self, other: object) -> bool:
        return _values(self) == _values(other) if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash(_values(self))

    def __reduce__(self) -> Any:
        return type(self), _values(self)

    def __setattr__(self, name: str, value: Any) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")


def _values(one: Any) -> tuple[Any, ...]:
    return tuple(getattr(one, name) for name in one.__dataclass_fields__)


def _made(kind: Any) -> Any:
    kind.__init__, kind.__repr__ = _Shared.__init__, _Shared.__repr__
    kind.__eq__, kind.__hash__ = _Shared.__eq__, _Shared.__hash__
    kind.__reduce__ = _Shared.__reduce__
    kind.__setattr__, kind.__delattr__ = _Shared.__setattr__, _Shared.__delattr__
    return dataclass(init=False, repr=False, eq=False, slots=True)(kind)
