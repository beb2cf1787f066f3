"""Tables into dataclasses: what fits is taken, all that does not is named, nothing is quoted."""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_ldp.service.typed_table import Form, Range, TableError, read_table


@dataclass(frozen=True, slots=True)
class Inner:
    """A table that must have a key."""

    size: Annotated[int, Range(ge=1, le=9)]
    note: str = "none"


@dataclass(frozen=True, slots=True)
class Outer:
    """One key of each kind."""

    name: Annotated[str, Form("[a-z]+", "lower-case letters")]
    inner: Inner | None = None
    many: tuple[Inner, ...] = ()
    words: Literal["all", "none"] | tuple[str, ...] = "all"
    bits: Literal[7, 8] | None = None
    share: Decimal = Decimal(1)
    rate: Annotated[float, Range(gt=0, le=100)] = 1.0
    is_on: bool = False
    options: dict[str, Any] = field(default_factory=dict)


def no_more(_: Outer) -> Iterable[tuple[str, str]]:
    """Find no contradictions."""
    return ()


def read(text: str) -> Outer:
    return read_table(Outer, tomllib.loads(text, parse_float=Decimal), no_more)


def faults(text: str) -> list[tuple[str, str]]:
    with pytest.raises(TableError) as refused:
        read(text)
    return refused.value.faults


def test_a_short_table_gets_the_defaults() -> None:
    assert read('name = "a"') == Outer("a")
    assert read('name = "a"').options is not read('name = "a"').options


def test_every_kind_of_key_becomes_what_its_annotation_says() -> None:
    found = read("""
        name = "a"
        words = ["x", "y"]
        bits = 7
        share = 2
        rate = 3
        is_on = true
        options = { any = 1.5 }
        inner = { size = 9 }
        [[many]]
        size = 1
        note = "first"
        [[many]]
        size = 2
    """)
    many = (Inner(1, "first"), Inner(2))
    options = {"any": Decimal("1.5")}
    assert found == Outer(
        "a", Inner(9), many, ("x", "y"), 7, Decimal(2), 3.0, is_on=True, options=options
    )
    assert (type(found.share), type(found.rate)) == (Decimal, float)


@pytest.mark.parametrize(
    ("line", "key", "expected"),
    [
        ("nam = 1", "nam", "no such key; did you mean name?"),
        ("name = 1", "name", "`str`, got `int`"),
        ('name = "A"', "name", "lower-case letters"),
        ('name = "a\\n"', "name", "lower-case letters"),
        ("inner = 3", "inner", "`table`, got `int`"),
        ("inner = []", "inner", "`table`, got `array`"),
        ("inner = {}", "inner.size", "a value: the key is missing"),
        ("inner = { size = 0 }", "inner.size", "`int` >= 1 and <= 9"),
        ("inner = { size = true }", "inner.size", "`int` >= 1 and <= 9, got `bool`"),
        ("inner = { size = 1.0 }", "inner.size", "`int` >= 1 and <= 9, got `decimal`"),
        ("inner = { size = 1, x = 1 }", "inner.x", "no such key"),
        ("many = {}", "many", "`array`, got `table`"),
        ("many = [{ size = 1 }, 5]", "many[1]", "`table`, got `int`"),
        ("many = [{ size = 1 }, {}]", "many[1].size", "a value: the key is missing"),
        ('words = "some"', "words", "one of 'all', 'none'"),
        ("words = 1", "words", "one of 'all', 'none' or `array`, got `int`"),
        ('words = ["a", 1]', "words[1]", "`str`, got `int`"),
        ("bits = 6", "bits", "one of 7, 8"),
        ("bits = 7.0", "bits", "one of 7, 8, got `decimal`"),
        ("bits = true", "bits", "one of 7, 8, got `bool`"),
        ('share = "1"', "share", "`decimal`, got `str`"),
        ("share = true", "share", "`decimal`, got `bool`"),
        ("rate = 0", "rate", "`float` > 0 and <= 100"),
        ("rate = nan", "rate", "`float` > 0 and <= 100"),
        ("rate = 1e999", "rate", "`float` > 0 and <= 100"),
        (f"rate = 1{'0' * 400}", "rate", "`float` > 0 and <= 100"),
        ("is_on = 1", "is_on", "`bool`, got `int`"),
        ("options = 1979-05-27", "options", "`table`, got `date`"),
    ],
)
def test_what_does_not_fit_is_named_with_the_form_it_should_have(
    line: str, key: str, expected: str
) -> None:
    start = "" if line.startswith("name") else 'name = "a"\n'
    assert faults(start + line) == [(key, expected)]


def test_all_faults_are_told_at_once() -> None:
    found = faults('naem = "a"\nbits = 6\nmany = [{ size = 10 }, { note = 1 }]')
    assert [key for key, _ in found] == [
        "naem",
        "name",
        "many[0].size",
        "many[1].size",
        "many[1].note",
        "bits",
    ]
    assert str(TableError(found)).startswith(
        "naem: expected no such key; did you mean name?; name: expected a value"
    )


def test_contradictions_are_told_beside_wrong_keys_but_not_of_them() -> None:
    def all_wrong(outer: Outer) -> Iterable[tuple[str, str]]:
        assert outer.bits is None  # what is wrong counts as not written
        return [("bits", "more"), ("inner.size", "less"), ("inner", "none"), ("name", "longer")]

    with pytest.raises(TableError) as refused:
        read_table(Outer, {"name": "a", "bits": 6, "inner": {"size": 0}}, all_wrong, "top.")
    assert [key for key, _ in refused.value.faults] == [
        "top.inner.size",
        "top.bits",
        "bits",
        "inner.size",
        "inner",
        "name",
    ]
    with pytest.raises(TableError) as refused:
        read_table(Outer, {"name": "a", "inner": {"size": 1, "x": 1}}, all_wrong_of_inner)
    assert refused.value.faults == [("inner.x", "no such key"), ("inner.size", "less")]


def all_wrong_of_inner(_: Outer) -> Iterable[tuple[str, str]]:
    """Find two contradictions, one inside of what is known to be wrong."""
    return [("inner.x.y", "told already"), ("inner.size", "less")]


NAMES = [*Outer.__dataclass_fields__, *Inner.__dataclass_fields__]
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.decimals(allow_nan=False)
    | st.just(Decimal("nan"))
    | st.text()
    | st.dates(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(NAMES), inner),
    max_leaves=12,
)


def attempt(table: dict[str, Any]) -> Outer | TableError:
    try:
        return read_table(Outer, table, no_more)
    except TableError as exc:
        return exc


@given(st.dictionaries(st.sampled_from(NAMES), VALUES))
def test_any_table_is_read_or_refused_with_keys_and_forms(table: dict[str, Any]) -> None:
    found = attempt(table)
    if isinstance(found, TableError):
        assert found.faults
        assert all(key and expected for key, expected in found.faults)
    else:
        assert set(table) <= set(Outer.__dataclass_fields__)


@given(st.text(), st.sampled_from(NAMES))
def test_a_text_is_never_quoted_wherever_it_stands(text: str, key: str) -> None:
    secret = f"\N{UMBRELLA}{text}"  # no message of ours has one
    for table in ({"name": "a", key: secret}, {"name": "a", "inner": {key: secret}}):
        found = attempt(table)
        assert isinstance(found, Outer) or secret not in str(found)
