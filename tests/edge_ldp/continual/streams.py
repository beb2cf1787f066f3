"""Small streams of every kind, for the tests of this folder."""

from typing import Any

from edge_ldp.continual import (
    Curator,
    Design,
    Release,
    Renewal,
    cold_design,
    tops_design,
)
from tests.edge_ldp.continual.paths import noise_from

SMALL: dict[str, Any] = {"epsilon": "1/2", "ceiling": 50, "readings": 10, "chunk": 64, "fanout": 4}
DESIGNS = {
    "tops": tops_design(**SMALL, pruned=1),
    "unpruned": tops_design(**SMALL, pruned=0),
    "numpy": tops_design(**SMALL, pruned=1, memory="numpy"),
    "lean": tops_design(**SMALL, pruned=0, memory="lean"),
    "causal": tops_design(**SMALL, pruned=1, kind="causal"),
    "flat": tops_design(**SMALL, pruned=0, kind="flat"),
    "tree": tops_design(**SMALL, pruned=0, kind="tree"),
    "public": tops_design(**SMALL, pruned=0, theta=9),
    "odd chunk": tops_design(**{**SMALL, "chunk": 40}, pruned=1),
    "odd tree": tops_design(**{**SMALL, "chunk": 41}, pruned=0, kind="tree"),
    "mean": tops_design(**SMALL, pruned=2, smoother="mean"),
    "median": tops_design(**SMALL, pruned=1, smoother="median"),
    "exponential": tops_design(**SMALL, pruned=1, smoother="exponential"),
    "parallel": tops_design(**SMALL, pruned=1, renewal=Renewal(2)),
    "sequential": tops_design(**SMALL, pruned=1, renewal=Renewal(1, "sequential")),
    "zero": tops_design(**SMALL, pruned=1, missing="zero"),
    "binary": tops_design(**{**SMALL, "fanout": 2}, pruned=0, kind="tree"),
    "cold": cold_design(epsilon=1, readings=10, chunk=256),
}
READINGS = [(k * k * 7 + k) % 60 for k in range(300)]


def run(design: Design, readings: list[int | None], seed: int = 5) -> list[Release]:
    curator = Curator(design, draw=noise_from(seed))
    return [curator.push(reading) for reading in readings]
