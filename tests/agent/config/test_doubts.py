"""What a configuration says and hardly means is told, and refused by nobody."""

from pathlib import Path

import pytest

from agent.config import load_config, parse_config
from agent.config.doubts import doubts_of
from agent.errors import ConfigError
from tests.agent.config.test_config import EXAMPLE, GOOD
from tests.agent.samples import config_text

STATE = Path("/var/lib/x.db")
SUMS = 'mode = "sums"\n[streams.sums]\nshare = 1\n'


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"policy": "epsilon = 9"}, ["ε 9", "8.1e+03 times likelier"]),
        ({"policy": "epsilon = 0.05"}, ["ε 0.05", "some 300 times as many homes"]),
        ({"ceiling": 9}, ["9 W is less", "Is it meant in kW?"]),
        ({"ceiling": 1054}, ["are 1,054 W, less", "(3,680 W)"]),
        ({"slot_seconds": 60}, ["ε 119 a day and 3,563 in 30 days"]),
        ({"slot_seconds": 60, "policy": "epsilon = 8"}, ["ε 950 a day and 28,503 in 30 days"]),
        ({"ceiling": 43, "quantities": ("energy_import",)}, ["43 Wh is less", "kWh?"]),
        (
            {"quantities": ("energy_import",), "meter": "interval_s = 451"},
            ["meter.interval_s: a telegram each 451 s", "(stream energy_import)", "one each 450 s"],
        ),
        (
            {"meter": 'protocol = "modbus"\npoll_ms = 901000'},
            ["meter.poll_ms: a telegram each 901 s", "power (stream power)", "one each 900 s"],
        ),
        (
            {"ceiling": 43_470, "stream": SUMS + "days = 7\n"},
            ["streams[0].sums.least_b: habits of a home show more", "with 843,318 they do not"],
        ),
        (
            {"ceiling": 17_250, "stream": SUMS + "days = 28\nleast_b = 836_624\n"},
            ["with 836,625 they do not"],
        ),
    ],
)
def test_what_is_hardly_meant_is_doubted(changes: dict[str, object], told: list[str]) -> None:
    (doubt,) = doubts_of(parse_config(config_text(STATE, window=(8, 97), **changes), "a.toml"))  # type: ignore[arg-type]
    assert all(text in doubt for text in told), doubt


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"policy": "epsilon = 8"},
        {"policy": "epsilon = 0.1"},
        {"ceiling": 3680},
        {"ceiling": 920, "quantities": ("energy_import",)},
        {"slot_seconds": 300},
        {"quantities": ("energy_import",), "meter": "interval_s = 450"},
        {"meter": "interval_s = 900"},
        {"ceiling": 43_470, "stream": SUMS + "days = 1\n"},
        {"ceiling": 43_470, "stream": SUMS + "days = 7\nleast_b = 843_318\n"},
        {"ceiling": 43_470, "stream": SUMS + "days = 7\ncells = 24\nblock_hours = 4\n"},
    ],
)
def test_what_is_usual_is_not_doubted(changes: dict[str, object]) -> None:
    assert doubts_of(parse_config(config_text(STATE, window=(8, 97), **changes), "a.toml")) == []  # type: ignore[arg-type]


def test_the_example_is_not_doubted() -> None:
    assert doubts_of(load_config(EXAMPLE)) == []


@pytest.mark.parametrize(
    ("written", "meant"),
    [("smll", "sml"), ("P1", "dsmr"), ("d0", "iec62056-21"), ("tic", "linky"), ("iec62056", "iec")],
)
def test_a_protocol_by_another_name_is_guessed(written: str, meant: str) -> None:
    text = GOOD.replace("[meter]\n", f'[meter]\nprotocol = "{written}"\n')
    with pytest.raises(ConfigError, match=f"did you mean '{meant}"):
        parse_config(text, "a.toml")
