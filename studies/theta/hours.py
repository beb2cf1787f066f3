"""What an hour of day costs, by what is known of how much hours differ in their tails.

    python -m studies.theta.hours

The demo's 1.89 million reports of ε = 1 below 43.47 kW, θ and the share of surveys at their best
for each line. The first three lines take as known what no report tells: that hours do not differ,
that they differ by a line in their truncated means only, or by just how much they differ about it
(a quarter of the tail, as hours of homes do). The last is what `edge_ldp.sums` can print without
knowing it.
"""

from __future__ import annotations

import sys

from edge_ldp import SquareWave
from edge_ldp.sums import Question, half_width, tail_sds
from edge_ldp.sums.forecast import SHARES
from edge_ldp.sums.law import homes_law
from edge_ldp.sums.strata import FITTED
from edge_ldp.sums.width import DIFFER
from edge_ldp.threshold.choice import candidates
from studies.theta.world import stream

REPORTS, CEILING, HOURS, Z = 1_891_000, 43_470, 24, 1.96


def widths() -> dict[str, float]:
    """Return the least half-width of an hour of day, % of the mean, by what is taken as known."""
    law = homes_law(0, CEILING)
    thetas = [theta for theta in candidates(0, CEILING).tolist() if theta < CEILING]
    sds = tail_sds(SquareWave(epsilon=1, low=0, high=CEILING, size=256), thetas)
    unit = stream(1, 1 << 14).unit_variance
    found: dict[str, float] = {}
    for theta, sd in zip(thetas, sds.tolist(), strict=True):
        cut = law.cut(theta)
        for share in SHARES:
            below = unit * (theta / 2) ** 2 + cut.variance
            below /= REPORTS * (1 - share) / HOURS
            own = sd**2 / (REPORTS * share / HOURS)  # of one hour's tail by its own surveys
            spread = (DIFFER * cut.tail) ** 2
            lean = spread / (spread + own)
            printed = half_width(
                Question(REPORTS, HOURS),
                unit_variance=unit,
                span=theta,
                share=share,
                tail_sd=sd,
                tail=cut.tail,
                variance=cut.variance,
                slope=cut.slope,
            )
            halves = {
                "that hours do not differ": Z * (below + own / HOURS) ** 0.5,
                "that they differ along a line": Z * (below + own * FITTED / HOURS) ** 0.5,
                "how much they differ about it": Z
                * (below + own * (lean + (1 - lean) * FITTED / HOURS)) ** 0.5,
                "nothing": printed.half,
            }
            for known, half in halves.items():
                found[known] = min(found.get(known, float("inf")), 100 * half / law.mean)
    return found


if __name__ == "__main__":
    for known, percent in widths().items():
        sys.stdout.write(f"{known:32} ± {percent:.1f} %\n")
