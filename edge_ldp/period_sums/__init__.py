"""Noise on a home's own sums: what a home adds up over a period and a part of the day.

This list needs no NumPy: it is the device's part. What is made of the reports of many homes stands
in `edge_ldp.period_sums.estimate` and `.forecast`. Derivation: docs/methods.md, Period sums.
"""

from edge_ldp.period_sums.layout import PeriodLayout
from edge_ldp.period_sums.scale import booked, most_in_window, scale_for

__all__ = ["PeriodLayout", "booked", "most_in_window", "scale_for"]
