"""When receipts fall due."""

from aggregator.intake.receipt_schedule import ReceiptSchedule


def test_the_earliest_time_asked_for_stands() -> None:
    due = ReceiptSchedule()
    due.note("a", 10.0)
    due.note("b", 5.0)
    due.note("a", 3.0)
    due.note("a", 7.0)
    assert due.take(2.0, 9) == []
    assert due.take(4.0, 9) == ["a"]
    assert due.take(20.0, 9) == ["b"]
    assert due.take(20.0, 9) == []


def test_no_more_are_taken_than_the_limit_and_the_rest_stays() -> None:
    due = ReceiptSchedule()
    for at, name in enumerate(["a", "b", "c"]):
        due.note(name, float(at))
    assert due.take(9.0, 2) == ["a", "b"]
    assert len(due) == 1
    assert due.take(9.0, 2) == ["c"]


def test_a_device_may_be_asked_for_again_after_it_was_taken() -> None:
    due = ReceiptSchedule()
    due.note("a", 1.0)
    assert due.take(1.0, 1) == ["a"]
    due.note("a", 2.0)
    assert due.take(2.0, 1) == ["a"]
