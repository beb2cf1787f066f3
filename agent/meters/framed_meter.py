"""What meters have in common whose bytes come in frames: one is cut out, parsed, and believed."""

from abc import ABC, abstractmethod
from typing import Generic, Protocol, TypeVar

from agent.meters.reading import Discarded, Reason, Telegram

LIMIT_BYTES = 8192
"""Longest frame by default. Real ones: P1 200 to 1,500 bytes, SML 200 to 700, TIC 150 to 2,000."""


class MeterFrame(Protocol):
    """The bytes of one telegram, as received."""

    @property
    def size(self) -> int:
        """How many bytes were received for it."""


T = TypeVar("T")
F = TypeVar("F", bound=MeterFrame)


class DamagedError(Exception):
    """Bytes that must not be believed; the meter that they came to makes them a Discarded."""

    def __init__(self, reason: Reason, line: str = "") -> None:
        super().__init__(reason)
        self.reason: Reason = reason
        self.line = line


class LineNoise:
    """Bytes between frames: told whenever there are `limit_bytes` of them, and when they end."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._size = 0

    def add(self, size: int) -> list[Discarded]:
        """Count so many bytes; return what is to be told of them already."""
        full, self._size = divmod(self._size + size, self._limit)
        return [Discarded(self._limit, "noise")] * full

    def end(self) -> list[Discarded]:
        """Return the rest: something else begins."""
        size, self._size = self._size, 0
        return [Discarded(size, "noise")] if size else []


class Framer(ABC, Generic[T]):
    """Cuts a byte stream into frames; any cut of the stream gives the same events.

    Keeps at most `limit_bytes` of an open frame between two calls, and noise.
    """

    def __init__(self, limit_bytes: int = LIMIT_BYTES) -> None:
        self._limit = limit_bytes
        self._held = b""
        self._noise = LineNoise(limit_bytes)

    @abstractmethod
    def feed(self, data: bytes) -> list[T | Discarded]:
        """Take received bytes; return what they complete, oldest first."""

    def silence(self) -> list[Discarded]:
        """Drop a half frame: the line has been silent for longer than a frame pauses."""
        half = [Discarded(len(self._held), "cut")] if self._held else []
        self._held = b""
        return half + self._noise.end()


def beside_ends(junk: bytes) -> int:
    """Return how many of some bytes are more than the end of a line."""
    return len(junk) - junk.count(b"\r") - junk.count(b"\n")


def shown_text(raw: bytes) -> str:
    """Return printable ASCII without spaces around it, or "" for anything else."""
    text = raw.decode("ascii") if raw.isascii() else ""
    return text.strip() if text.isprintable() else ""


def is_wanted_meter(meter_id: str | None, telegram: Telegram) -> bool:
    """Say whether a telegram is of the meter that is wanted, by any of its names; None: of any."""
    return meter_id in (None, telegram.meter_id, *telegram.aliases)


class FramedMeter(ABC, Generic[F]):
    """Framer and parser of one meter: bytes in, telegrams and what was discarded out.

    Of any meter, or only of `meter_id` (as `Telegram.meter_id` gives it).
    """

    def __init__(self, framer: Framer[F], meter_id: str | None) -> None:
        self._framer = framer
        self._meter_id = meter_id

    def feed(self, data: bytes) -> list[Telegram | Discarded]:
        """Take received bytes; return what they complete, oldest first."""
        return [
            event if isinstance(event, Discarded) else self._read(event)
            for event in self._framer.feed(data)
        ]

    def silence(self) -> list[Discarded]:
        """Drop a half frame after an inter-byte timeout."""
        return self._framer.silence()

    @abstractmethod
    def _parse(self, frame: F) -> Telegram:
        """Return the telegram in a frame; raises DamagedError where there is none."""

    def _read(self, frame: F) -> Telegram | Discarded:
        try:
            found = self._parse(frame)
        except DamagedError as damage:
            return Discarded(frame.size, damage.reason, damage.line)
        if not is_wanted_meter(self._meter_id, found):
            return Discarded(frame.size, "identity")
        return found
