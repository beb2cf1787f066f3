"""What an aggregator says of itself: that it is there, since when, and what it takes.

Retained on `presence/<worker>`, with `offline` as its last will. Nothing depends on it but when a
device that has long heard nothing tries again, so it is not signed: docs/adr/0029-back-off.md.
"""

from typing import NamedTuple

from edge_ldp.protocol.messages import VERSION, read_identity
from edge_ldp.protocol.strict_json import MessageError, dumps, loads

ALONE_NAME = "aggregator"  # the name of an aggregator without workers
MOST_BYTES = 1024
_TIME = 1 << 53


class Presence(NamedTuple):
    """`since_s`: when its link came, seconds UTC; `several`: it takes several batches at once.

    `process`: a name drawn by the one that runs, 16 hexadecimal digits, and `began_s`: when it
    began, so that two of them notice each other; "" by versions that did not.
    """

    is_online: bool
    since_s: int = 0
    several: bool = True
    process: str = ""
    began_s: int = 0

    def to_json(self) -> bytes:
        """Return the presence's one encoding."""
        fields: dict[str, object] = {
            "v": VERSION,
            "state": "online" if self.is_online else "offline",
            "since_s": self.since_s,
            "several": int(self.several),
        }
        if self.process:
            fields |= {"process": self.process, "began_s": self.began_s}
        return dumps(fields)


def parse_presence(payload: bytes) -> Presence:
    """Return the presence in `payload`; raises MessageError. Unknown fields are ignored."""
    if len(payload) > MOST_BYTES:
        raise MessageError("size", "presence", f"at most {MOST_BYTES} bytes")
    fields = loads(payload)
    fields.integer("v", VERSION, VERSION)
    state = fields.text("state")
    if state not in ("online", "offline"):
        raise MessageError("value", "state", "online or offline")
    since_s = fields.integer("since_s", 0, _TIME)
    several = bool(fields.integer("several", 0, 1)) if "several" in fields.raw() else False
    if "process" not in fields.raw():
        return Presence(state == "online", since_s, several)
    process, began_s = read_identity(fields, "process"), fields.integer("began_s", 0, _TIME)
    return Presence(state == "online", since_s, several, process, began_s)
