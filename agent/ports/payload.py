"""What a page or a message holds, made the bytes of a line: a telegram, or one line of a sensor.

JSON may be laid out over many lines, and a message needs no end of line: a sensor's line does.
Nothing is decoded here, and nothing is said of what is in it.
"""

MOST_BYTES = 1 << 16
"""A telegram has at most a few kB; what is longer is none."""


def line_of(payload: bytes) -> bytes:
    """Return a payload as a meter would have sent it: JSON in one line, text with its end."""
    if payload[:1] == b"\x1b":  # SML, whose end says itself
        return payload
    text = payload.strip(b"\r\n\t ")
    if text[:1] in (b"{", b"["):
        return text.translate(_AS_BLANKS) + b"\n"
    return payload if payload.endswith(b"\n") else payload + b"\n"


def is_web_page(payload: bytes) -> bool:
    """Say whether a payload is a page for people, and so no telegram."""
    return payload.lstrip()[:1] == b"<"


_AS_BLANKS = bytes.maketrans(b"\r\n\t", b"   ")  # JSON has none of them within a text
