"""Write the golden vectors, once: tests/vectors/<format>/v<N>/*.json. Never overwrites a file.

Frames are packed here by hand, field by field, so that they judge `edge_ldp.device.frame` and not
the other way round. Reports record what the scalar kernel gives for the bytes in the file: whether
its law is right is the exact-law tests' business, whether it stays the same on every platform is
the vectors'. Words to be drawn again are planted in every place of a report.
"""

import json
import re
import struct
import sys
from collections.abc import Callable, Iterable, Iterator
from hashlib import shake_256
from pathlib import Path

from edge_ldp import (
    GeneralWave,
    Hybrid,
    Mechanism,
    Piecewise,
    SquareWave,
    StochasticRounding,
    Tuned,
)
from edge_ldp.device.draw import WORD_BYTES, WORD_RANGE, limit_of
from edge_ldp.device.randomizer import reporter
from edge_ldp.oracles import Grr, HaarHrr, Hierarchy, Hrr, Olh, Oracle, Oue

VECTORS = Path(__file__).parent.parent / "tests" / "vectors"
U32 = (1 << 32) - 1
REPORTS = 16
ORACLE_REPORTS = 15
NUMBERS = re.compile(r"\[[-\d,\s]+\]")  # lists of numbers, to stand on one line

Row = dict[str, object]
Perturb = Callable[[int, Callable[[int], int]], object]
Words = Callable[[int, int], Iterable[int]]


def main() -> int:
    """Write every file that is not there yet; return 1 if one was there."""
    files = {
        "frame/v1/valid.json": {"format": "frame", "version": 1, "frames": valid_frames()},
        "frame/v1/malformed.json": {"format": "frame", "version": 1, "frames": malformed_frames()},
        "frame/v2/valid.json": {"format": "frame", "version": 2, "frames": valid_in_series()},
        "frame/v2/malformed.json": {"format": "frame", "version": 2, "frames": malformed_series()},
        **{f"report/v1/{name}.json": table for name, table in report_tables()},
        **{f"oracle/v1/{name}.json": table for name, table in oracle_tables()},
    }
    kept = 0
    for name, table in files.items():
        path = VECTORS / name
        if path.exists():
            print(f"kept    {path}: vectors are never regenerated in place")
            kept += 1
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(table, indent=1)
        path.write_text(NUMBERS.sub(lambda found: " ".join(found[0].split()), text) + "\n")
        print(f"written {path}")
    return 1 if kept else 0


# frames


def packed(
    pairs: list[tuple[int, int]],
    head: tuple[int, int, int, int] = (7, 1, 1, 100),
    count: int | None = None,
    start: bytes = b"LD\x01\x00",
) -> bytes:
    """Return a frame (docs/design.md, Messages); head is stream, batch, epoch, first slot."""
    rest = struct.pack("<BIII", *head) + struct.pack("<H", len(pairs) if count is None else count)
    return start + rest + b"".join(struct.pack("<HH", *pair) for pair in pairs)


def valid_frames() -> list[Row]:
    """Return frames that every reader must accept."""
    many = [(3 * at, at * 40_503 % 65_536) for at in range(40)]
    rows: list[tuple[str, list[tuple[int, int]], tuple[int, int, int, int]]] = [
        ("one report", [(0, 479)], (1, 1, 1, 1_965_312)),
        ("three reports with silent slots between", [(0, 1), (5, 0), (97, 1536)], (0, 2, 9, 40)),
        ("all fields zero", [(0, 0)], (0, 0, 0, 0)),
        ("all fields at their largest", [(0, 65_535)], (255, U32, U32, U32)),
        ("the widest offset", [(0, 3), (65_535, 4)], (2, 70_000, 5, 7)),
        ("the last slot of all", [(0, 3), (65_535, 4)], (2, 70_000, 5, U32 - 65_535)),
        ("slots across 2^31", [(0, 1), (1, 2), (2, 3)], (2, 3, 4, (1 << 31) - 1)),
        ("forty reports", many, (1, 77, 12, 1_965_312)),
    ]
    return [
        {
            "name": name,
            "hex": packed(pairs, head).hex(),
            "stream": head[0],
            "batch": head[1],
            "epoch": head[2],
            "slots": [head[3] + offset for offset, _ in pairs],
            "codes": [code for _, code in pairs],
        }
        for name, pairs, head in rows
    ]


