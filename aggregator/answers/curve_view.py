"""What is told of a curve: its density, and what was asked of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aggregator.answers.curves import Curve


def density_view(curve: Curve | None) -> dict[str, Any] | None:
    """Return a curve's density with its bands, or None without surveys."""
    if curve is None:
        return None
    density = curve.density
    return {
        "edges": density.edges.tolist(),
        "probabilities": density.probabilities.tolist(),
        "low": curve.cells.low.tolist(),
        "high": curve.cells.high.tolist(),
        "n": density.n,
        "iterations": density.iterations,
        "method": curve.method,
        "warnings": list(density.warnings),
    }


def quantiles_view(curve: Curve | None) -> list[dict[str, float]]:
    """Return the quantiles that were asked for, with their intervals."""
    if curve is None:
        return []
    found = (curve.quantiles.centre, curve.quantiles.low, curve.quantiles.high)
    rows = zip(curve.asked.shares, *(column.tolist() for column in found), strict=True)
    return [{"share": p, "value": at, "low": low, "high": high} for p, at, low, high in rows]


def ranges_view(curve: Curve | None) -> list[dict[str, float]]:
    """Return the shares of the ranges that were asked for, with their intervals."""
    if curve is None:
        return []
    return [
        {
            "low": low,
            "high": high,
            "share": float(band.centre[0]),
            "share_low": float(band.low[0]),
            "share_high": float(band.high[0]),
        }
        for (low, high), band in zip(curve.asked.ranges, curve.ranges, strict=True)
    ]
