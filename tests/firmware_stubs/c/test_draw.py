"""One word a draw, rejection at the right word, and a source that fails gives nothing."""

import re

import pytest

from edge_ldp.device.draw import limit_of
from tests.firmware_stubs.c.builds import Runner, Script
from tests.firmware_stubs.c.laws import WORD_RANGE, random_words
from tests.firmware_stubs.c.vectors import Table, add_oracle, add_randomizer

MOST = WORD_RANGE - 1
REDRAWS = 128
NUMBERS = [
    *(1, 2, 3, 5, 7, 10**6, (1 << 32) - 1, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 63) + 1, MOST),
]
HYBRID: Table = {
    "mechanism": "hybrid",
    "low": 0,
    "high": 41,
    "coin": [25786, 65536],
    "waves": [[256, 78, 178145, 65536], [2, 0, 178145, 65536]],
}
SURVEY: Table = {
    "mechanism": "square-wave",
    "low": 0,
    "high": 1657,
    "coin": [1, 1],
    "waves": [[256, 65, 178145, 65536]],
}


def words(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(8, "little") for number in numbers)


@pytest.mark.parametrize("n", NUMBERS)
def test_words_below_the_limit_are_folded_and_others_drawn_again(run: Runner, n: int) -> None:
    limit = limit_of(n)
    script = Script()
    accepted = [word for word in (0, n - 1, n, 2 * n - 1, limit - n, limit - 1) if word < limit]
    script.entropy(words(*accepted))
    for word in accepted:
        script.add(f"draw {n}", word % n)
    refused = [word for word in (limit, MOST) if limit <= word <= MOST]
    script.entropy(words(*refused, 0, 0))
    script.add(f"draw {n}", 0)
    script.add("left", 8)
    assert run.differences(script) == []


def test_the_word_is_little_endian_and_no_number_below_zero_is_none(run: Runner) -> None:
    script = Script()
    script.entropy(bytes(range(1, 9)))
    script.add(f"draw {MOST}", 0x0807060504030201)
    script.entropy(words(7))
    script.add("draw 0", "n")
    script.add("left", 8)
    assert run.differences(script) == []


def test_a_source_of_refused_words_only_is_given_up(run: Runner) -> None:
    """The runner also stops if a word that was used is still there when the next is asked for."""
    script = Script()
    script.entropy(words(*[MOST] * REDRAWS, 4))
    script.add("draw 3", 1)
    script.entropy(words(*[MOST] * (REDRAWS + 1), 4))
    script.add("draw 3", "entropy")
    script.add("left", 8)
    script.add("constant 255", 255)
    script.add("draw 3", "entropy")
    script.add("draw 1", 0)
    assert run.differences(script) == []


def stream(script: Script) -> str:
    add_randomizer(script, HYBRID, 0)
    return "perturb 0 20"


def survey(script: Script) -> str:
    add_randomizer(script, HYBRID, 0)
    add_randomizer(script, SURVEY, 1)
    script.add("reporter 0 1 3 10", "ok")
    return "report 20"


def grr(size: int) -> Table:
    return {"mechanism": "grr", "size": size, "waves": [[size, 0, 3, 1]]}


ORACLES: dict[str, tuple[Table, int]] = {
    "grr": (grr(9), 1),
    "olh": ({"mechanism": "olh", "size": 9, "waves": [[4, 0, 3, 1]]}, 3),
    "hrr": ({"mechanism": "hrr", "size": 9, "waves": [[2, 0, 3, 1]]}, 2),
    "haar-hrr": ({"mechanism": "haar-hrr", "size": 9, "waves": [[2, 0, 3, 1]]}, 3),
    "hh": ({"mechanism": "hh", "size": 9, "fanout": 3, "levels": [grr(3), grr(9)]}, 2),
    "oue": ({"mechanism": "oue", "size": 9, "ratio": [3, 1]}, 9),
}


def check_failures(run: Runner, script: Script, command: str, given: bytes) -> None:
    """Check that nothing comes out unless the source gave every byte of what is needed."""
    for size in range(len(given)):
        script.entropy(given[:size])
        script.add(command, "entropy")  # and not EMITTED
    for place in range(1, len(given) // 8 + 1):
        script.entropy(given)
        script.add(f"fail {place}", place)
        script.add(command, "entropy")  # though the source would give the next word
    script.entropy(given)
    script.add(command, "a report")
    found = run.differences(script)
    assert [row[2] for row in found] == ["a report"]
    assert re.fullmatch("[0-9a-f ]+", found[0][1])


REPORTS = {
    "stream": (stream, random_words("stream", 3)),
    "survey": (survey, words(0, 5)),  # the coin says survey: buckets, no rounding
    "reporter's stream": (survey, words(9, 5, 6, 7)),  # the coin says stream
}


@pytest.mark.parametrize("kind", REPORTS)
def test_a_report_needs_all_its_draws(run: Runner, kind: str) -> None:
    make, given = REPORTS[kind]
    script = Script()
    check_failures(run, script, make(script), given)


@pytest.mark.parametrize(("table", "needed"), ORACLES.values(), ids=list(ORACLES))
def test_an_oracles_report_needs_all_its_draws(run: Runner, table: Table, needed: int) -> None:
    script = Script()
    command = f"{add_oracle(script, table)} 4"
    check_failures(run, script, command, random_words("oracle", needed))


def test_the_number_of_words_used_does_not_depend_on_the_value(run: Runner) -> None:
    """Some words are refused in every place, whatever the value."""
    given = words(MOST, 3, MOST, MOST, 11, MOST, 1 << 40) + random_words("values", 40)
    commands = []
    script = Script()
    command = survey(script)
    for value in [-(1 << 63), -1, *range(43), 1656, 1657, 1658, (1 << 63) - 1]:
        commands += [f"entropy {given.hex()}", f"{command[:-3]} {value}", "left"]
    printed = run([*script.commands, *commands])[len(script.commands) :]
    assert len(set(printed[2::3])) == 1
    assert len(set(printed[1::3])) > 1


def test_a_constant_source_is_not_noticed_here(host: Runner) -> None:
    """It gives words, so it gives codes: the health test is the caller's (docs/c-kernel.md)."""
    script = Script()
    command = stream(script)
    script.add("constant 0", 0)
    script.add(command, 125)
    assert host.differences(script) == []
