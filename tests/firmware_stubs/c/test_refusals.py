"""What the constructors refuse is what the Python ones refuse, by the same name."""

from collections.abc import Callable, Iterator
from itertools import product

from edge_ldp.device import oracle
from edge_ldp.device.channel import Wave, wave
from edge_ldp.device.errors import ParameterError
from edge_ldp.device.randomizer import BUCKETS, LATTICE, randomizer, reporter
from edge_ldp.device.table import profile, table
from tests.firmware_stubs.c.builds import Runner, Script
from tests.firmware_stubs.c.vectors import joined

MOST = (1 << 64) - 1
HALF = 1 << 63
U32 = (1 << 32) - 1


def outcome(build: Callable[..., object], *parameters: object) -> str:
    """Return "ok", or the name of the parameter that Python refuses."""
    try:
        build(*parameters)
    except ParameterError as refused:
        return refused.name
    return "ok"


def edges_of_waves() -> Iterator[tuple[int, int, int, int]]:
    for d, c in product((0, 1, 2, 3, 1000, 65_535, 65_536, 65_537, U32), (0, 1, 32_767, 32_768)):
        for r_num, r_den in product((0, 1, 2, 1 << 48, HALF, MOST), (0, 1, 2, 1 << 48, MOST)):
            yield d, c, r_num, r_den
    for d, c, r_den in product((2, 7, 65_536), (0, 3), (1, 12_345)):
        fits = (MOST - (d - 1) * r_den) // (2 * c + 1)  # the largest r_num whose total fits
        yield from ((d, c, fits + step, r_den) for step in (-1, 0, 1))
    yield from ((2, c, 3, 1) for c in (32_766, U32, HALF >> 32, (HALF >> 32) - 1))


def test_waves_are_refused_as_in_python(run: Runner) -> None:
    script = Script()
    for numbers in edges_of_waves():
        script.add(f"wave 0 {joined(numbers)}", outcome(wave, *numbers))
    assert set(script.expected) == {"ok", "d", "c", "r_num", "r_den"}
    assert run.differences(script) == []


def test_profiles_are_refused_as_in_python(run: Runner) -> None:
    shapes: list[tuple[int, int, list[int]]] = [
        (d, r_den, weights)
        for d in (0, 1, 2, 65_534, 65_535, 65_536, 65_537)
        for r_den in (0, 1, 2)
        for weights in ([], [3], [2, 3], [3, 3, 3], [2, 2, 2], [1, 2, 3], [0, 1, 0], [1, 1, 2])
    ]
    shapes += [(2, 1, [1] * count + [2]) for count in (65_532, 65_534, 65_536)]
    shapes += [(2, 1, [MOST - 1]), (2, 1, [MOST]), (3, HALF, [HALF + 1])]
    shapes += [(2, 1, [HALF, HALF, 1]), (2, 1, [HALF - 2, HALF - 1, 1]), (2, 1, [HALF - 1] * 3)]
    expected = [outcome(profile, d, weights, r_den) for d, r_den, weights in shapes]
    script = Script()
    for (d, r_den, weights), name in zip(shapes, expected, strict=True):
        script.add(f"profile 0 {d} {r_den} {len(weights)} {joined(weights)}", name)
    assert set(expected) == {"ok", "d", "c", "r_den", "weights"}
    assert run.differences(script) == []


def test_tables_are_refused_as_in_python(run: Runner) -> None:
    rows: list[list[list[int]]] = [
        [[1, 2], [2, 1]],
        [[1, 2], [2, 2]],
        [[1, 2], [3, 0]],
        [[0, 2], [1, 1]],
        [[1, 2]],
        [[3], [3]],
        [[1, MOST - 1], [MOST - 1, 1]],
        [[1, MOST], [MOST, 1]],
        [[HALF, HALF], [HALF, HALF]],
        [[HALF, HALF - 1], [HALF - 1, HALF]],
        [[1, 2, 3], [3, 2, 1], [2, 2, 2]],
        [[1, 2, 3], [3, 2, 1], [2, 2, 3]],
    ]
    script = Script()
    for numbers in rows:
        flat = joined(number for row in numbers for number in row)
        script.add(f"table 0 {len(numbers)} {len(numbers[0])} {flat}", outcome(table, numbers))
    script.add("table 0 0 2", "weights")
    script.add("table 0 2 0", "weights")
    script.add("table 0 2 65537" + " 1" * 2 * 65_537, "weights")
    assert script.expected.count("ok") == 4
    assert run.differences(script) == []