def malformed_frames() -> list[Row]:
    """Return bytes that every reader must refuse, with the reason and the byte it must name."""
    two = [(0, 5), (4, 6)]
    good = packed(two)
    rows: list[tuple[str, bytes, str, int, str]] = [
        ("nothing", b"", "short", 0, "REP_01"),
        ("a magic alone", b"LD", "short", 2, "REP_01"),
        ("one byte less than a head", good[:18], "short", 18, "REP_01"),
        ("a head alone, zero slots", packed([]), "count", 17, "REP_01"),
        ("zero slots, yet a pair", packed(two, count=0), "count", 17, "REP_01"),
        ("1025 slots", packed(two, count=1025), "count", 17, "REP_01"),
        ("65535 slots", packed(two, count=65_535), "count", 17, "REP_12"),
        ("another magic", packed(two, start=b"LE\x01\x00"), "magic", 0, "REP_01"),
        ("bytes of the magic swapped", packed(two, start=b"DL\x01\x00"), "magic", 0, "REP_01"),
        ("version 0", packed(two, start=b"LD\x00\x00"), "version", 2, "REP_01"),
        ("version 3", packed(two, start=b"LD\x03\x00"), "version", 2, "REP_01"),
        ("a flag", packed(two, start=b"LD\x01\x01"), "flags", 3, "REP_01"),
        ("the highest flag", packed(two, start=b"LD\x01\x80"), "flags", 3, "REP_01"),
        ("count one too high", packed(two, count=3), "length", 27, "REP_01"),
        ("count one too low", packed(two, count=1), "length", 27, "REP_01"),
        ("a trailing byte", good + b"\x00", "length", 28, "REP_01"),
        ("a trailing pair", good + bytes(4), "length", 31, "REP_01"),
        ("half a pair cut off", good[:-2], "length", 25, "REP_01"),
        ("count in the other byte order", packed(two, count=512), "length", 27, "REP_01"),
        ("first offset not zero", packed([(1, 5), (4, 6)]), "order", 19, "REP_06"),
        ("the same slot twice", packed([(0, 5), (0, 5)]), "order", 23, "REP_06"),
        ("slots out of order", packed([(0, 5), (9, 6), (4, 7)]), "order", 27, "REP_06"),
        (
            "an offset that wrapped u16",
            packed([(0, 5), (65_535, 6), (0, 7)]),
            "order",
            27,
            "REP_06",
        ),
        ("a slot beyond u32", packed(two, (7, 1, 1, U32)), "order", 23, "REP_06"),
        (
            "the last slot but one, then two on",
            packed(two, (7, 1, 1, U32 - 3)),
            "order",
            23,
            "REP_06",
        ),
        ("nested JSON", b"[" * 64, "magic", 0, "REP_12"),
        ("a gzip member", bytes.fromhex("1f8b08000000000002ff") + bytes(30), "magic", 0, "REP_12"),
        ("a huge integer in JSON", b'{"count":' + b"9" * 64 + b"}", "magic", 0, "REP_12"),
    ]
    return [
        {"name": name, "hex": made.hex(), "reason": reason, "offset": offset, "covers": row}
        for name, made, reason, offset, row in rows
    ]


def packed_in_series(
    pairs: list[tuple[int, int]],
    head: tuple[int, int, int, int, int, int] = (7, 9, 1, 1, 5, 100),
    count: int | None = None,
    start: bytes = b"LD\x02\x00",
) -> bytes:
    """Return a frame v2 (docs/adr/0027-series.md).

    head: stream, series, batch, epoch, tag, first slot.
    """
    rest = struct.pack("<BIIIII", *head) + struct.pack("<H", len(pairs) if count is None else count)
    return start + rest + b"".join(struct.pack("<HH", *pair) for pair in pairs)


