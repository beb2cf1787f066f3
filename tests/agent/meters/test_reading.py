from agent import meters
from agent.claims.slots import KINDS, STREAM_UNITS
from agent.meters.linky import TicFrame
from agent.meters.obis.dsmr import RawTelegram
from agent.meters.obis.sml_transport import SmlFrame
from agent.meters.reading import UNITS, Discarded, Reading, Telegram


def test_no_representation_shows_a_value_or_an_identity() -> None:
    reading = Reading("power", 31_337)
    telegram = Telegram("E0044007131650618", 1_553_436_319, (reading,))
    assert repr(reading) == "Reading(quantity='power')"
    assert repr(telegram) == "Telegram(time_s=1553436319)"
    assert repr(RawTelegram(b"/secret!", b"ABCD\r")) == "RawTelegram()"
    assert (repr(TicFrame(b"secret")), repr(SmlFrame(b"secret"))) == ("TicFrame()", "SmlFrame()")
    assert repr([Discarded(7, "crc")]) == "[Discarded(size=7, reason='crc', line='')]"


def test_every_quantity_is_in_whole_watts_voltamperes_vars_or_watt_hours() -> None:
    assert set(UNITS.values()) == {"W", "VA", "var", "Wh"}
    assert UNITS.keys() | {"gas"} == KINDS.keys() == STREAM_UNITS.keys()


def test_the_package_gives_these_names() -> None:
    names = ["UNITS", "Asker", "Discarded", "Meter", "Reading", "Send", "SetBaud", "Telegram"]
    assert meters.__all__ == names
