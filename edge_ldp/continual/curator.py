"""A stream under central DP: θ from the first readings, then one released value for each reading.

Protection: event-level (ε, δ) for each reading, neighbours being streams that differ in one. Which
slots have readings is public. θ's readings are not released (parallel composition); renewed θ is
paid as `Renewal` says. Every chunk has its own noise, whose key lives until the chunk ends: stored
state holds it while the chunk runs.
"""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from edge_ldp.checks import BYTES, a, exact_integer, optional, taking
from edge_ldp.continual.chunk import Chunk, ChunkState, fits
from edge_ldp.continual.design import Account, Design
from edge_ldp.continual.noise import KEY_BYTES, fresh_key, nothing_seen
from edge_ldp.continual.smoothers import MEDIAN_BLOCKS
from edge_ldp.continual.threshold import MAX_THETA
from edge_ldp.device.errors import EntropyError, ParameterError
from edge_ldp.entropy import system_draw
from edge_ldp.protocol.strict_json import Fields, MessageError, dumps, fields_of, loads

MAX_SLOT = 1 << 61  # that a caller may name; slots that follow by themselves never reach _BIG
_BIG = 1 << 62
_MAX_OPEN = 64  # levels of a binary tree, and to spare


@dataclass(frozen=True, slots=True)
class CuratorState:
    """Where a stream stands: no reading in it, and nothing secret once `chunk` is None.

    `slot`: the last one taken; `theta`: 0 while it is being chosen; `choices`, `chunks`,
    `released`: made so far; `smoother`: its integers.
    """

    design: str
    slot: int = -1
    theta: int = 0
    choices: int = 0
    chunks: int = 0
    released: int = 0
    smoother: tuple[int, ...] = ()
    chunk: ChunkState | None = None

    def to_json(self) -> bytes:
        """Return the state's one encoding; overwrite the file it replaces, it holds a key."""
        chunks = [] if self.chunk is None else [_running(self.chunk)]
        return dumps({"v": 1, **fields_of(self), "chunk": chunks})


class Release(NamedTuple):
    """What one slot gives: an integer in the reading's unit, or None while nothing is released.

    `theta` is public. `nodes`: for a tree, noisy totals of the nodes that end here.
    """

    slot: int
    value: int | None
    theta: int | None
    nodes: tuple[int, ...] = ()


