"""What came on a line since its last telegram and gave none, and what that means.

Source: docs/faults.md, SER-07, SER-30, SER-34.
"""

from collections import Counter

from agent.meters.foreign import Recogniser
from agent.meters.reading import Discarded
from agent.meters.words import foreign_text, misread_text


class Unread:
    """Counts of bytes, the last line that was not understood, and the format if it is another.

    Holds no more bytes than a Recogniser does, and no reading.
    """

    def __init__(self) -> None:
        self.received_bytes = 0
        self.discarded = Counter[str]()
        self.line = ""
        self._recogniser = Recogniser()

    @property
    def format(self) -> str:
        """The format that is recognised and not read: a key of words.FOREIGN, or ""."""
        return self._recogniser.name

    def take(self, data: bytes | None) -> None:
        """Note received bytes, or silence."""
        self.received_bytes += len(data or b"")
        self._recogniser.feed(data)

    def note(self, event: Discarded) -> None:
        """Note what a parser threw away."""
        self.discarded[event.reason] += event.size
        self.line = event.line or self.line

    def text(self, *, is_proved: bool) -> str:
        """Return what is known by name, and what to do about it; "" where only bytes are.

        `is_proved`: whether the protocol has a checksum.
        """
        if self.format:
            return foreign_text(self.format)
        return misread_text(self.line, is_proved=is_proved) if self.line else ""
