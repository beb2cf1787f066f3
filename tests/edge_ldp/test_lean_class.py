"""Such a class is what `dataclass` makes of it, and costs no compiled text."""

import builtins
import dataclasses
from copy import copy
from dataclasses import FrozenInstanceError, field, fields, replace
from typing import Any

import pytest

from edge_ldp.lean_class import lean_class


def body(decorate: Any) -> Any:
    """Return the same class as a decorator makes it."""

    @decorate(frozen=True, slots=True)
    class Line:
        """A line."""

        port: str
        speed: int = 9600
        options: dict[str, Any] = field(default_factory=dict)
        password: str = field(default="horse", repr=False)

        def __post_init__(self) -> None:
            if not self.port:
                raise TypeError

        @property
        def told(self) -> str:
            return f"{self.port} at {self.speed}"

    return Line


OURS, THEIRS = body(lean_class), body(dataclasses.dataclass)
USES = {
    "by place": lambda kind: kind("a", 300, {"b": 1}),
    "by name": lambda kind: kind(speed=300, port="a"),
    "defaults": lambda kind: kind("a"),
    "an own dict each": lambda kind: kind("a").options is kind("a").options,
    "text": lambda kind: repr(kind("a")).rpartition(".")[2],
    "equal": lambda kind: (kind("a") == kind("a"), kind("a") == kind("b"), kind("a") == ("a",)),
    "hash": lambda kind: hash(replace(kind("a"), options=())) == hash(("a", 9600, (), "horse")),
    "replace": lambda kind: replace(kind("a"), speed=300).told,
    "fields": lambda kind: [(one.name, one.type) for one in fields(kind)],
    "as a dict": lambda kind: dataclasses.asdict(kind("a")),
    "refused": lambda kind: kind(""),
    "copied": lambda kind: copy(kind("a", 300)),
    "matched": lambda kind: kind.__match_args__,
    "slots": lambda kind: kind.__slots__,
    "one missing": lambda kind: kind(speed=300),
    "one too many": lambda kind: kind("a", 300, {}, "b", 4),
    "one twice": lambda kind: kind("a", port="a"),
    "one unknown": lambda kind: kind("a", baud=300),
    "replace an unknown": lambda kind: replace(kind("a"), baud=300),
    "set": lambda kind: setattr(kind("a"), "port", "b"),
    "delete": lambda kind: delattr(kind("a"), "port"),
    "hash of a dict": lambda kind: hash(kind("a")),
}


def used(kind: Any, use: Any) -> Any:
    """Return what using a class gives: a value, an object's values, or the error's class."""
    try:
        found = use(kind)
    except (TypeError, AttributeError) as exc:
        return FrozenInstanceError if isinstance(exc, FrozenInstanceError) else type(exc)
    return dataclasses.astuple(found) if isinstance(found, kind) else found


@pytest.mark.parametrize("name", USES)
def test_it_is_used_as_a_dataclass_is(name: str) -> None:
    assert used(OURS, USES[name]) == used(THEIRS, USES[name])


def test_no_method_is_compiled_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is why there is such a thing: dataclasses compile six methods of each class."""
    texts: list[str] = []
    real = builtins.exec

    def told(text: str, *rest: Any) -> None:
        if "self" in text:  # from Python 3.13 on there is a text with no method in it, too
            texts.append(text)
        real(text, *rest)

    monkeypatch.setattr(dataclasses, "exec", told, raising=False)
    body(lean_class)
    assert texts == []
    body(dataclasses.dataclass)
    assert texts
