"""Numbers that a person wrote: taken, or refused with what is expected."""

from argparse import ArgumentTypeError
from collections.abc import Callable
from decimal import Decimal

import pytest

from edge_ldp.arguments import Parser, epsilon_given, port_number, whole_number


@pytest.mark.parametrize(
    ("read", "text", "number"),
    [
        (epsilon_given, "1", Decimal(1)),
        (epsilon_given, ".5", Decimal("0.5")),
        (epsilon_given, "32", Decimal(32)),
        (whole_number, "1", 1),
        (port_number, "65535", 65_535),
    ],
)
def test_a_number_is_taken(read: Callable[[str], object], text: str, number: object) -> None:
    assert read(text) == number


EPSILONS = ("zero", "", "NaN", "inf", "-1", "0", "33", "1e9999", "1_0", "1/2", "0.00001")


@pytest.mark.parametrize(
    ("read", "text", "form"),
    [
        *((epsilon_given, text, "a number above 2**-16 and at most 32") for text in EPSILONS),
        *((whole_number, text, "a whole number above 0") for text in ("x", "0", "-1", "1.5")),
        *((port_number, text, "a port, 1 to 65535") for text in ("x", "0", "65536")),
    ],
)
def test_another_is_refused_with_what_is_expected(
    read: Callable[[str], object], text: str, form: str
) -> None:
    with pytest.raises(ArgumentTypeError, match="expected ") as refused:
        read(text)
    assert str(refused.value).startswith(f"expected {form}")
    assert str(refused.value).endswith(f", not {text!r}")


def test_a_value_below_0_that_is_taken_for_an_option_is_said_how_to_write(
    capsys: pytest.CaptureFixture[str],
) -> None:
    parser = Parser(prog="told")
    parser.add_argument("--range")
    for given, told in (
        (["--range", "-500:0"], "expected one argument; did you mean --range=-500:0?\n"),
        (["--range", "--rnge"], "expected one argument; did you mean --range?\n"),
        (["--range"], "expected one argument\n"),
    ):
        with pytest.raises(SystemExit):
            parser.parse_args(given)
        assert capsys.readouterr().err.endswith(told)
    assert parser.parse_args(["--range=-500:0"]).range == "-500:0"
