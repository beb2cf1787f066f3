"""Looks for meter readings in bytes that must not hold any: decimal text and binary encodings.

Planted markers (a few values) are found in every encoding. The other registers that were sent are
found as text and in 8 bytes. In 4 bytes thousands of values meet random words and counters now and
then, and a log repeats its page: there at least `CHANCE_HITS` different ones must match, and
`CHANCE_RATIO` times as many as of neighbours that were never sent, which chance meets as often.
Source: docs/faults.md, S1, PRV-03, PRV-05.
"""

import re
import struct
from base64 import b64encode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64] | NDArray[np.float64]
Words = NDArray[np.uint32] | NDArray[np.uint64]

MIN_REGISTER = 100_000  # six digits: fewer are met by chance in any counter
CHANCE_HITS = 16
CHANCE_RATIO = 3
_KILO_DIGITS = 3
_NUMBER = re.compile(rb"\d[\d.,]{4,}\d")
_HEX_NUMBER = re.compile(rb"(?=((?:3\d|2[eE]){6,20}))")
_TELEGRAM = re.compile(rb"\d-\d:\d{1,3}\.\d{1,3}\.\d{1,3}\(\d|\d\d\.\d{3}\*kW")
_WAL_MAGIC = (0x377F0682, 0x377F0683)
_WAL_HEAD, _WAL_FRAME_HEAD = 32, 24


@dataclass(frozen=True, slots=True)
class Leak:
    """A reading in some bytes: in which encoding, at which offset. Never the reading itself."""

    encoding: str
    offset: int


@dataclass(frozen=True, slots=True)
class Searched:
    """How much was searched, and what was found, by file. Adds up; the same finding counts once."""

    files: int
    size_bytes: int
    found: tuple[tuple[str, Leak], ...]

    def __add__(self, other: "Searched") -> "Searched":
        return Searched(
            self.files + other.files,
            self.size_bytes + other.size_bytes,
            tuple(dict.fromkeys((*self.found, *other.found))),
        )

    @property
    def reasons(self) -> list[str]:
        """Why a demo failed: readings that were found."""
        return [
            f"a reading in {file}: {finding.encoding} at byte {finding.offset}"
            for file, finding in self.found
        ]

    def to_json(self) -> dict[str, int]:
        """Return what `--json` tells of it."""
        found = len(self.found)
        return {"files": self.files, "bytes": self.size_bytes, "readings_found": found}

    def __str__(self) -> str:
        size = f"{self.files} files ({self.size_bytes / 1e6:.1f} MB)"
        return f"{len(self.found)} readings found in the {size} that the agents wrote"


@dataclass(frozen=True, slots=True)
class Patterns:
    """What to look for: exact byte strings, digits of registers, and words of 4 and 8 bytes.

    `lengths`: how many digits a register has; `words`: (encoding, NumPy type, sorted bit patterns,
    those midway between registers, which were not sent).
    """

    markers: tuple[tuple[str, bytes], ...]
    digits: frozenset[bytes]
    lengths: tuple[int, ...]
    words: tuple[tuple[str, str, Words, Words], ...]


def build_patterns(markers: Iterable[int], registers: Iterable[int]) -> Patterns:
    """Return the patterns for planted markers and all registers sent, integers in Wh.

    Raises ValueError for registers below 100,000 Wh, which cannot be told from other numbers.
    """
    planted = sorted(set(markers))
    sent = sorted({*planted, *registers})
    if sent and sent[0] < MIN_REGISTER:
        raise ValueError(f"registers below {MIN_REGISTER} Wh cannot be searched for")
    wh = np.array(sent, np.int64)
    between = (wh[1:] + wh[:-1]) // 2
    return Patterns(
        markers=tuple(row for marker in planted for row in _encodings(marker)),
        digits=frozenset(b"%d" % register for register in sent),
        lengths=tuple(sorted({len(str(register)) for register in sent})),
        words=tuple(
            (f"{name} {unit}", name, _bits(numbers, name), _unlike(others, numbers, name))
            for unit, numbers, others in (("Wh", wh, between), ("kWh", wh / 1000, between / 1000))
            for name in ("<u4", ">u4", "<i8", ">i8", "<f4", ">f4", "<f8", ">f8")
            if unit == "Wh" or "f" in name
        ),
    )


def search_directory(directory: Path, patterns: Patterns) -> Searched:
    """Search every file under a directory as it is now; files may grow or go meanwhile."""
    searched = Searched(0, 0, ())
    for path in sorted(directory.rglob("*")):
        try:
            if not path.is_file():  # a directory, or a socket: nothing stays in it
                continue
            content = path.read_bytes()
        except FileNotFoundError:
            continue
        at = f"{directory.name}/{path.relative_to(directory)}"
        found = tuple((at, finding) for finding in find_readings(content, patterns))
        searched += Searched(1, len(content), found)
    return searched


def find_readings(content: bytes, patterns: Patterns) -> list[Leak]:
    """Return the readings in `content`, by offset; empty when there is none.

    Cost: one pass per encoding; about 0.1 s for a megabyte.
    """
    masked = _without_checksums(content)
    found = {*_find_markers(masked, patterns), *_find_text(masked, patterns)}
    for encoding, name, words, unsent in patterns.words:
        offsets = _offsets(masked, name, words)
        if name.endswith("8") or _beyond_chance(masked, offsets, _offsets(masked, name, unsent)):
            found.update(Leak(encoding, offset) for offset in offsets)
    return sorted(found, key=lambda finding: (finding.offset, finding.encoding))


