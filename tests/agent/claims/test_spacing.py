"""How far apart telegrams come: from their times alone."""

import pytest

from agent.claims.spacing import Spacing


def spaced(*times: int, told_s: int = 10) -> Spacing:
    found = Spacing(told_s)
    for time_s in times:
        found.note(time_s)
    return found


@pytest.mark.parametrize(
    ("times", "seconds"),
    [
        ([], 10),
        ([5], 10),
        ([0, 5], 10),  # what is told is the least
        ([0, 75], 75),  # of one gap, or of two, the longest
        ([0, 75, 80], 75),
        ([0, 75, 150, 225], 75),
        ([0, 10, 20, 3620], 10),  # an outage is no interval,
        ([0, 10, 20, 3620, 3630, 7230], 3600),  # two of them are, until
        ([0, 3600, 7200, *range(7210, 7510, 10)], 3600),  # of 32 gaps they are the last but one
        ([0, 3600, 7200, *range(7210, 7520, 10)], 10),
        ([0, 120, *[240] * 12, 360], 120),  # what comes together is none apart
    ],
)
def test_SER_32_the_interval_is_the_second_longest_gap(times: list[int], seconds: int) -> None:
    assert spaced(*times).seconds == seconds


@pytest.mark.parametrize(
    ("times", "next_s", "is_late"),
    [
        ([], 0, True),  # what comes first, an adapter may have kept
        ([0], 10**6, False),  # nothing is known of what is usual
        ([0, 10], 25, False),  # half an interval late is none that is missing
        ([0, 10], 26, True),
        ([0, 1, 2, 3], 4, False),
        ([0, 1, 2, 3], 5, True),
        ([0, 75, 150, 225], 337, False),
        ([0, 75, 150, 225], 338, True),
    ],
)
def test_SER_31_a_silence_is_one_in_which_a_telegram_could_have_come(
    times: list[int], next_s: int, *, is_late: bool
) -> None:
    assert spaced(*times).is_after_silence(next_s) is is_late