def valid_in_series() -> list[Row]:
    """Return frames v2 that every reader must accept."""
    many = [(3 * at, at * 40_503 % 65_536) for at in range(40)]
    rows: list[tuple[str, list[tuple[int, int]], tuple[int, int, int, int, int, int]]] = [
        ("one report", [(0, 479)], (1, 1, 1, 1, 0x0403_0201, 1_965_312)),
        ("the smallest numbers", [(0, 0)], (0, 1, 0, 0, 0, 0)),
        ("all fields at their largest", [(0, 65_535)], (255, U32, U32, U32, U32, U32)),
        ("the widest offset", [(0, 3), (65_535, 4)], (2, 1 << 31, 2, 5, 6, U32 - 65_535)),
        ("forty reports", many, (1, 123_456_789, 77, 12, 987_654_321, 1_965_312)),
    ]
    return [
        {
            "name": name,
            "hex": packed_in_series(pairs, head).hex(),
            "stream": head[0],
            "batch": head[2],
            "epoch": head[3],
            "slots": [head[5] + offset for offset, _ in pairs],
            "codes": [code for _, code in pairs],
            "series": head[1],
            "tag": head[4],
        }
        for name, pairs, head in rows
    ]


def malformed_series() -> list[Row]:
    """Return bytes of version 2 that every reader must refuse."""
    two = [(0, 5), (4, 6)]
    good = packed_in_series(two)
    rows: list[tuple[str, bytes, str, int, str]] = [
        ("one byte less than a head", good[:26], "short", 26, "REP_01"),
        ("a frame v1 that says 2", packed(two, start=b"LD\x02\x00"), "length", 27, "REP_01"),
        ("a head alone, zero slots", packed_in_series([]), "count", 25, "REP_01"),
        ("1025 slots", packed_in_series(two, count=1025), "count", 25, "REP_01"),
        ("another magic", packed_in_series(two, start=b"LE\x02\x00"), "magic", 0, "REP_01"),
        ("a flag", packed_in_series(two, start=b"LD\x02\x01"), "flags", 3, "REP_01"),
        ("series 0", packed_in_series(two, (7, 0, 1, 1, 5, 100)), "series", 5, "REP_01"),
        (
            "version 2 that says 1",
            packed_in_series(two, start=b"LD\x01\x00"),
            "length",
            35,
            "REP_01",
        ),
        ("a trailing byte", good + b"\x00", "length", 36, "REP_01"),
        ("half a pair cut off", good[:-2], "length", 33, "REP_01"),
        ("first offset not zero", packed_in_series([(1, 5), (4, 6)]), "order", 27, "REP_06"),
        ("the same slot twice", packed_in_series([(0, 5), (0, 5)]), "order", 31, "REP_06"),
        (
            "a slot beyond u32",
            packed_in_series(two, (7, 9, 1, 1, 5, U32)),
            "order",
            31,
            "REP_06",
        ),
    ]
    return [
        {"name": name, "hex": made.hex(), "reason": reason, "offset": offset, "covers": row}
        for name, made, reason, offset, row in rows
    ]


# reports


def report_tables() -> Iterator[tuple[str, Row]]:
    """Yield (file name, table) for each mechanism and for the survey coin with two of them."""
    mechanisms: list[tuple[str, Mechanism]] = [
        ("square-wave", SquareWave(epsilon=1, low=0, high=4999, size=1024)),
        ("square-wave-small", SquareWave(epsilon="0.5", low=-100, high=900, size=64)),
        ("stochastic-rounding", StochasticRounding(epsilon=1, low=-200, high=1657)),
        ("piecewise", Piecewise(epsilon=2, low=0, high=1000)),
        ("piecewise-wide", Piecewise(epsilon=16, low=-(1 << 46), high=1 << 46, size=1000)),
        ("hybrid", Hybrid(epsilon=1, low=0, high=41)),
        ("hybrid-below-0.61", Hybrid(epsilon="0.6", low=-30, high=1500)),
        ("general-wave-triangle", GeneralWave(epsilon=1, low=0, high=4999, size=32)),
        ("general-wave-0.4", GeneralWave(epsilon=2, low=-50, high=949, size=50, top="0.4")),
        ("tuned-3-bits", Tuned(epsilon=1, low=0, high=3000, bits=3)),
        ("tuned-4-bits", Tuned(epsilon=2, low=-20, high=41)),
    ]
    for name, m in mechanisms:
        yield (
            name,
            {
                "format": "report",
                "version": 1,
                "mechanism": m.to_plan(),
                "cases": list(cases(name, m.low, m.high, m.randomizer.perturb)),
            },
        )
    stream = Hybrid(epsilon=1, low=0, high=41)
    survey = SquareWave(epsilon=1, low=0, high=1657, size=256)
    both = reporter(stream.randomizer, survey.randomizer, (3, 10))
    yield (
        "reporter",
        {
            "format": "report",
            "version": 1,
            "stream": stream.to_plan(),
            "survey": survey.to_plan(),
            "share": list(both.share),
            "cases": list(cases("reporter", 0, 1657, both.report)),
        },
    )


