"""What `streams` shows: the configured streams, and which of them an operator retired."""

from __future__ import annotations

from datetime import UTC, tzinfo
from typing import TYPE_CHECKING

from aggregator.answers.parts import AnswerPart, Seconds, Span
from aggregator.answers.units import clock_text, text_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from aggregator.config import StreamTable


class ListedStream(AnswerPart, frozen=True, kw_only=True):
    """A configured stream.

    stream, id, unit, slot_seconds; epoch of the newest plan (null: none yet); retired_s: since when
    it counts nothing, or null.
    """

    stream: str
    id: int
    unit: str
    slot_seconds: Span
    epoch: int | None
    retired_s: Seconds | None


class StreamsAnswer(AnswerPart, frozen=True, kw_only=True):
    """What `streams list` answers.

    fleet; streams[].
    """

    fleet: str
    streams: list[ListedStream]


class RetiredStream(AnswerPart, frozen=True, kw_only=True):
    """What `streams retire` and `streams reinstate` answer.

    stream; retired: whether it counts nothing more; changed: whether it was otherwise.
    """

    stream: str
    retired: bool
    changed: bool


def streams_answer(
    fleet: str,
    streams: Iterable[StreamTable],
    epochs: Mapping[int, int],
    retired: Mapping[int, int],
) -> StreamsAnswer:
    """Return what `streams list` answers."""
    rows = [
        ListedStream.of(
            one, stream=one.name, epoch=epochs.get(one.id), retired_s=retired.get(one.id)
        )
        for one in streams
    ]
    return StreamsAnswer(fleet=fleet, streams=rows)


def streams_text(view: StreamsAnswer, zone: tzinfo = UTC) -> str:
    """Return the list as people read it."""
    head = ["stream", "id", "unit", "slot s", "epoch", f"retired {zone}"]
    rows = [
        [
            *(row.stream, str(row.id), row.unit, str(row.slot_seconds)),
            "-" if row.epoch is None else str(row.epoch),
            clock_text(row.retired_s, zone),
        ]
        for row in view.streams
    ]
    return text_table(head, rows) + "\n"


def retired_text(view: RetiredStream) -> str:
    """Return what `retire` or `reinstate` did, in a line."""
    words = "is retired: nothing more of it counts" if view.retired else "counts"
    return f"{view.stream} {words}{'' if view.changed else ', as before'}\n"
