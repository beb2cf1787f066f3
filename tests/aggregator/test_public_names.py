"""The names that users of the estimators may rely on, and the errors they may meet."""

import aggregator
import aggregator.estimate
from aggregator import AggregatorError, ArgumentError, CountsError, NoReportsError


def test_the_public_names_are_these() -> None:
    assert aggregator.__all__ == [
        "AggregatorError",
        "ArgumentError",
        "CountsError",
        "NoReportsError",
    ]
    assert aggregator.estimate.__all__ == [
        "Density",
        "ahead",
        "auto",
        "em",
        "ems",
        "held_out",
        "hh_admm",
    ]
    for package in (aggregator, aggregator.estimate):
        assert all(hasattr(package, name) for name in package.__all__)


def test_errors_carry_facts_and_have_one_root() -> None:
    argument, counts, none = ArgumentError("p", "0..1"), CountsError("negative"), NoReportsError()
    assert (argument.name, argument.expected, str(argument)) == ("p", "0..1", "p: expected 0..1")
    assert (counts.reason, str(counts)) == ("negative", "counts: negative")
    assert all(type(error).__base__ is AggregatorError for error in (argument, counts, none))
    assert issubclass(AggregatorError, ValueError)
