"""Write the tuned mechanism's tables, edge_ldp/mechanisms/tables_v1.json, unless they are there.

One table a line, least worst-case variance, for floor_ratio(ε): `weights` has one row a knot and
one number a code, `outputs` are in units of 1/scale on [-1, 1]; of both the file holds half, up to
the middle knot and above 0: the rest is the mirror image. Needs SciPy;
another release of it may give other tables that are as good, so the file is kept. A table is
certified when it is made, and again by the tests. Takes about a minute.
"""

import json
import sys
from pathlib import Path

from edge_ldp.ratio import floor_ratio
from studies.tuning.tables import solve

TARGET = Path(__file__).parent.parent / "edge_ldp" / "mechanisms" / "tables_v1.json"
EPSILONS = (0.001, 0.01, 0.05, 0.1, 0.2, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 5, 6, 8)
BITS = (3, 4)


def main() -> int:
    """Make every table and write the file; return 1 if it is there already."""
    if TARGET.exists():
        print(f"kept    {TARGET}: plans and vectors may hold its tables")
        return 1
    lines = [
        json.dumps(row(epsilon, b), separators=(",", ":")) for epsilon in EPSILONS for b in BITS
    ]
    text = '{"v":1,"tables":[\n' + ",\n".join(lines) + "\n]}\n"
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(text)
    print(f"written {TARGET}: {len(lines)} tables, {len(text)} bytes")
    return 0


def row(epsilon: float, bits: int) -> dict[str, object]:
    """Return one table as the file holds it."""
    ratio = floor_ratio(epsilon)
    made = solve(ratio, bits)
    return {
        "epsilon": str(epsilon),
        "bits": bits,
        "ratio": [ratio.num, ratio.den],
        "weights": made.weights[: (len(made.weights) + 1) // 2],
        "outputs": [output for output in made.outputs if output > 0],
        "scale": made.scale,
    }


if __name__ == "__main__":
    sys.exit(main())