def cases(label: str, low: int, high: int, perturb: Perturb) -> Iterator[Row]:
    """Yield runs of reports under random, refused and extreme words, values outside included."""
    span = high - low
    values = [low + span * at // (REPORTS - 5) for at in range(REPORTS - 4)]
    values += [low - 1, low - 10**6, high + 1, high + 10**12]
    for name, words in word_kinds(f"edge-ldp report v1 {label}"):
        yield one_case(name, values, perturb, words)


def word_kinds(label: str) -> list[tuple[str, Words]]:
    """Return ways to make up the words of a draw: random ones from the label, refused, extreme."""
    stream = shake_256(label.encode()).digest(1 << 16)
    taken = iter(range(0, len(stream), WORD_BYTES))

    def fresh(n: int) -> int:
        words = (int.from_bytes(stream[at : at + WORD_BYTES], "little") for at in taken)
        return next(word for word in words if word < limit_of(n))

    def some_refused(n: int, place: int) -> Iterable[int]:
        refused = [WORD_RANGE - 1, limit_of(n)] if limit_of(n) < WORD_RANGE else []
        return [*refused[: 1 + place % 2], fresh(n)]

    return [
        ("random words", lambda n, _: [fresh(n)]),
        ("words of zero", lambda *_: [0]),
        ("the highest words accepted", lambda n, _: [limit_of(n) - 1]),
        ("words refused in every place", some_refused),
        ("words refused here and there", lambda n, p: [fresh(n)] if p % 7 else some_refused(n, p)),
    ]


def one_case(
    name: str, values: list[int], perturb: Perturb, words: Words, key: str = "codes"
) -> Row:
    """Return the entropy that `words` makes up draw by draw, and what it leads to."""
    used: list[int] = []
    places = iter(range(1 << 20))

    def draw(n: int) -> int:
        drawn = list(words(n, next(places)))
        used.extend(drawn)
        return drawn[-1] % n

    codes = [perturb(value, draw) for value in values]
    entropy = b"".join(word.to_bytes(WORD_BYTES, "little") for word in used)
    return {"name": name, "values": values, key: codes, "entropy": entropy.hex()}


# oracles


def oracle_tables() -> Iterator[tuple[str, Row]]:
    """Yield (file name, table) for each frequency oracle."""
    oracles: list[tuple[str, Oracle]] = [
        ("grr", Grr(epsilon=1, size=1024)),
        ("olh", Olh(epsilon=2, size=100_000)),
        ("hrr", Hrr(epsilon=1, size=1000)),
        ("oue", Oue(epsilon=1, size=20)),
        ("hh", Hierarchy(epsilon=2, size=40)),  # GRR, GRR, OLH
        ("hh-olh", Hierarchy(epsilon="0.5", size=200, fanout=16)),  # OLH, OLH
        ("haar-hrr", HaarHrr(epsilon=1, size=90)),  # seven levels
    ]
    for name, oracle in oracles:
        cases = list(oracle_cases(name, oracle))
        yield name, {"format": "oracle", "version": 1, "oracle": oracle.to_plan(), "cases": cases}


def oracle_cases(label: str, oracle: Oracle) -> Iterator[Row]:
    """Yield runs of reports, OUE's as bytes, under random, refused and extreme words."""
    count = 3 if isinstance(oracle, Oue) else ORACLE_REPORTS  # a draw an item makes long entropy
    values = [(oracle.size - 1) * at // (count - 1) for at in range(count)]

    def perturb(value: int, draw: Callable[[int], int]) -> list[int]:
        return list(oracle.client.perturb(value, draw))

    for name, words in word_kinds(f"edge-ldp oracle v1 {label}"):
        yield one_case(name, values, perturb, words, key="reports")


if __name__ == "__main__":
    sys.exit(main())
