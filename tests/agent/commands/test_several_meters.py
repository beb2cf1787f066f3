"""What a household is shown of several meters: who reads what, and one meter's readings."""

import json
from pathlib import Path

import pytest

from agent.main import main
from tests.agent.samples import config_text

SEVERAL = (
    '[[meters]]\nname = "house"\nport = "/nowhere/a"\n[[meters]]\nname = "heat"\nport = "{}"\n'
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "agent.toml"
    text = config_text(
        tmp_path / "s.db",
        quantities=("power", "energy_import"),
        several=SEVERAL.format(tmp_path / "heat"),
        of={"power": "house", "energy_import": "heat"},
        window=(8, 97),
    )
    path.write_text(text)
    return path


def test_check_says_which_meter_tells_which_stream_under_one_window(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "-c", str(file), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["meter.house"] == "dsmr at /nowhere/a: power"
    assert facts["meter.heat"] == f"dsmr at {tmp_path / 'heat'}: energy_import"
    assert facts["reports_per_window"] == "8 in any 97 slots"


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--meter", "heat"], 4, "heat"),
        (["--meter", "cold"], 2, "house, heat"),
        ([], 2, "house, heat"),
    ],
)
def test_read_takes_one_of_the_meters_of_a_file(
    file: Path, capsys: pytest.CaptureFixture[str], options: list[str], code: int, said: str
) -> None:
    assert main(["read", "-c", str(file), "--once", *options]) == code
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("options", [[], ["-c", "a.toml", "--port", "/dev/null"]])
def test_read_needs_a_port_or_a_file_and_not_both(options: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["read", *options])
    assert ended.value.code == 2
