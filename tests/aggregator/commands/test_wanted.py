"""What `setup` writes by what is wanted, and what homes are invited to."""

import io
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aggregator.config import load_config
from aggregator.enrolment.invitations import invitation
from aggregator.enrolment.texts import WANTED
from aggregator.main import main
from edge_ldp.protocol.invitation import (
    Invitation,
    InvitedStream,
    InvitedSums,
    parse_invitation,
)
from tests.disk import place
from tests.integration.conftest import free_port

DAILY = InvitedSums(days=1, share="0.75")


@pytest.fixture
def fleet() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="fleet-", dir=place()))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


def invited(place: Path, *options: str) -> tuple[Invitation, Any]:
    """Return what a new fleet invites its homes to, as a device reads it, and its stream."""
    words = ("setup", str(place), "--port", str(free_port()), *options)
    assert main(words) == 0
    config = load_config(place / "aggregator.toml")
    assert config.devices is not None
    made = invitation(config, config.devices, "home-1", "secret", ca=None, plan_keys=())
    return parse_invitation(made.to_json()), config.streams[0]


@pytest.mark.parametrize(
    ("options", "sums", "share"),
    [
        ((), DAILY, None),
        (("--zone", "Europe/Berlin"), replace(DAILY, offset_s=82_800), None),
        (("--zone", "America/New_York"), replace(DAILY, offset_s=5 * 3600), None),
        (("--wanted", "part-of-day"), None, None),
        (("--wanted", "density"), None, 0.5),
    ],
)
def test_totals_are_asked_of_sums_and_the_rest_of_reports(
    fleet: Path, options: tuple[str, ...], sums: InvitedSums | None, share: float | None
) -> None:
    found, stream = invited(fleet, *options)
    assert found.streams[0].sums == sums
    assert stream.survey_share == share
    assert stream.horizon == "hour-of-day over 28 days"


@pytest.mark.parametrize(("zone", "offset_s"), [("Europe/Berlin", 82_800), ("Asia/Kolkata", 0)])
def test_gas_is_asked_for_by_the_hour_and_refused_where_no_slot_fits(
    fleet: Path, zone: str, offset_s: int
) -> None:
    found, _ = invited(fleet, "--gas", "--zone", zone, "--wanted", "density")
    gas = InvitedStream("gas", "gas", "dm3", 0, 6000, 3600, None, InvitedSums(7, "0.125"))
    assert found.streams[1] == replace(gas, sums=InvitedSums(7, "0.125", offset_s=offset_s))
    assert [one.epsilon for one in found.streams] == ["1", None]
    assert main(["setup", str(fleet / "other"), "--gas", "--slot-seconds", "1000"]) == 2


def test_gas_which_nobody_reports_has_no_plan_and_no_alarm_of_it(
    fleet: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor does `check` tell of θ and ε, which single values alone have."""
    invited(fleet, "--gas")
    capsys.readouterr()
    file = str(fleet / "aggregator.toml")
    for words in (("plan", "show"), ("theta",), ("plan", "propose"), ("plan", "publish")):
        assert main([*words, "--stream", "gas", "-c", file]) == 5
        told = capsys.readouterr().err
        assert told == "edge-ldp aggregator: gas: no plan: homes give its sums alone\n"
    assert main(["plan", "show", "-c", file]) == 5
    assert capsys.readouterr().err.endswith("no plan was issued yet: start the service\n")
    assert main(["status", "-c", file]) == 0
    shown = capsys.readouterr().out
    assert "power: no plan yet" in shown
    assert "gas: sums of homes alone, so no plan" in shown
    for question in (["query"], ["load-curve", "--by", "day"]):
        assert main([*question, "--stream", "gas", "-c", file]) == 5
        assert "gas: no home's sums of a period" in capsys.readouterr().err
    assert main(["check", "-c", file]) == 0
    *_, gas, asked = capsys.readouterr().out.splitlines()
    assert gas == "stream      gas (id 2): 0 to 6,000 dm3"
    assert asked.endswith("homes are asked for their sums of 7 days, at 0.125 of a window's ε")


class Typed(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("typed", "sums"), [("density\n", None), ("all\n\n", DAILY), ("", DAILY)])
def test_whoever_sits_there_is_asked(
    fleet: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    typed: str,
    sums: InvitedSums | None,
) -> None:
    monkeypatch.setattr(sys, "stdin", Typed(typed))
    assert invited(fleet)[0].streams[0].sums == sums
    asked = f"what is wanted most: {', '.join(WANTED)} [total] "
    assert asked in capsys.readouterr().err
