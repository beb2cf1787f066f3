"""The stored state of a curated stream. While a chunk runs it holds that chunk's key."""

from dataclasses import dataclass

from edge_ldp.checks import BYTES, taking
from edge_ldp.continual.chunk import ChunkState
from edge_ldp.continual.noise import KEY_BYTES
from edge_ldp.continual.smoothers import MEDIAN_BLOCKS
from edge_ldp.continual.threshold import MAX_THETA
from edge_ldp.protocol.strict_json import Fields, MessageError, dumps, loads

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
        chunk = self.chunk
        return dumps(
            {
                "v": 1,
                "design": self.design,
                "slot": self.slot,
                "theta": self.theta,
                "choices": self.choices,
                "chunks": self.chunks,
                "released": self.released,
                "smoother": list(self.smoother),
                "chunk": []
                if chunk is None
                else [
                    {
                        "key": chunk.key.hex(),
                        "position": chunk.position,
                        "open": list(chunk.open),
                        **({"seen": chunk.seen.hex()} if chunk.seen else {}),
                    }
                ],
            }
        )


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
