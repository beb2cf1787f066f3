"""What a curator keeps: its series, and released values on their way out.

Values are packed into batches that never change again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from agent.claims.batches import Batch, Key, Numbering
from edge_ldp.protocol import released


@dataclass(frozen=True, slots=True, order=True)
class ReleasedValue:
    """One released value: the only thing made from readings that is ever kept.

    stream: the key, from 256. position: of the value in its series.
    """

    stream: int
    slot: int
    series: int
    position: int
    theta: int
    value: int


@dataclass(frozen=True, slots=True)
class SeriesRow:
    """One series of a stream (its key from 256): see `journal_schema`.

    state: what may be known of it. secret: the whole state while a chunk runs, its key among it.
    """

    stream: int
    series: int
    slot: int
    design: bytes
    terms: bytes
    state: bytes
    is_ended: int = 0
    secret: bytes | None = field(default=None, repr=False)


def ended(row: SeriesRow) -> SeriesRow:
    """Return a series that is over: its account stays, its secret does not."""
    return replace(row, is_ended=1, secret=None)


def pack_released(
    values: Sequence[ReleasedValue],
    numbering: Mapping[int, Numbering],
    designs: Mapping[tuple[int, int], released.PublicDesign],
) -> list[Batch]:
    """Return the batches that carry these values, numbered as `numbering[stream]` says.

    designs: by (stream, series). A batch holds values of one chunk that follow each other, at most
    1,024 within 65,535 slots.
    """
    batches: list[Batch] = []
    numbers = dict(numbering)
    for run in _runs(sorted(values), designs):
        first = run[0]
        number, series, base = numbers[first.stream]
        numbers[first.stream] = Numbering(number + 1, series, base)
        frame = released.ReleasedFrame(
            stream=first.stream - released.FIRST_KEY,
            batch=number - base,
            series=first.series,
            position=first.position,
            theta=first.theta,
            design=designs[first.stream, first.series],
            slots=tuple(one.slot for one in run),
            values=tuple(one.value for one in run),
            numbering=series,
        )
        key = Key(first.stream, number)
        batches.append(Batch(key, released.encode_released(frame), run[-1].slot, len(run)))
    return batches


def _runs(
    values: Iterable[ReleasedValue], designs: Mapping[tuple[int, int], released.PublicDesign]
) -> Iterable[list[ReleasedValue]]:
    run: list[ReleasedValue] = []
    for one in values:
        if run and not _follows(one, run, designs):
            yield run
            run = []
        run.append(one)
    if run:
        yield run


def _follows(
    one: ReleasedValue,
    run: list[ReleasedValue],
    designs: Mapping[tuple[int, int], released.PublicDesign],
) -> bool:
    first, last = run[0], run[-1]
    same = (one.stream, one.series, one.theta) == (first.stream, first.series, first.theta)
    return (
        same
        and one.position == last.position + 1
        and one.position % designs[one.stream, one.series].chunk > 0
        and len(run) < released.MAX_VALUES
        and one.slot - first.slot <= released.MAX_OFFSET
    )
