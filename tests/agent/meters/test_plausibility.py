"""Whether a telegram is believed: identity, register width, registers that go back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.meters.plausibility import CONFIRM, SWAP_S, Belief, Plausibility, rise, used
from agent.meters.reading import Reading, Telegram

BELIEVED, ANEW, SWAPPED = Belief.BELIEVED, Belief.ANEW, Belief.SWAPPED
FOREIGN, BACK, WIDTH = Belief.FOREIGN, Belief.BACK, Belief.WIDTH
FIVE_DIGITS_WH = 10**8


def telegram(
    import_wh: int | None = None,
    *,
    meter: str = "ours",
    export_wh: int | None = None,
    power_w: int = 5,
    time_s: int | None = None,
) -> Telegram:
    shown = {"power": power_w, "energy_import": import_wh, "energy_export": export_wh}
    readings = tuple(Reading(name, value) for name, value in shown.items() if value is not None)
    return Telegram(meter, time_s, readings)


def judged(registers: list[int], register_wh: int | None = None) -> list[Belief]:
    judge = Plausibility(register_wh).judge
    return [judge(telegram(wh), at_s) for at_s, wh in enumerate(registers)]


def test_of_a_doubted_register_all_but_the_registers_is_used_and_of_another_meter_nothing() -> None:
    one = telegram(7, export_wh=8, power_w=9)
    whole = {"power": 9, "energy_import": 7, "energy_export": 8}
    assert used(one, BELIEVED) == used(one, ANEW) == used(one, WIDTH) == whole
    assert used(one, BACK) == {"power": 9}
    assert used(one, FOREIGN) == {}


@given(st.lists(st.integers(0, 10**9), max_size=30), st.sampled_from([None, 10**6, FIVE_DIGITS_WH]))
def test_whether_power_is_used_never_depends_on_a_register_PRV_20(
    registers: list[int], register_wh: int | None
) -> None:
    judge = Plausibility(register_wh).judge
    for at_s, wh in enumerate(registers):
        one = telegram(wh)
        assert used(one, judge(one, at_s))["power"] == 5


NINES = [FIVE_DIGITS_WH - 200, FIVE_DIGITS_WH - 100, 0, 100]
TOO_WIDE = [FIVE_DIGITS_WH - 1, FIVE_DIGITS_WH, FIVE_DIGITS_WH + 5]


@pytest.mark.parametrize(
    ("registers", "register_wh", "beliefs"),
    [
        ([5, 5, 6, 10**9, 10**9], None, [BELIEVED] * 5),
        ([5000, 2500, 2500, 2501, 2502], None, [BELIEVED, BACK, BACK, ANEW, BELIEVED]),
        ([5000, 4999, 5001, 5002], None, [BELIEVED, BACK, BELIEVED, BELIEVED]),
        ([5000, 1, 5001, 1, 5002, 1, 5003], None, [*[BELIEVED, BACK] * 3, BELIEVED]),
        ([5000, 95_000, 5001, 5002, 5003], None, [BELIEVED, BELIEVED, BACK, BACK, ANEW]),
        # doubted telegrams that contradict each other do not add up
        ([5000, 300, 200, 100, 50, 50], None, [BELIEVED, *[BACK] * 5]),
        ([5000, 300, 200, 200, 200], None, [BELIEVED, BACK, BACK, BACK, ANEW]),
        (NINES, FIVE_DIGITS_WH, [BELIEVED] * 4),
        (NINES, None, [BELIEVED, BELIEVED, BACK, BACK]),  # the width is not known
        (TOO_WIDE, FIVE_DIGITS_WH, [BELIEVED, WIDTH, WIDTH]),  # used, and said
        ([50_000_000, 0, 0, 0], FIVE_DIGITS_WH, [BELIEVED, BACK, BACK, ANEW]),  # no rollover
    ],
)
def test_SER_15_SER_16_a_register_that_went_back_is_believed_once_three_telegrams_agree(
    registers: list[int], register_wh: int | None, beliefs: list[Belief]
) -> None:
    assert CONFIRM == 3
    assert judged(registers, register_wh) == beliefs


def test_each_register_is_watched() -> None:
    judge = Plausibility().judge
    assert judge(telegram(100, export_wh=100), 0) is BELIEVED
    assert judge(telegram(101, export_wh=99), 1) is BACK
    assert judge(telegram(101), 2) is BELIEVED  # a register may be left out
    assert judge(telegram(export_wh=99), 3) is BACK


@pytest.mark.parametrize(
    ("earlier", "later", "register_wh", "expected"),
    [
        (5, 7, None, 2),
        (7, 5, None, None),
        (99, 1, 100, None),  # 2 of 100 is more than a hundredth
        (9999, 99, 10_000, 100),
        (9999, 100, 10_000, None),
        (0, 9999, 10_000, 9999),
        (*TOO_WIDE[1:], FIVE_DIGITS_WH, 5),
    ],
)
def test_SER_15_a_rise_is_taken_modulo_the_width(
    earlier: int, later: int, register_wh: int | None, expected: int | None
) -> None:
    assert rise(earlier, later, register_wh) == expected


@given(st.integers(0, FIVE_DIGITS_WH - 1), st.integers(0, FIVE_DIGITS_WH // 100))
def test_SER_15_any_small_rise_is_found_wherever_the_register_stands(base: int, up: int) -> None:
    assert rise(base, (base + up) % FIVE_DIGITS_WH, FIVE_DIGITS_WH) == up


def test_SER_21_another_meter_on_the_line_is_not_used_while_ours_is_there() -> None:
    judge = Plausibility().judge
    beliefs = [judge(telegram(5, meter=("ours", "theirs")[at % 2]), at) for at in range(300)]
    assert beliefs == [BELIEVED, FOREIGN] * 150


def test_SER_16_a_meter_that_is_gone_for_a_minute_was_swapped() -> None:
    judge = Plausibility().judge
    assert judge(telegram(9000, meter="old"), 0) is BELIEVED
    assert judge(telegram(1, meter="new"), SWAP_S - 1) is FOREIGN
    assert judge(telegram(1, meter="new"), SWAP_S) is SWAPPED
    assert judge(telegram(2, meter="new"), SWAP_S + 1) is BELIEVED
    assert judge(telegram(9001, meter="old"), SWAP_S + 2) is FOREIGN


def test_SER_10_a_meter_that_repeats_its_time_is_stale_whatever_it_shows() -> None:
    plausibility = Plausibility()
    for now_s in range(100):
        assert plausibility.judge(telegram(now_s, time_s=7), now_s) is BELIEVED
        assert plausibility.stale_s == now_s
    for now_s in (100, 103):
        plausibility.judge(telegram(100, time_s=8), now_s)
    assert plausibility.stale_s == 3


def test_SER_10_a_meter_that_tells_no_time_is_never_stale() -> None:
    plausibility = Plausibility()
    assert plausibility.stale_s == 0
    for now_s in (0, 1000):
        plausibility.judge(telegram(1), now_s)
    assert plausibility.stale_s == 0


def test_nothing_remembered_shows_in_a_representation() -> None:
    plausibility = Plausibility()
    plausibility.judge(telegram(123_456, meter="E00"), 0)
    assert "123456" not in repr(plausibility)
    assert "E00" not in repr(plausibility)
