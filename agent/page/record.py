"""What left this house lately, beside the state: batches as they were sent, and which arrived.

The journal forgets a batch with its receipt; who looks at "yesterday" wants it still. Only where
there is a page: without one nothing of this is kept, and what was is deleted. There are codes in
it, released sums and values: what left anyway, never a reading. It is for the eye: what a crash or
a full disk takes from it is missing on the page, and nowhere else. Source:
docs/security.md.
"""

import os
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from agent.claims.batches import Batch, Key
from agent.page.left import DAY_SECONDS, Left, items_of
from agent.state.journal import Journal
from agent.state.place import left_path

DAYS = 35
MOST_BYTES = 1 << 18
_MADE, _CAME = "made", "came"


class LeftRecord:
    """The file's one owner, and what `DeviceCore.kept` tells. `slot_seconds`: where none is known.

    What the journal keeps and the file does not know, from before there was a page, is taken in.
    """

    def __init__(self, journal: Journal, slot_seconds: int, now_s: Callable[[], float]) -> None:
        self._journal = journal
        self._now_s = now_s
        self._slot_seconds = slot_seconds
        self._path = left_path(journal.path)
        self._day = -1
        known = {one.key for one in self.rows()}
        keys = [key for key in journal.keys() if key not in known]  # noqa: SIM118 (a method, no dictionary)
        self._add(self._line(key, journal.payload(key) or b"") for key in keys)
        self._tidy()

    def made(self, batches: Sequence[Batch]) -> None:
        """Note batches that were stored: they leave as they are."""
        self._add(self._line(one.key, one.payload) for one in batches)
        self._tidy()

    def came(self, keys: Iterable[Key]) -> None:
        """Note batches that a receipt covers."""
        self._add(map(_came, keys))

    def rows(self) -> list[Left]:
        """Return what is kept, in the order it was made; a damaged line is passed over."""
        found: dict[Key, Left] = {}
        for line in self._lines():
            with suppress(ValueError, KeyError):
                kind, stream, number, *rest = line.split()
                key = Key(int(stream), int(number))
                if kind == _CAME:
                    found[key] = found[key]._replace(came=True)
                elif kind == _MADE:
                    seconds, text = rest
                    found[key] = Left(key, int(seconds), b64decode(text, validate=True))
        return list(found.values())

    def _tidy(self) -> None:
        """Forget what is too old or too much: once a day, or when the file is full."""
        now_s = int(self._now_s())
        day = now_s // DAY_SECONDS
        if day == self._day and self._size() <= MOST_BYTES:
            return
        self._day, before, left = day, now_s - DAYS * DAY_SECONDS, MOST_BYTES // 2
        kept: list[str] = []
        for one in reversed(self.rows()):
            line = _made(one) + _came(one.key) * one.came
            is_new = any(item.to_s >= before for item in items_of(one))
            if is_new and len(line) <= left:
                left -= len(line)
                kept.append(line)
        new = self._path.with_name(self._path.name + ".new")
        with suppress(OSError):
            _write(new, "".join(reversed(kept)), os.O_TRUNC)
            new.replace(self._path)

    def _line(self, key: Key, payload: bytes) -> str:
        of_stream = [one for one in self._journal.series() if one.stream == key.stream]
        seconds = [one.slot_seconds for one in of_stream if one.base < key.number]
        return _made(Left(key, (seconds and seconds[-1]) or self._slot_seconds, payload))

    def _add(self, lines: Iterable[str]) -> None:
        with suppress(OSError):
            if text := "".join(lines):
                _write(self._path, text, os.O_APPEND)

    def _lines(self) -> list[str]:
        with suppress(OSError), self._path.open("rb") as file:
            return file.read(2 * MOST_BYTES).decode("ascii", "replace").splitlines()
        return []

    def _size(self) -> int:
        with suppress(OSError):
            return self._path.stat().st_size
        return 0


def _made(one: Left) -> str:
    text = b64encode(one.payload).decode()
    return f"{_MADE} {one.key.stream} {one.key.number} {one.slot_seconds} {text}\n"


def _came(key: Key) -> str:
    return f"{_CAME} {key.stream} {key.number}\n"


def _write(path: Path, text: str, how: int) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | how, 0o600)
    try:
        os.write(handle, text.encode("ascii"))
    finally:
        os.close(handle)
