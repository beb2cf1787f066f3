"""What `record` writes and `replay` reads: every byte of a meter's line, and when it passed.

One event a line after the header: milliseconds, a mark and the bytes in hexadecimal. `<` was
received, `>` was sent, `.` is a moment at which the parser was told the time (silence, or a tick of
a meter that is asked). With these the parser does again exactly what it did.
A recording is made of raw readings: it tells when somebody was at home. No I/O here.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from agent.errors import ConfigError
from agent.meters.reading import Asker, Discarded, Meter, Telegram

FORMAT = "edge-ldp recording"
VERSION = 1
WARNING = "raw meter readings: whoever reads this file sees when somebody is at home"
RECEIVED, SENT, TOLD = "<", ">", "."
_MAX_DIGITS = 15


@dataclass(frozen=True, slots=True)
class LineEvent:
    """One event of the line; `at_ms` is of a clock that only goes forward."""

    at_ms: int
    mark: str
    octets: bytes = field(default=b"", repr=False)


def as_line(event: LineEvent) -> str:
    """Return an event as a line of the file."""
    return f"{event.at_ms} {event.mark} {event.octets.hex()}".rstrip() + "\n"


def line_events(lines: Iterable[str], file: str) -> Iterator[LineEvent]:
    """Yield the events of a file's lines after the header; a last line that is cut is left out.

    Raises ConfigError(file, line number, expected form) for anything else; the line is not quoted.
    """
    last_ms = 0
    for number, line in enumerate(lines, start=2):
        if not line.endswith("\n"):
            return
        at, _, rest = line.strip().partition(" ")
        mark, _, digits = rest.partition(" ")
        is_time = at.isascii() and at.isdigit() and len(at) <= _MAX_DIGITS and int(at) >= last_ms
        if not is_time or mark not in (RECEIVED, SENT, TOLD):
            raise ConfigError(file, f"line {number}", "rising milliseconds and one of < > .")
        try:
            octets = bytes.fromhex(digits)
        except ValueError as exc:
            raise ConfigError(file, f"line {number}", "bytes in hexadecimal") from exc
        last_ms = int(at)
        yield LineEvent(last_ms, mark, octets)


def replayed(meter: Meter | Asker, passed: Iterable[LineEvent]) -> Iterator[Telegram | Discarded]:
    """Yield what a new parser makes of a recorded line; half a telegram at its end is neither."""
    for event in passed:
        if event.mark == SENT:
            continue
        if isinstance(meter, Asker):
            at_ms = event.at_ms
            is_byte = event.mark == RECEIVED
            events = meter.feed(event.octets, at_ms) if is_byte else meter.tick(at_ms)
            yield from (event for event in events if isinstance(event, Telegram | Discarded))
        else:
            yield from meter.feed(event.octets) if event.mark == RECEIVED else meter.silence()
