"""Which commands issue a plan of a stream, as the log of what operators changed has them."""

from itertools import pairwise

from aggregator.config import AggregatorConfig, StreamTable
from aggregator.store.rows import AuditRow

MOST_S = 60  # between an order and its plan: the proof, and what is asked back
VERBS = {"publish": "published by", "repair": "issued anew by"}
_STREAM = "--stream"
_LEAST = len("--st")  # no other option begins so


def apart_s(config: AggregatorConfig) -> int:
    """Return how far a plan's time may be from its order's, on the fleet's clock."""
    return int(MOST_S * max(1.0, config.clock.rate))


def issued_by(row: AuditRow, config: AggregatorConfig, stream: StreamTable) -> str | None:
    """Return what a command did, and who, if it issued a plan of the stream."""
    words = row.command.replace("=", " ").split()  # names need no quotes
    verb = VERBS.get(words[1]) if words[:1] == ["plan"] and len(words) > 1 else None
    meant = config.streams[0].name
    for word, value in pairwise(words):
        if len(word) >= _LEAST and _STREAM.startswith(word):
            meant = value
    return f"{verb} {row.who}" if verb is not None and meant == stream.name else None
