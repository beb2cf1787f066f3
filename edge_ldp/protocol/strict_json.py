"""JSON from outside, read without mercy: no duplicate keys, no floats, bounded size and depth.

Every message that is not a frame (plan, receipt, status) comes through here. The reader hands out
typed fields and names the one that is wrong; unknown fields are ignored, missing ones refused.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import fields
from itertools import accumulate
from typing import Any, NoReturn

from edge_ldp.device.errors import EdgeLdpError

MAX_BYTES = 1 << 18
MAX_DEPTH = 12
MAX_DIGITS = 20
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)  # unended ones too: linear time
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")  # +1 and -1 as signed bytes
_NO_BRACKETS = bytes(set(range(256)) - set(b"[{]}"))


class MessageError(EdgeLdpError):
    """A message that is not what it should be: `reason` is a short code, `field` where it shows."""

    def __init__(self, reason: str, field: str, expected: str = "") -> None:
        super().__init__(f"{field}: {reason}" + (f", expected {expected}" if expected else ""))
        self.reason = reason
        self.field = field
        self.expected = expected


def loads(payload: bytes) -> "Fields":
    """Return the fields of a JSON object; raises MessageError for anything else."""
    if len(payload) > MAX_BYTES:
        raise MessageError("size", "message", f"at most {MAX_BYTES} bytes")
    if _depth(payload) > MAX_DEPTH:
        raise MessageError("depth", "message", f"at most {MAX_DEPTH} levels")
    try:
        found = json.loads(
            payload.decode(),
            object_pairs_hook=_unique,
            parse_float=_refuse_number,
            parse_constant=_refuse_number,
            parse_int=_bounded_int,
        )
    except (UnicodeDecodeError, json.JSONDecodeError) as exc:
        raise MessageError("json", "message", "a JSON object in UTF-8") from exc
    if not isinstance(found, dict):
        raise MessageError("shape", "message", "a JSON object")
    return Fields(found)


def dumps(found: Mapping[str, object]) -> bytes:
    """Return the one encoding that we write: fields in the order given, no spaces."""
    return json.dumps(found, separators=(",", ":"), ensure_ascii=False).encode()


def fields_of(one: Any) -> dict[str, Any]:
    """Return a dataclass's fields in their order, none of them copied."""
    return {field.name: getattr(one, field.name) for field in fields(one)}


class Fields:
    """A JSON object whose fields are asked for by name and type."""

    def __init__(self, found: Mapping[str, Any], at: str = "") -> None:
        self._found = found
        self._at = at

    def integer(self, name: str, low: int, high: int) -> int:
        """Return an integer in [low, high]; booleans are not integers."""
        number = self._get(name)
        if type(number) is not int or not low <= number <= high:
            raise MessageError("value", self._at + name, f"an integer in {low}..{high}")
        return number

    def text(self, name: str, limit: int = 64) -> str:
        """Return a string of 1 to `limit` printable characters."""
        text = self._get(name)
        if not isinstance(text, str) or not 1 <= len(text) <= limit or not text.isprintable():
            raise MessageError("value", self._at + name, f"1 to {limit} printable characters")
        return text

    def items(self, name: str, limit: int) -> list[Any]:
        """Return a list of at most `limit` items."""
        found = self._get(name)
        if not isinstance(found, list) or len(found) > limit:
            raise MessageError("value", self._at + name, f"a list of at most {limit}")
        return found

    def objects(self, name: str, limit: int) -> list["Fields"]:
        """Return a list of at most `limit` objects."""
        found = self.items(name, limit)
        if not all(isinstance(item, dict) for item in found):
            raise MessageError("value", self._at + name, "a list of objects")
        return [Fields(item, f"{self._at}{name}[{at}].") for at, item in enumerate(found)]

    def table(self, name: str) -> "Fields":
        """Return an object."""
        found = self._get(name)
        if not isinstance(found, dict):
            raise MessageError("value", self._at + name, "an object")
        return Fields(found, f"{self._at}{name}.")

    def raw(self) -> Mapping[str, Any]:
        """Return the object as parsed, for a reader that checks it itself."""
        return self._found

    def _get(self, name: str) -> Any:
        if name not in self._found:
            raise MessageError("missing", self._at + name)
        return self._found[name]


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise MessageError("duplicate", "message", "every key once")
    return found


def _refuse_number(_text: str) -> NoReturn:
    raise MessageError("number", "message", "integers only")


def _bounded_int(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise MessageError("number", "message", f"integers of at most {MAX_DIGITS} digits")
    return int(text)


def _depth(payload: bytes) -> int:
    """Return the deepest nesting of brackets outside strings, up to where it stops being JSON."""
    steps = _STRING.sub(b"", payload).translate(_STEPS, _NO_BRACKETS)
    return max(accumulate(memoryview(steps).cast("b")), default=0)
