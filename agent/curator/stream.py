"""One stream that its device publishes under central DP: readings in, released values out.

A pure core around edge_ldp.continual (docs/design.md, The central mode): no clock, no disk. Loaded
by the curator mode alone, so that an agent of the local mode never pays for it.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import shake_128

from agent.config.curated_streams import Setup
from agent.curator.outbox import ReleasedValue, SeriesRow
from edge_ldp.continual import Curator, CuratorState, parse_state
from edge_ldp.continual.chunk import ChunkState
from edge_ldp.protocol.strict_json import MessageError

_WORD = 8
_MODULUS = 1 << (8 * _WORD)


class StreamCurator:
    """A stream's curator between two commits: `keep` after a commit, `drop` when it failed.

    series: the slot that was given up when it began. `state`: continue there.
    """

    def __init__(
        self,
        setup: Setup,
        series: int,
        draw: Callable[[int], int],
        state: CuratorState | None = None,
    ) -> None:
        self.setup = setup
        self.series = series
        self._draw = draw
        fresh = CuratorState(setup.design.fingerprint, slot=series)
        self.kept = state or fresh
        self._curator = Curator(setup.design, draw=draw, state=self.kept, bound=True)
        self.slot = self.kept.slot

    @property
    def missing_readings(self) -> int:
        """Readings that θ still waits for."""
        return self._curator.missing_readings

    @property
    def theta(self) -> int | None:
        """The threshold in force."""
        return self._curator.theta

    def pushes(self, slot: int, value: int | None) -> Iterator[tuple[int, int | None]]:
        """Yield (slot, value) of what is to be pushed for a closed slot, in order.

        Nothing for a missing value that is skipped; where missing ones count as 0, each by itself.
        """
        if self.setup.design.missing == "zero":
            yield from ((late, None) for late in range(self.slot + 1, slot))
            yield slot, value
        elif value is not None:
            yield slot, value

    def push(self, slot: int, value: int | None) -> list[ReleasedValue]:
        """Take one slot's value, cut to [0, …), and return what is released for it: one, or none.

        Raises EntropyError, and changes nothing, while there is no randomness.
        """
        given = None if value is None else max(value, 0)
        release = self._curator.push(given, slot)
        self.slot = slot
        if release.value is None or release.theta is None:
            return []
        position = self._curator.account.released - 1
        key = self.setup.key
        return [ReleasedValue(key, slot, self.series, position, release.theta, release.value)]

    def state(self) -> CuratorState:
        """Return where it stands."""
        return self._curator.state()

    def keep(self, state: CuratorState) -> None:
        """Note that a state is durable."""
        self.kept = state

    def drop(self) -> None:
        """Go back to the state that is durable: what was pushed since was never released."""
        self._curator = Curator(self.setup.design, draw=self._draw, state=self.kept, bound=True)
        self.slot = self.kept.slot


def must_be_stored(kept: CuratorState, state: CuratorState) -> bool:
    """Say whether a state tells more than that another reading for θ was heard."""
    return (state.released, state.choices, state.theta) != (kept.released, kept.choices, kept.theta)


def series_row(curator: StreamCurator, state: CuratorState) -> SeriesRow:
    """Return a curator's row with this state: what may be known of it, and all of it apart."""
    setup = curator.setup
    return SeriesRow(
        setup.key,
        curator.series,
        state.slot,
        setup.public.encode(),
        setup.terms,
        public_state(state),
        secret=None if state.chunk is None else state.to_json(),
    )


def stored_state(row: SeriesRow, setup: Setup) -> CuratorState | None:
    """Return the state in a row, or None when it is of another design or cannot be read."""
    if not is_of(row, setup):
        return None
    try:
        state = parse_state(row.secret or row.state)
    except MessageError:
        return None
    return None if state.chunk is not None and row.secret is None else state


def known_theta(row: SeriesRow | None, setup: Setup) -> int:
    """Return the θ of a row's series, which is public, or 0: of another design, or none yet."""
    if row is None or not is_of(row, setup):
        return 0
    try:
        return parse_state(row.state).theta
    except MessageError:
        return 0


def is_of(row: SeriesRow, setup: Setup) -> bool:
    """Say whether a row's series ran with these settings."""
    return (row.design, row.terms) == (setup.public.encode(), setup.terms)


def public_state(state: CuratorState) -> bytes:
    """Return what may be known of a state: where it stands, and not what it adds up.

    Of a running chunk the place alone: running totals hold readings, and so does the digest of what
    was seen, for whoever has the key and searches.
    """
    chunk = state.chunk
    if chunk is None:
        return state.to_json()
    return replace(state, chunk=ChunkState(bytes(len(chunk.key)), chunk.position)).to_json()


def open_state(payload: bytes, key: bytes | None) -> CuratorState:
    """Return a state that the journal holds, as before there was a running file.

    Its running totals were encrypted under the chunk's key, each state with a pad of its own.
    Raises MessageError, also without the key.
    """
    state = parse_state(payload)
    chunk = state.chunk
    if chunk is None:
        return state
    if key is None or len(key) != len(chunk.key):
        raise MessageError("missing", "key")
    pads = _pads(key, state)
    totals = ((n - pad) % _MODULUS for n, pad in zip(chunk.open, pads, strict=True))
    opened = tuple(n - _MODULUS if n >= _MODULUS // 2 else n for n in totals)
    return replace(state, chunk=replace(chunk, key=key, open=opened))


def _pads(key: bytes, state: CuratorState) -> list[int]:
    """Return one pad for each running total, never the same for two states of a chunk.

    Nor for states of two copies of it, where noise is bound to slots and values.
    """
    chunk = state.chunk
    assert chunk is not None  # noqa: S101 (seen by the callers)
    name = b"open" + chunk.position.to_bytes(8, "little") + state.slot.to_bytes(8, "little")
    name += chunk.seen
    stream = shake_128(key + name).digest(_WORD * len(chunk.open))
    return [
        int.from_bytes(stream[at : at + _WORD], "little") for at in range(0, len(stream), _WORD)
    ]