WAVES = [wave(4, 1, 3, 1), wave(2, 0, 3, 1), wave(65_530, 0, 3, 1), wave(65_532, 0, 3, 1)]


def randomizer_edges() -> Iterator[tuple[int, int, int, tuple[int, int], list[Wave]]]:
    far = 1 << 62
    bounds = [(0, 1), (0, 3), (1, 1), (2, 1), (-2, 1), (0, 2), (-(1 << 47), 1 << 47)]
    bounds += [(0, (1 << 48) - 1), (0, 1 << 48), (-far, far), (-2 * far, 2 * far - 1)]
    bounds += [(-2 * far, 5 - 2 * far), (2 * far - 6, 2 * far - 1)]
    coins = [(1, 1), (0, 1), (0, 0), (3, 2), (2, 3), (1 << 32, 1 << 32), (1, (1 << 32) + 1)]
    for (low, high), encoder, coin in product(bounds, (BUCKETS, LATTICE), coins):
        yield from ((low, high, encoder, coin, WAVES[:count]) for count in (1, 2))
    yield from ((0, 9, encoder, (1, 1), WAVES[:1]) for encoder in (2, 255, (1 << 31) - 1))
    yield from ((0, 1 << 40, LATTICE, (1, 2), [WAVES[0], wave]) for wave in WAVES[2:])
    yield from ((0, 9, LATTICE, (1, 1), WAVES[:count]) for count in (0, 3))


def test_randomizers_are_refused_as_in_python(run: Runner) -> None:
    script = Script()
    for low, high, encoder, coin, channels in randomizer_edges():
        for at, one in enumerate(channels):
            script.add(f"wave {at} {joined(one[:4])}", "ok")
        name = outcome(randomizer, low, high, encoder, coin, tuple(channels))
        numbers = joined((0, low, high, encoder, *coin, 0, len(channels)))
        script.add(f"randomizer {numbers}", name)
    assert set(script.expected) == {"ok", "high", "coin", "channels", "encoder", "size"}
    assert run.differences(script) == []


def test_reporters_are_refused_as_in_python(run: Runner) -> None:
    script = Script()
    made = []
    for at, one in enumerate((wave(6, 0, 3, 1), *WAVES[2:])):
        made.append(randomizer(0, 1 << 40, LATTICE, (1, 1), (one,)))
        script.add(f"wave {at} {joined(one[:4])}", "ok")
        script.add(f"randomizer {at} 0 {1 << 40} 1 1 1 {at} 1", "ok")
    shares = [(0, 1), (1, 1), (2, 1), (0, 0), (5, 1 << 32), (1 << 32, 1 << 32), (1, (1 << 32) + 1)]
    for survey, share in product((1, 2), shares):
        name = outcome(reporter, made[0], made[survey], share)
        script.add(f"reporter 0 {survey} {joined(share)}", name)
    assert set(script.expected) == {"ok", "share", "size"}
    assert run.differences(script) == []


def test_what_was_refused_gives_no_code(run: Runner) -> None:
    """Also where nobody looked at the refusal: the structure says so by itself."""
    script = Script()
    script.entropy(bytes(800))
    script.add("wave 0 4 1 3 1", "ok")
    script.add("randomizer 0 0 9 1 1 1 0 1", "ok")
    script.add("reporter 0 0 1 2", "ok")
    script.add("reporter 0 0 1 0", "share")
    script.add("report 5", "channels")
    script.add("randomizer 0 9 9 1 1 1 0 1", "high")
    script.add("perturb 0 5", "channels")
    script.add("allowed 0 1000 1", 0)
    script.add("reporter 0 0 1 2", "channels")
    script.add("report 5", "channels")
    script.add("wave 0 1 1 3 1", "d")
    script.add("sample 0 0", "channels")
    script.add("within 0 1000 1", 0)
    script.add("randomizer 0 0 9 1 1 1 0 1", "channels")
    script.add("profile 1 4 1 2 5 5", "weights")
    script.add("sample 1 0", "channels")
    script.add("table 2 2 2 1 1 1 2", "weights")
    script.add("sample 2 0", "channels")
    for place, kind in enumerate(("grr", "hrr", "haar-hrr"), start=3):
        script.add(f"{kind} {place} 1 3 1", "size")
        script.add(f"oracle {place} 0", "channels")
    script.add("olh 6 9 1 3 1", "g")
    script.add("oracle 6 0", "channels")
    script.add("hh 9 3 6 1", "levels")
    script.add("tree 0", "channels")
    script.add("oue 1 3 1", "size")
    script.add("bits 10 0", "channels")
    script.add("left", 800)
    assert run.differences(script) == []


