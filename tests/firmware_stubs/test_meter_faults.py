"""Scripted faults: each does what it says, the same every time."""

import pytest

from agent.meters.obis.dsmr import P1Meter
from agent.meters.reading import Telegram
from edge_ldp.device.errors import ParameterError
from firmware_stubs.meters import Series, faults
from firmware_stubs.meters.meter_command import main
from firmware_stubs.meters.telegram import p1_telegram
from tests.agent.meters.samples import reasons, values
from tests.meters.faults import without_season

T0 = 1_767_571_200


def heard(name: str, count: int = 12) -> list[str]:
    """Return what a parser makes of a series with a fault: "" for a telegram."""
    show, mangle = faults.fault(name, p1_telegram)
    series = Series([378] * count, T0, 900, "E0099", base_wh=5000, show=show)
    meter = P1Meter()
    found = []
    for k, (_, telegram) in enumerate(series.telegrams()):
        found += reasons(meter.feed(mangle(k, telegram) if mangle else telegram))
        found += reasons([*meter.silence()])
    return found


@pytest.mark.parametrize(
    ("name", "telegrams", "others"),
    [
        ("noise", 12, {"noise", "cut", "length", "syntax", "crc"}),
        ("flip", 3, {"crc", "noise", "cut", "syntax", "length"}),
        ("cut", 3, {"cut"}),
        ("double", 24, set()),
        ("stuck", 12, set()),
        ("speed", 0, {"noise", "cut"}),
        ("clock:3600", 12, set()),
    ],
)
def test_a_fault_costs_the_telegrams_that_it_should_and_no_other(
    name: str, telegrams: int, others: set[str]
) -> None:
    found = heard(name)
    assert found.count("") == telegrams
    assert set(found) - {""} <= others
    assert found == heard(name)


def shown(name: str, count: int = 4) -> list[Telegram]:
    show, _ = faults.fault(name, p1_telegram)
    series = Series([400] * count, T0, 900, "E0099", base_wh=99_999_800, show=show)
    found = [P1Meter().feed(telegram)[0] for _, telegram in series.telegrams()]
    return [one for one in found if isinstance(one, Telegram)]


def test_a_clock_that_is_off_shows_another_time() -> None:
    assert [one.time_s for one in shown("clock:-60", 2)] == [T0 - 60, T0 + 840]


def test_a_register_rolls_over_at_its_width_and_is_halved_by_a_reset() -> None:
    registers = [values(one)["energy_import"] for one in shown("rollover:100000000")]
    assert registers == [99_999_800, 99_999_900, 0, 100]
    registers = [values(one)["energy_import"] for one in shown(f"reset:{T0 + 1000}")]
    assert registers == [99_999_800, 99_999_900, 50_000_000, 50_000_050]


def test_a_time_without_season_is_no_time_and_the_telegram_is_whole() -> None:
    (found,) = P1Meter().feed(
        without_season(p1_telegram)(meter_id="E0099", time_s=T0, import_wh=5, power_w=7)
    )
    assert isinstance(found, Telegram)
    assert (found.time_s, values(found)["power"]) == (None, 7)


def test_noise_is_the_same_for_the_same_seed_and_other_for_another() -> None:
    assert faults.noise(1) == faults.noise(1) != faults.noise(2)
    assert len(faults.noise(1)) == 1024
    assert len(set(faults.noise(3))) > 200


@pytest.mark.parametrize("name", ["", "flood", "noise:1", "clock", "clock:x", "rollover:"])
def test_a_fault_that_is_none_is_refused_with_the_names_there_are(
    name: str, tmp_path: object, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ParameterError, match="noise, flip, cut, double, stuck, speed, clock:NUM"):
        faults.fault(name, p1_telegram)
    if name:
        args = ["--link", f"{tmp_path}/m", "--data", "constant:5", "--count", "1", "--fault", name]
        assert main(args) == 2
        assert "--fault" in capsys.readouterr().err