class Curator:
    """Takes one reading a slot, in order, and returns its release.

    `draw(n)`: uniform integers, from the operating system unless given. `state`: continue where it
    was taken; raises ParameterError when it belongs to another design. Commit `state()` before, or
    together with, the release it belongs to: a slot released from an older state again would spend
    its budget twice. `bound`: the noise of new chunks depends on their slots and values too, so
    that a copy that goes on otherwise repeats none. Raises ParameterError for that where the shape
    `looks_ahead`. Not for two threads at a time.
    """

    @taking(
        design=a("edge_ldp.continual.design.Design"),
        state=optional(a("edge_ldp.continual.curator.CuratorState")),
    )
    def __init__(
        self,
        design: Design,
        *,
        draw: Callable[[int], int] | None = None,
        state: CuratorState | None = None,
        bound: bool = False,
    ) -> None:
        if bound and design.shape.looks_ahead:
            raise ParameterError("bound", "a shape whose blocks end after their noise is known")
        self._is_bound = bound
        state = state or CuratorState(design.fingerprint)
        if state.design != design.fingerprint:
            raise ParameterError("state", "one of the same design")
        self.design = design
        self._draw = draw or system_draw().below
        self._smoother = design.make_smoother()
        if state.smoother:
            self._smoother.restore(state.smoother)
        self._slot = state.slot
        self._theta = state.theta
        self._chunks = state.chunks
        self._choices = state.choices
        self._released = state.released
        self._is_tree = design.shape.kind == "tree"
        self._watch_from = design.shape.chunk
        self._forget()
        self.chunk: Chunk | None = None
        if state.chunk is not None:
            if not fits(design.shape, state.chunk):
                raise ParameterError("state", "one whose chunk fits the design")
            self.chunk = self._continue(state.chunk)
        elif not self._theta and not design.readings:
            self._choose()

    @property
    def theta(self) -> int | None:
        """The threshold in force; None until it is known."""
        return self._theta or None

    @property
    def missing_readings(self) -> int:
        """Readings that θ still waits for; nothing is released before, and nothing spent."""
        return 0 if self._theta else self.design.readings - self._collected

    @property
    def account(self) -> Account:
        """What was spent."""
        return Account(self.design, self._choices, self._chunks, self._released)

    def push(self, reading: int | None, slot: int | None = None) -> Release:
        """Take a slot's reading, None when it is missing, and return its release.

        Slots follow each other unless `slot` says how far this one is on; those between are
        missing. A missing slot takes no noise and no budget, and is not 0 unless the design says
        so. Raises ParameterError, and changes nothing, for a reading that is no integer or below 0
        and for a slot that is not after the last one.
        """
        if type(reading) is not int or reading < 0:
            reading = self._unusual(reading)
        if slot is None:
            slot = self._slot + 1
        elif not self._slot < (slot := exact_integer("slot", slot)) <= MAX_SLOT:
            raise ParameterError("slot", "an integer above every slot before, at most 2**61")
        elif self.design.missing == "zero" and slot != self._slot + 1:
            raise ParameterError("slot", "the next one, as missing slots are pushed as None")
        if reading is None:
            self._slot = slot
            return Release(slot, None, self._theta or None)
        if not self._theta:
            return self._collect(slot, reading)
        chunk = self.chunk or self._begin()
        theta = self._theta
        self._slot = slot
        self._released += 1
        value = chunk.push(reading, slot)
        nodes = chunk.finished_nodes(reading) if self._is_tree else ()
        if chunk.position > self._watch_from:
            self._counts[min(reading, self.design.ceiling)] += 1
            self._collected += 1
        if chunk.is_over:
            self._end(chunk)
        return Release(slot, value, theta, nodes)

    def state(self) -> CuratorState:
        """Return what a restart continues from: no reading, no true total.

        Readings that θ still waits for are in memory only: after a restart they are collected anew,
        and a θ that was to be renewed from a chunk that was interrupted stays for that time.
        """
        return CuratorState(
            design=self.design.fingerprint,
            slot=self._slot,
            theta=self._theta,
            choices=self._choices,
            chunks=self._chunks,
            released=self._released,
            smoother=tuple(self._smoother.state()),
            chunk=self.chunk.state() if self.chunk else None,
        )

    def _unusual(self, reading: object) -> int | None:
        if reading is None:
            return 0 if self.design.missing == "zero" else None
        found = exact_integer("reading", reading)
        if found < 0:
            raise ParameterError("reading", "an integer not below 0, or None for a missing one")
        return found

    def _collect(self, slot: int, reading: int) -> Release:
        value = min(reading, self.design.ceiling)
        self._counts[value] += 1
        self._collected += 1
        if self._collected == self.design.readings:
            try:
                self._choose()
            except EntropyError:  # the reading may be pushed again
                self._counts[value] -= 1
                self._collected -= 1
                raise
        self._slot = slot
        return Release(slot, None, None)

    def _choose(self) -> None:
        self._theta = self.design.limit(self.design.optimiser.choose(self._counts, self._draw))
        self._choices += bool(self.design.readings)
        self._forget()

    def _forget(self) -> None:
        self._counts: Counter[int] = Counter()
        self._collected = 0

    def _begin(self) -> Chunk:
        key = fresh_key(self._draw)
        seen = nothing_seen(key) if self._is_bound else b""
        self.chunk = self._continue(ChunkState(key, seen=seen))
        self._chunks += 1
        self._forget()
        renewal = self.design.renewal
        if renewal and renewal.mode == "sequential" and self._chunks % renewal.every == 0:
            self._watch_from = self.design.shape.chunk - self.design.readings
        return self.chunk

    def _continue(self, state: ChunkState) -> Chunk:
        self._watch_from = self.design.shape.chunk
        return Chunk(
            shape=self.design.shape,
            theta=self._theta,
            epsilon=self.design.epsilon,
            smoother=self._smoother,
            memory=self.design.memory,
            state=state,
        )

    def _end(self, chunk: Chunk) -> None:
        """Wipe the chunk's key; renew θ if it is time."""
        chunk.wipe()
        self.chunk = None
        renewal = self.design.renewal
        if not renewal or self._chunks % renewal.every:
            return
        if renewal.mode == "parallel":
            self._theta = 0
        elif self._collected == self.design.readings:
            with suppress(EntropyError):  # the value is released: θ stays, as after a restart
                self._choose()


@taking(payload=BYTES)
def parse_state(payload: bytes) -> CuratorState:
    """Return the stored state; raises MessageError when it is damaged."""
    fields = loads(payload)
    fields.integer("v", 1, 1)
    theta = fields.integer("theta", 0, MAX_THETA)
    running = fields.objects("chunk", 1)
    if running and not theta:
        raise MessageError("value", "chunk", "none before θ is known")
    return CuratorState(
        design=fields.text("design"),
        slot=fields.integer("slot", -1, _BIG),
        theta=theta,
        choices=fields.integer("choices", 0, _BIG),
        chunks=fields.integer("chunks", 1 if running else 0, _BIG),
        released=fields.integer("released", 0, _BIG),
        smoother=_integers(fields, "smoother", MEDIAN_BLOCKS),
        chunk=_chunk(running[0]) if running else None,
    )


def _running(chunk: ChunkState) -> dict[str, object]:
    seen = {"seen": chunk.seen.hex()} if chunk.seen else {}
    return {"key": chunk.key.hex(), "position": chunk.position, "open": chunk.open, **seen}


def _chunk(fields: Fields) -> ChunkState:
    return ChunkState(
        _secret(fields, "key"),
        fields.integer("position", 0, _BIG),
        _integers(fields, "open", _MAX_OPEN),
        _secret(fields, "seen") if "seen" in fields.raw() else b"",
    )


def _secret(fields: Fields, name: str) -> bytes:
    try:
        found = bytes.fromhex(fields.text(name))
    except ValueError as exc:
        raise MessageError("value", name, "hexadecimal digits") from exc
    if len(found) != KEY_BYTES:
        raise MessageError("value", name, f"{KEY_BYTES} bytes")
    return found


def _integers(fields: Fields, name: str, limit: int) -> tuple[int, ...]:
    found = fields.items(name, limit)
    if not all(type(number) is int for number in found):
        raise MessageError("value", name, "integers")
    return tuple(found)