def test_an_input_beyond_the_channels_is_refused(run: Runner) -> None:
    script = Script()
    script.entropy(bytes(80))
    script.add("wave 0 4 1 3 1", "ok")
    for index in (4, 5, 65_536, U32):
        script.add(f"sample 0 {index}", "value")
    script.add("left", 80)
    assert run.differences(script) == []


TWO_31 = 1 << 31
RATIOS = [(3, 1), (3, 0), (3, 3), (3, 4), (HALF - 2, 1), (HALF - 1, 1), (HALF, 1), (MOST - 1, 1)]
RATIOS += [(MOST, 1), (MOST, MOST - 1), (HALF + 6, HALF + 5), (HALF // 2, HALF // 2 - 1)]
RATIOS += [(HALF // 2 + 1, HALF // 2), (HALF // 2, HALF // 2 + 1), (HALF, HALF - 1), (HALF, HALF)]
SIZES = [0, 1, 2, 65_536, 65_537, TWO_31 - 1, TWO_31, TWO_31 + 1, U32]


def test_oracles_are_refused_as_in_python(run: Runner) -> None:
    script = Script()
    kinds = {"grr": oracle.grr, "hrr": oracle.hrr, "haar-hrr": oracle.haar_hrr}
    for size, ratio in product(SIZES, RATIOS):
        for kind, build in kinds.items():
            script.add(f"{kind} 0 {size} {joined(ratio)}", outcome(build, size, *ratio))
        script.add(f"oue {size} {joined(ratio)}", outcome(oracle.oue, size, *ratio))
        for g in (0, 1, 2, 65_536, 65_537, U32):
            name = outcome(oracle.olh, size, g, *ratio)
            script.add(f"olh 0 {size} {g} {joined(ratio)}", name)
    assert set(script.expected) == {"ok", "size", "g", "r_num", "r_den"}
    assert run.differences(script) == []


def test_a_tree_has_the_levels_that_its_size_and_fanout_ask_for(run: Runner) -> None:
    script = Script()
    made = [oracle.grr(size, 3, 1) for size in (3, 9, 27, 4)]
    for place, level in enumerate(made):
        script.add(f"grr {place} {level.size} 3 1", "ok")
    shapes = product((0, 1, 2, 3, 4, 9, 10, 27, 28, TWO_31 - 1, TWO_31, U32), (0, 1, 2, 3, 4))
    wide = [(TWO_31 - 1, 46_341), (TWO_31 - 1, 65_536), (2, 65_536), (2, 65_537), (2, U32)]
    for (size, fanout), first, count in product([*shapes, *wide], (0, 1, 3), (0, 1, 2, 3)):
        if first + count <= len(made):
            levels = tuple(made[first : first + count])
            name = outcome(oracle.hierarchy, size, fanout, levels)
            script.add(f"hh {size} {fanout} {first} {count}", name)
    assert set(script.expected) == {"ok", "size", "fanout", "levels"}
    assert run.differences(script) == []


def test_no_level_of_a_tree_is_an_hrr(run: Runner) -> None:
    assert run(["hrr 0 3 3 1", "hh 3 3 0 1"]) == ["ok", "levels"]


def test_the_bits_of_oue_need_their_room(run: Runner) -> None:
    script = Script()
    script.add("oue 17 3 1", "ok")
    script.entropy(bytes(17 * 8))
    script.add("bits 2 0", "storage")
    script.add("left", 17 * 8)
    script.add("bits 3 0", "ffff01")
    assert run.differences(script) == []
