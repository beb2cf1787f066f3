"""Exact laws of the C kernel: every draw is run, and the fractions are compared."""

from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import chain

import pytest

from edge_ldp.device.channel import wave
from edge_ldp.device.randomizer import BUCKETS, LATTICE, Randomizer, randomizer
from edge_ldp.device.table import profile, table
from tests.firmware_stubs.c.builds import Runner, Script
from tests.firmware_stubs.c.laws import all_runs, chance, profile_rows, wave_rows, words_for
from tests.firmware_stubs.c.vectors import joined

Rows = list[list[int]]
TABLE = [[5, 1, 3], [3, 3, 3], [1, 2, 6], [2, 5, 2]]
CHANNELS: dict[str, tuple[str, Rows]] = {
    "wave": ("wave 0 4 2 3 1", wave_rows(4, 2, 3, 1)),
    "wave, no neighbours": ("wave 0 2 0 7 3", wave_rows(2, 0, 7, 3)),
    "wave, wider than its range": ("wave 0 3 5 4 3", wave_rows(3, 5, 4, 3)),
    "profile": ("profile 0 5 2 5 3 5 9 5 3", profile_rows(5, [3, 5, 9, 5, 3], 2)),
    "profile, one weight": ("profile 0 3 1 1 4", profile_rows(3, [4], 1)),
    "profile, not symmetric": ("profile 0 3 2 3 2 7 5", profile_rows(3, [2, 7, 5], 2)),
    "table": (f"table 0 4 3 {joined(chain(*TABLE))}", TABLE),
}


@pytest.mark.parametrize(("command", "rows"), CHANNELS.values(), ids=list(CHANNELS))
def test_every_draw_of_a_channel_gives_each_code_its_weight(
    run: Runner, command: str, rows: Rows
) -> None:
    total = sum(rows[0])
    picks = [f"pick 0 {i} {u}" for i in range(len(rows)) for u in range(total)]
    first, *codes = run([command, *picks])
    assert first == "ok"
    for i, row in enumerate(rows):
        of_row = codes[i * total : (i + 1) * total]
        assert [of_row.count(str(code)) for code in range(len(row))] == row


@dataclass(frozen=True)
class Small:
    """A randomizer small enough for all its draws, and the rows of its channels' weights."""

    made: Randomizer
    commands: list[str]
    rows: list[Rows]


def small(
    bounds: tuple[int, int], encoder: int, coin: tuple[int, int], *names: tuple[int, ...]
) -> Small:
    """Return a randomizer of waves (d, c, r_num, r_den)."""
    commands = [f"wave {at} {joined(name)}" for at, name in enumerate(names)]
    commands.append(f"randomizer 0 {joined((*bounds, encoder, *coin))} 0 {len(names)}")
    channels = tuple(wave(d, c, r_num, r_den) for d, c, r_num, r_den in names)
    made = randomizer(*bounds, encoder, coin, channels)
    return Small(made, commands, [wave_rows(d, c, num, den) for d, c, num, den in names])


RANDOMIZERS = {
    "buckets": small((-3, 7), BUCKETS, (1, 1), (4, 1, 5, 2)),
    "one value a bucket": small((0, 3), BUCKETS, (1, 1), (4, 2, 3, 1)),
    "stochastic rounding": small((-2, 5), LATTICE, (1, 1), (2, 0, 8, 3)),
    "lattice": small((-3, 7), LATTICE, (1, 1), (4, 2, 3, 1)),
    "finer than the integers": small((0, 2), LATTICE, (1, 1), (6, 1, 4, 3)),
    "hybrid": small((0, 4), LATTICE, (3, 8), (3, 1, 5, 2), (2, 0, 5, 2)),
    "hybrid, never the first": small((0, 4), LATTICE, (0, 4), (3, 1, 5, 2), (2, 0, 5, 2)),
    "mixed buckets": small((0, 5), BUCKETS, (1, 3), (3, 0, 5, 2), (2, 1, 3, 1)),
    "table": Small(
        randomizer(-1, 4, LATTICE, (1, 1), (table(TABLE),)),
        [CHANNELS["table"][0], "randomizer 0 -1 4 1 1 1 0 1"],
        [TABLE],
    ),
    "profile": Small(
        randomizer(-4, 4, BUCKETS, (1, 1), (profile(5, [3, 5, 9, 5, 3], 2),)),
        [CHANNELS["profile"][0], "randomizer 0 -4 4 0 1 1 0 1"],
        [CHANNELS["profile"][1]],
    ),
}