def _beyond_chance(content: bytes, sent: list[int], unsent: list[int]) -> bool:
    """Say whether the words of 4 bytes at these offsets are more than chance meets."""
    met, others = ({content[at : at + 4] for at in offsets} for offsets in (sent, unsent))
    return len(met) >= CHANCE_HITS and len(met) > CHANCE_RATIO * len(others)


def _encodings(marker: int) -> Iterator[tuple[str, bytes]]:
    """Yield (name, bytes) of one marker in every encoding we can think of."""
    kilo = marker / 1000
    whole, rest = divmod(marker, 1000)
    texts = [b"%d" % marker, b"%d.%03d" % (whole, rest), b"%06d.%03d" % (whole, rest)]
    for code in ("I", "q"):
        for order in "<>":
            yield f"{order}{code} Wh", struct.pack(order + code, marker)
            yield f"{order}{code} Wh in hex", struct.pack(order + code, marker).hex().encode()
    for code in ("f", "d"):
        for order in "<>":
            yield f"{order}{code} Wh", struct.pack(order + code, marker)
            yield f"{order}{code} kWh", struct.pack(order + code, kilo)
    for text in texts:
        yield "decimal text", text
        yield "decimal text in hex", text.hex().encode()
        yield "decimal text in UTF-16", text.decode().encode("utf-16-le")
        yield from (("decimal text in base64", part) for part in _base64_parts(text))


def _base64_parts(text: bytes) -> Iterator[bytes]:
    """Yield what a text looks like inside base64, for each of its three alignments."""
    for shift in range(3):
        coded = b64encode(b"\0" * shift + text)
        first = -(-shift * 8 // 6)
        yield coded[first : (shift + len(text)) * 8 // 6]


def _find_markers(content: bytes, patterns: Patterns) -> Iterator[Leak]:
    lowered = content.lower()
    for encoding, wanted in patterns.markers:
        hay = lowered if encoding.endswith("hex") else content
        at = hay.find(wanted)
        if at >= 0:
            yield Leak(encoding, at)


def _find_text(content: bytes, patterns: Patterns) -> Iterator[Leak]:
    for match in _TELEGRAM.finditer(content):
        yield Leak("telegram text", match.start())
    for match in _NUMBER.finditer(content):
        if _holds_register(match.group(), patterns):
            yield Leak("decimal text", match.start())
    for match in _HEX_NUMBER.finditer(content):
        if _holds_register(bytes.fromhex(match.group(1).decode()), patterns):
            yield Leak("decimal text in hex", match.start())


def _holds_register(text: bytes, patterns: Patterns) -> bool:
    """Say whether the digits of a number hold a register in Wh, or in kWh with fewer decimals."""
    digits = re.sub(rb"[.,]", b"", text)
    for size in patterns.lengths:
        windows = (digits[at : at + size] for at in range(len(digits) - size + 1))
        if any(window in patterns.digits for window in windows):
            return True
    whole, point, rest = text.partition(b".")
    return bool(point) and whole.lstrip(b"0") + rest.ljust(_KILO_DIGITS, b"0") in patterns.digits


def _bits(numbers: Numbers, name: str) -> Words:
    """Return the numbers' bit patterns in an encoding as sorted unsigned integers."""
    if name.endswith("u4") and numbers.max(initial=0) >= 1 << 32:
        numbers = numbers[numbers < 1 << 32]
    plain = np.ascontiguousarray(numbers.astype(name.lstrip("<>")))
    return np.unique(plain.view(f"u{name[-1]}"))


def _unlike(others: Numbers, numbers: Numbers, name: str) -> Words:
    """Return the bit patterns of the others in an encoding but for those that numbers have too."""
    return np.setdiff1d(_bits(others, name), _bits(numbers, name))


def _offsets(content: bytes, name: str, words: Words) -> list[int]:
    """Return every offset at which one of the words stands in an encoding such as "<u4"."""
    size = int(name[-1])
    found: list[int] = []
    if not words.size:
        return found
    for shift in range(min(size, max(0, len(content) - size + 1))):
        count = (len(content) - shift) // size
        view = np.frombuffer(content, f"{name[0]}u{size}", count=count, offset=shift)
        near = np.flatnonzero((view >= words[0]) & (view <= words[-1]))
        seen = view[near].astype(words.dtype)
        hits = near[words[np.searchsorted(words, seen)] == seen]
        found.extend(int(at) * size + shift for at in hits)
    return found


def _without_checksums(content: bytes) -> bytes:
    """Return an SQLite write-ahead log with its headers zeroed: their checksums look random."""
    if len(content) < _WAL_HEAD or int.from_bytes(content[:4], "big") not in _WAL_MAGIC:
        return content
    page = int.from_bytes(content[8:12], "big")
    masked = bytearray(content)
    masked[:_WAL_HEAD] = bytes(_WAL_HEAD)
    for at in range(_WAL_HEAD, len(masked), _WAL_FRAME_HEAD + page):
        end = min(at + _WAL_FRAME_HEAD, len(masked))
        masked[at:end] = bytes(end - at)
    return bytes(masked)
