"""Gas, which dates itself, and streams of other slots than the home's: what closes, what never."""

import pytest

from agent.claims.own_slots import DatedRise, OwnSlots, Streams
from agent.claims.slots import Kind, SlotBuilder, SlotValues
from agent.meters.obis.dsmr import P1Meter
from agent.meters.reading import Telegram
from tests.agent.meters.samples import sealed

HOUR = 3600
H0 = 1_800_000_000 // HOUR  # an hour by its number
Told = tuple[int, int, int]  # minutes after H0: when a reading was taken, what, and when it came


@pytest.mark.parametrize(
    ("told", "right"),
    [
        ([(0, 5, 4), (60, 905, 64)], [(0, 900)]),
        (
            [(0, 5, 59), (0, 5, 60), (60, 905, 61), (60, 905, 119), (120, 905, 120)],
            [(0, 900), (1, 0)],
        ),
        ([(0, 5, 1), (5, 80, 6), (55, 800, 56), (60, 905, 61), (65, 911, 66)], [(0, 900)]),
        ([(0, 5, 1), (55, 800, 56), (65, 911, 66), (120, 950, 121), (180, 951, 181)], [(2, 1)]),
        ([(1, 5, 1), (61, 905, 61)], []),  # on no border
        ([(0, 5, -1), (0, 5, 0), (60, 905, 59), (120, 906, 119), (120, 906, 121)], []),
        ([(0, 5, 0), (60, 905, 59), (60, 905, 61)], [(0, 900)]),  # ahead of our clock: later, again
        ([(0, 5, 0), (60, 905, 180), (120, 906, 239)], [(0, 900), (1, 1)]),
        ([(0, 5, 0), (60, 905, 181), (120, 906, 182)], []),  # too late
        ([(0, 905, 0), (60, 5, 60), (120, 900, 120), (180, 901, 180)], [(2, 1)]),  # it went back
        ([(0, 5, 0), (0, 6, 1), (60, 905, 60), (120, 906, 120)], [(1, 1)]),  # told in two ways
        ([(60, 5, 60), (0, 1, 61), (120, 906, 120)], [(1, 901)]),  # one that is older
    ],
)
def test_only_readings_dated_on_both_borders_make_a_slot_SER_53(
    told: list[Told], right: list[tuple[int, int]]
) -> None:
    rise = DatedRise(HOUR)
    closed = [
        rise.read((H0 * HOUR + 60 * at, shown), H0 * HOUR + 60 * came) for at, shown, came in told
    ]
    found = [(one.slot - H0, one.values[0]) for one in closed if one is not None]
    assert found == right
    assert "905" not in repr(closed)


def test_another_meters_register_is_no_rise_SER_53() -> None:
    rise = DatedRise(HOUR)
    for at in range(4):
        if at == 2:
            rise.forget()
        closed = rise.read(((H0 + at) * HOUR, 10 * at), (H0 + at) * HOUR)
        assert (closed is None) == (at in {0, 2})


def test_a_line_dates_gas_but_in_the_hour_that_clocks_repeat_SER_53() -> None:
    """Old ones say no season: in October their 02:xx comes twice, and in March never."""
    seen = []
    for stamp in (
        *("261025015500", "261025020000", "261025025959", "261025030000", "260329013000"),
        *("260329020000", "260329030000", "261025020000S", "261025020000W", "260331250000"),
    ):
        old = (f"0-1:24.3.0({stamp})(00)(60)(1)(0-1:24.2.1)(m3)", "(00001.001)")
        new = (f"0-1:24.2.1({stamp})(00001.001*m3)",)
        lines = new if stamp[-1] in "SW" else old
        telegram = P1Meter().feed(sealed("0-0:96.1.1(4530)", "0-1:24.1.0(003)", *lines))[0]
        assert isinstance(telegram, Telegram)
        assert telegram.gas is None or telegram.shown["gas"] == 1001
        seen.append(telegram.gas and telegram.gas[0])
    autumn, spring = 1_792_886_400, 1_774_742_400  # midnight UTC of both nights
    assert seen == [
        *(autumn - 300, None, None, autumn + 7200),
        *(spring + 1800, None, spring + 3600),
        *(autumn, autumn + 3600, None),
    ]


def test_hours_of_a_register_stand_beside_the_homes_quarters() -> None:
    """Every stream's slots close by themselves, and say whose they are."""

    def builder(seconds: int, streams: Streams) -> SlotBuilder:
        return SlotBuilder(seconds, streams, burst_s=0)

    own = OwnSlots(
        {1: (HOUR, "energy_import", Kind.RISE), 3: (HOUR, "gas", Kind.RISE)}, builder, "gas"
    )
    closed = list[SlotValues]()
    begin = H0 * HOUR
    for time_s in range(begin, begin + 2 * HOUR + 20, 10):
        gas = (time_s // HOUR * HOUR, time_s // HOUR)
        told = {"energy_import": time_s // 10}
        closed += own.read(time_s + 7, told, gas, time_s)  # the meter's clock is ahead
    closed += own.pass_to(begin + 4 * HOUR)
    found = [(one.at, one.slot - H0, one.values) for one in closed]
    assert [one for one in found if one[0] == 3] == [(3, 0, (1,)), (3, 1, (1,))]
    assert [one for one in found if one[0] == 1] == [
        (1, 0, (360,)),
        (1, 1, (360,)),
        (1, 2, (None,)),
    ]
    assert own.given_up == set()
    list(own.forget_registers())
