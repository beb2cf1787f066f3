"""What msgspec finds wrong with a configuration's table, as key and expected form."""

import re
from typing import Any, Literal, get_args, get_origin, get_type_hints


def explain(message: str, root: Any) -> tuple[str, str]:
    """Return (key, expected) of what msgspec says, without the value it may quote.

    `root`: the type of the whole file. The key is empty where the file as a whole is meant.
    """
    what, _, at = message.partition(" - at `$")
    key = at.rstrip("`").lstrip(".")
    if field := re.match(r"Object (contains unknown|missing required) field `(.*)`", what):
        key = f"{key}.{field[2]}".lstrip(".")
        return key, "no such key" if "unknown" in field[1] else "a value: the key is missing"
    if what.startswith("Invalid enum value"):
        return key, "one of " + ", ".join(map(repr, _choices(key, root)))
    return key, what.removeprefix("Expected ")


def _choices(key: str, root: Any) -> tuple[object, ...]:
    """Return what a key with a fixed choice may be."""
    kind: object = root
    for name in re.sub(r"\[[^]]*]", "", key).split("."):
        table = next((part for part in get_args(kind) if part is not ...), kind)
        kind = get_type_hints(table)[name]
    choice = next((part for part in get_args(kind) if get_origin(part) is Literal), kind)
    return get_args(choice)