def expected_law(of: Small, value: int) -> dict[int, Fraction]:
    """Return the law of a report, by adding up weights."""
    low, high, encoder, (num, den), _ = of.made
    clamped = min(max(value, low), high)
    law: dict[int, Fraction] = {}
    first_code = 0
    for rows, share in zip(of.rows, (Fraction(num, den), 1 - Fraction(num, den)), strict=False):
        if encoder == LATTICE:
            at = Fraction((clamped - low) * (len(rows) - 1), high - low)
            inputs = {int(at): 1 - at % 1, int(at) + 1: at % 1}
        else:
            inputs = {(clamped - low) * len(rows) // (high - low + 1): Fraction(1)}
        for i, mass in inputs.items():
            for j, weight in enumerate(rows[i] if mass else ()):
                part = share * mass * Fraction(weight, sum(rows[i]))
                law[first_code + j] = law.get(first_code + j, Fraction(0)) + part
        first_code += len(rows[0])
    return {code: part for code, part in law.items() if part}


@pytest.mark.parametrize("of", RANDOMIZERS.values(), ids=list(RANDOMIZERS))
def test_the_law_of_every_value_is_exact(run: Runner, of: Small) -> None:
    values = range(of.made.low - 1, of.made.high + 2)
    runs = {value: all_runs(partial(of.made.perturb, value)) for value in values}
    commands = list(of.commands)
    for value in values:
        commands.append(f"entropy {words_for(sequence for sequence, _ in runs[value]).hex()}")
        commands += [f"perturb 0 {value}"] * len(runs[value])
        commands.append("left")
    lines = iter(run(commands))
    assert {next(lines) for _ in of.commands} == {"ok"}
    for value in values:
        next(lines)
        law: dict[int, Fraction] = {}
        for sequence, report in runs[value]:
            code = int(next(lines))
            assert code == report
            law[code] = law.get(code, Fraction(0)) + chance(sequence)
        assert next(lines) == "0"
        assert law == expected_law(of, value)


@pytest.mark.parametrize("of", RANDOMIZERS.values(), ids=list(RANDOMIZERS))
def test_the_largest_ratio_is_what_the_policy_is_told(host: Runner, of: Small) -> None:
    worst = max(
        Fraction(max(column), min(column)) for rows in of.rows for column in zip(*rows, strict=True)
    )
    num, den = worst.as_integer_ratio()
    asked = [(num, den), (num * 7, den * 7), (num * 1000 - 1, den * 1000), (1, 1), (1, 0)]
    script = Script([*of.commands], ["ok" for _ in of.commands])
    for a, b in asked:
        script.add(f"allowed 0 {a} {b}", int(b > 0 and worst <= Fraction(a, b)))
    assert host.differences(script) == []


def test_fractions_are_compared_exactly_where_their_products_need_128_bits(run: Runner) -> None:
    script = Script()
    most = (1 << 64) - 1
    for d, num, den in [(2, (1 << 62) + 1, (1 << 62) - 1), (2, 178145, 65536), (3, 3, 2)]:
        script.add(f"wave 0 {d} 0 {num} {den}", "ok")
        for a, b in [
            (num, den),
            (num - 1, den),
            (num, den + 1),
            (2 * num, 2 * den),
            (2 * num - 1, 2 * den),
            (most, most - 1),
            (most, 1),
            (1, most),
            (0, 1),
            (most - 1, most // 3),
        ]:
            script.add(f"within 0 {a} {b}", int(Fraction(num, den) <= Fraction(a, b)))
    assert {line for line in script.expected if line != "ok"} == {"0", "1"}
    assert run.differences(script) == []
