"""The [curator] table: what its owner allows a published stream to cost, and how it is made."""

from decimal import Decimal
from typing import Annotated, Literal

from edge_ldp.lean_class import lean_class
from edge_ldp.service.typed_table import Range

Epsilon = Decimal | int


@lean_class(frozen=True, slots=True)
class CuratorTable:
    """[curator]: one stream under central DP, event-level ε. B is each stream's `ceiling`.

    `method`: how θ is chosen, "tops" (noisy max, [ToPS]), "quantile" (the `share`-quantile) or
    "fixed" (`theta`, public, costs nothing). `readings` (m) pay for it and are not released.
    `chunk` (r) values share one key; `fanout`, `pruned` (by [ToPS] eq 7 unless given), `smoother`
    and `structure` are the tree's. `missing`: whether a slot without a reading is left out
    ("skip") or counts as a reading of 0 ("zero"). `renew_chunks`: θ anew after so many chunks.
    """

    epsilon: Epsilon
    method: Literal["tops", "quantile", "fixed"] = "tops"
    readings: Annotated[int, Range(ge=1, le=1 << 20)] | None = None
    theta: Annotated[int, Range(ge=1)] | None = None
    theta_epsilon: Epsilon | None = None
    share: Decimal | int | None = None
    chunk: Annotated[int, Range(ge=1, le=1 << 26)] = 1 << 16
    fanout: Annotated[int, Range(ge=2, le=1024)] = 16
    pruned: Annotated[int, Range(ge=0, le=26)] | None = None
    smoother: Literal["recent", "mean", "moving", "exponential"] = "recent"
    structure: Literal["causal", "consistent", "flat"] = "causal"
    missing: Literal["skip", "zero"] = "skip"
    renew_chunks: Annotated[int, Range(ge=1)] | None = None
    renewal: Literal["parallel", "sequential"] = "parallel"
