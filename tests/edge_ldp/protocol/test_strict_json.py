"""JSON from outside: typed fields or a MessageError, and quickly (NET_14, REP_12)."""

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_ldp.protocol.strict_json import MAX_BYTES, MAX_DEPTH, Fields, MessageError, dumps, loads
from tests.cost import costs_at_most
from tests.tables import each

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**18), 10**18) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)


def reason_of(payload: bytes) -> str:
    with pytest.raises(MessageError) as refused:
        loads(payload)
    return refused.value.reason


@given(st.dictionaries(st.text(max_size=6), VALUES, max_size=5))
def test_what_is_written_is_read_back(table: dict[str, Any]) -> None:
    try:
        payload = dumps(table)
    except UnicodeEncodeError:
        return  # lone surrogates are not text
    assert loads(payload).raw() == table


# made by the test: some take a while
BOMBS: dict[str, tuple[Callable[[], bytes], str]] = {
    "nested lists": (lambda: b"[" * 100_000, "depth"),
    "nested objects": (lambda: b'{"a":' * 40_000, "depth"),
    "nesting behind brackets in strings": (
        lambda: b'["' + b"]" * 80_000 + b'",' + b"[" * 80_000,
        "depth",
    ),
    "nesting behind an escaped quote": (
        lambda: rb'["\"' + b"]" * 80_000 + b'",' + b"[" * 80_000,
        "depth",
    ),
    "nesting behind a string of each level": (lambda: b'["]",' * 40_000, "depth"),
    "a string without end": (lambda: b'{"' + rb"\"" * 120_000, "json"),
    "many empty strings": (lambda: b'{"a":[' + b'"",' * 80_000 + b"]}", "json"),
    "many empty lists": (lambda: b'{"a":[' + b"[]," * 80_000 + b"]}", "json"),
    "brackets that close too much": (lambda: b"{}" + b"]" * 250_000, "json"),
    "a million keys": (
        lambda: b"{" + b",".join(b'"%d":1' % k for k in range(1_000_000)) + b"}",
        "size",
    ),
    "a huge integer": (lambda: b'{"v":' + b"9" * 100_000 + b"}", "number"),
    "a huge negative integer": (lambda: b'{"v":-' + b"9" * 100_000 + b"}", "number"),
    "a float of many digits": (lambda: b'{"v":0.' + b"9" * 100_000 + b"}", "number"),
    "a huge exponent": (lambda: b'{"v":1e999999999}', "number"),
    "ten megabytes": (lambda: b'"' + b"x" * 10_000_000 + b'"', "size"),
    "ten megabytes of zeros": (lambda: bytes(10_000_000), "size"),
    "a gzip member": (lambda: bytes.fromhex("1f8b08000000000002ff") + bytes(1000), "json"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused_quickly(name: str) -> None:
    make, reason = BOMBS[name]
    payload = make()
    assert reason_of(payload) == reason
    # a few ms; anything quadratic takes seconds
    assert costs_at_most(0.2, lambda: reason_of(payload))


@pytest.mark.parametrize(
    ("reason", "payload"),
    each(
        ("json", b"", b" ", b"{", b"{}{}", b"{'a':1}", b'{"a":1,}', b'\xef\xbb\xbf{"a":1}'),
        ("json", b'{"a":"\xff"}', b'{"a":01}'),
        ("shape", b"null", b"[]", b"1", b'"{}"'),
        ("number", b"1.0", b'{"a":1.0}', b'{"a":NaN}', b'{"a":-Infinity}', b'{"a":1E5}'),
        ("duplicate", b'{"a":1,"a":1}', b'{"b":[{"a":1,"\\u0061":2}]}'),
    ),
)
def test_what_is_no_object_of_integers_and_text_is_refused(payload: bytes, reason: str) -> None:
    assert reason_of(payload) == reason


def test_the_limits_of_size_depth_and_digits_are_where_they_are_said_to_be() -> None:
    deep = b"[" * (MAX_DEPTH - 1) + b"]" * (MAX_DEPTH - 1)
    assert loads(b'{"a":%b}' % deep).items("a", 9)
    assert reason_of(b'{"a":[%b]}' % deep) == "depth"
    padded = b'{"a":1' + b" " * (MAX_BYTES - 7) + b"}"
    assert loads(padded).integer("a", 0, 1) == 1
    assert reason_of(padded + b" ") == "size"
    assert loads(b'{"a":%d}' % (10**20 - 1)).integer("a", 0, 10**20) == 10**20 - 1
    assert reason_of(b'{"a":%d}' % 10**20) == "number"


def test_brackets_in_strings_are_not_nesting() -> None:
    assert loads(json.dumps({"a": "[{" * 40}).encode()).text("a", 100) == "[{" * 40
    assert loads(rb'{"a":"\"[[[[[[[[[[[[[[["}').text("a") == '"[[[[[[[[[[[[[[['


@given(
    st.binary(max_size=200) | st.text('[]{}",:0123456789.eE-\\ tfn', max_size=200).map(str.encode)
)
def test_any_bytes_give_fields_or_a_message_error(payload: bytes) -> None:
    with suppress(MessageError):
        assert isinstance(loads(payload), Fields)


FIELDS = loads(
    b'{"n":5,"t":"x","y":true,"l":[1,2],"o":{"n":1},"many":[{"n":1},{"n":2}],"mixed":[{},1],'
    b'"s":"5","e":"","ctl":"a\\u0000","sur":"\\ud800","long":"' + b"x" * 65 + b'"}'
)


@pytest.mark.parametrize(
    ("kind", "name", "limits"),
    [
        ("integer", "n", (6, 9)),
        ("integer", "n", (0, 4)),
        ("integer", "y", (0, 1)),
        ("integer", "s", (0, 9)),
        ("integer", "l", (0, 9)),
        ("text", "n", ()),
        ("text", "e", ()),
        ("text", "ctl", ()),
        ("text", "sur", ()),
        ("text", "long", ()),
        ("items", "o", (9,)),
        ("items", "t", (9,)),
        ("items", "l", (1,)),
        ("objects", "l", (9,)),
        ("objects", "mixed", (9,)),
        ("objects", "many", (1,)),
        ("table", "l", ()),
        ("table", "n", ()),
    ],
)
def test_a_field_of_another_type_or_size_is_refused_by_name(
    kind: str, name: str, limits: tuple[int, ...]
) -> None:
    with pytest.raises(MessageError) as refused:
        getattr(FIELDS, kind)(name, *limits)
    assert (refused.value.reason, refused.value.field) == ("value", name)


@pytest.mark.parametrize("kind", ["text", "table"])
def test_a_missing_field_is_refused_by_name(kind: str) -> None:
    with pytest.raises(MessageError) as refused:
        getattr(FIELDS, kind)("absent")
    assert (refused.value.reason, refused.value.field) == ("missing", "absent")


def test_a_field_inside_is_named_with_its_path() -> None:
    with pytest.raises(MessageError) as refused:
        FIELDS.table("o").integer("n", 2, 9)
    assert refused.value.field == "o.n"
    with pytest.raises(MessageError) as refused:
        FIELDS.objects("many", 2)[1].integer("n", 3, 9)
    assert refused.value.field == "many[1].n"


def test_right_fields_are_given() -> None:
    assert FIELDS.integer("n", 5, 5) == 5
    assert FIELDS.text("t") == "x"
    assert FIELDS.items("l", 2) == [1, 2]
    assert FIELDS.table("o").raw() == {"n": 1}
    assert [one.integer("n", 1, 2) for one in FIELDS.objects("many", 2)] == [1, 2]
