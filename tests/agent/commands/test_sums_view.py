"""What `check`, `ledger` and `explain` say of sums: each cost, and all of them together."""

import argparse
import json
from fractions import Fraction
from pathlib import Path

import pytest

from agent.commands import house
from agent.commands.habits import habits_facts, habits_text, sums_words
from agent.commands.sums_view import costs, give_or_take, told_of_sums, upwards
from agent.config.summed_streams import sum_terms
from edge_ldp.period_sums.law import Noise, noise_half_width
from tests.agent.samples import config_text, make_config
from tests.agent.summed import BOTH, GAS, MIDNIGHT, WINDOW, SumsBench


def table(text: str) -> list[list[str]]:
    """Return the cells of the table of costs: of each row after its name."""
    lines = text[text.index("ε at most") : text.index("A window is")].splitlines()
    return [line[24:].split() for line in lines]


pytestmark = pytest.mark.usefixtures("runtime")


def test_every_cost_is_rounded_up_and_a_day_is_counted_over_windows() -> None:
    """ε 8 in any 97 slots: a day of 96 is just below it, a week seven days at the most."""
    stream = 'mode = "sums"\n[streams.sums]\nshare = 1\n'
    config = make_config(Path("s.db"), window=(8, 97), ceiling=43_470, stream=stream)
    (terms,) = sum_terms(config).values()
    found = {key: upwards(cost) for key, cost in costs(config, terms).items()}
    assert found == {
        "a slot": 0.082475,
        "a window": 7.999997,
        "a day": 7.917523,
        "a period": 55.422655,
        "a year": 2889.895537,
    }
    assert upwards(Fraction(1, 3)) == 0.333334
    assert Fraction(found["a slot"]) >= terms.per_slot


@pytest.mark.parametrize("block_hours", [1, 2])
def test_habits_are_told_of_layouts_that_were_measured_and_of_no_other(block_hours: int) -> None:
    stream = 'mode = "sums"\n[streams.sums]\nshare = 1\ndays = 28\ncells = 24\nleast_b = 527_074\n'
    stream += f"block_hours = {block_hours}"
    config = make_config(Path("s.db"), window=(8, 97), ceiling=43_470, stream=stream)
    (terms,) = sum_terms(config).values()
    facts, words = habits_facts(config), sums_words(config, terms)
    if block_hours > 1:
        assert (facts, words, habits_text(facts)) == ([], "", "")
    else:
        assert [(one["of"], one["found"]["a week away"]) for one in facts] == [
            ("sums of power", 0.61)
        ]
        assert "A month's sums of power tell habits, to who" in habits_text(facts)
        assert "in brackets: by reports alone): a week away 61 (75)" in words


@pytest.mark.parametrize("block", [1, 2, 4, 16, 24])
def test_what_a_part_is_off_is_the_laws_own(block: int) -> None:
    known = noise_half_width([Noise(100_000, block)])
    assert give_or_take(100_000, block) == pytest.approx(known, rel=2e-3)


def told(
    capsys: pytest.CaptureFixture[str], path: Path, command: str, *, is_json: bool = False
) -> str:
    args = argparse.Namespace(config=path, json=is_json, live=False, strict=False)
    getattr(house, command)(args)
    return capsys.readouterr().out


def test_the_owner_sees_what_a_slot_a_window_and_a_period_cost_in_both_ways(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    life = "lifetime = { epsilon = 1000 }"
    bench = SumsBench(tmp_path / "s.db", BOTH, policy=life)
    bench.day()
    bench.push(500)
    bench.journal.close()
    path = tmp_path / "agent.toml"
    clock = f'trust = "assume"\norigin_s = {MIDNIGHT + 90_000}\nstarted_s = 0'
    text = config_text(tmp_path / "s.db", stream=BOTH, window=WINDOW, clock=clock, policy=life)
    path.write_text(text)
    text = told(capsys, path, "check")
    assert "every 1 day one sum; values up to 4,000 W count in full" in text
    assert "b = 4,000: a part is known to give or take 3.0 kWh (95 %)" in text
    assert table(text)[1:] == [
        ["1", "4", "96", "96", "35,040"],
        ["1", "4", "96", "-", "35,040"],
        ["2", "8", "192", "-", "70,080"],
    ]
    assert "A window is any 4 slots (1 h); you allow ε 8 in it, and ε 1,000 ever." in text
    assert "in memory only: a reboot loses the period so far" in text
    assert "reports_per_window      4 in any 4 slots" in text
    text = told(capsys, path, "ledger")
    assert [row[-1] for row in table(text)] == ["far", "96", "96.9998", "193"]
    assert "97 reports" in text
    facts = json.loads(told(capsys, path, "ledger", is_json=True))
    assert facts["sums"] == [{"stream": 0, "periods": 1, "slots": 96, "epsilon": 96.0}]
    text = told(capsys, path, "explain")
    assert "Periods' sums: 1 made, 0 arrived, 1 here until a receipt, 0 given up" in text
    assert "sums of power: " in text
    counts, kept = json.loads(told(capsys, path, "explain", is_json=True))["sums"]
    assert counts == {"made": 1, "arrived": 0, "expired": 0}
    assert (kept["slots"], kept["from_s"]) == ([96], MIDNIGHT)
    status = json.loads(told(capsys, path, "status", is_json=True))
    assert [one["stream"] for one in status["streams"]] == [1, 512]
    assert status["lifetime_left"] == 1000 - 96 - 97
    assert "sums of power           1 made" in told(capsys, path, "status")


def test_who_only_sums_is_told_of_no_reports(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = SumsBench(tmp_path / "s.db", device='keep = "disk"')
    bench.push(500)
    bench.journal.close()
    path = tmp_path / "agent.toml"
    path.write_text(
        config_text(tmp_path / "s.db", stream=bench.stream, window=WINDOW, device='keep = "disk"')
    )
    text = told(capsys, path, "check")
    assert "epsilon_per_report" not in text
    assert "together                          2          8        192" in text
    assert "ON THE DISK: whoever copies it twice" in text
    assert "you allow ε 8 in it" in told(capsys, path, "ledger")
    assert "Periods' sums: 0 made" in told(capsys, path, "explain")


def test_gas_by_the_hour_is_told_in_its_own_slots_and_paid_in_the_homes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Any 97 quarter hours touch 25 hours, and a day's 96 no fewer."""
    path = tmp_path / "agent.toml"
    path.write_text(config_text(tmp_path / "s.db", stream=GAS, window=(8, 97)))
    text = told(capsys, path, "check")
    assert "every 1 day one sum, in slots of 1 h, each of 4 of the home's; values up to" in text
    assert "b = 37,500: a part is known to give or take 112.3 m3 (95 %)" in text
    assert table(text)[1:] == [
        ["0.16", "4", "4", "3.84", "1,460"],
        ["1", "4", "4", "-", "1,448"],
        ["1.16", "8", "8", "-", "2,908"],
    ]
    config = make_config(tmp_path / "s.db", stream=GAS, window=(8, 97))
    (paragraph,) = told_of_sums(config)
    assert "A slot costs ε 0.16, any 24 h 15 min ε 4 at most" in " ".join(paragraph.split())
    found = "Of 100 pairs of months of made-up homes, one of them with the habit, he says so often"
    assert found in " ".join(text.split())
    assert "a week away 64, a night setback 50, nobody in on workdays 57" in " ".join(text.split())
    assert habits_facts(config)[-1]["found"]["a night setback"] == 0.50
