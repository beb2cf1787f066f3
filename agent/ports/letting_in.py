"""What lets us in to a page or a broker: secrets from their files, read for each connection."""

from pathlib import Path

from agent.ports.port import NOT_LET_IN


class NoAnswerError(Exception):
    """Why nothing can be had: `reason` and `remedy`, never what was answered."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy


def secret_in(file: str) -> str:
    """Return what a file of a secret holds; raises NoAnswerError."""
    try:
        text = Path(file).read_text().strip()
    except (OSError, UnicodeDecodeError):
        text = ""
    if not text or not text.isascii() or not text.isprintable():
        raise NoAnswerError(NOT_LET_IN, f"{file} holds no secret that can be sent")
    return text
