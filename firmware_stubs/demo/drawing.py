"""What the demo's pictures have in common: a canvas with words above, colours, titles and keys."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

TRUTH = "#111111"
ESTIMATE = "#0b6bcb"
PLAIN = "#b3a394"
FAINT = "#d9d9d9"
NOTE = "#555555"
DPI = 160


def canvas(title: str, summary: str, source: str) -> Figure:
    """Return a figure with its words, and room for the panels between them."""
    figure = Figure(figsize=(12, 9.2), dpi=DPI, facecolor="white", layout="constrained")
    figure.get_layout_engine().set(rect=(0.005, 0.03, 0.99, 0.87), w_pad=0.15, h_pad=0.15)  # type: ignore[union-attr,call-arg] # constrained is set above
    figure.text(0.016, 0.965, title, fontsize=19, fontweight="bold", va="center")
    figure.text(0.016, 0.922, summary, fontsize=11, color=NOTE, va="center", linespacing=1.4)
    figure.text(0.016, 0.013, source, fontsize=8, color=NOTE)
    return figure


def entitle(axes: Axes, text: str) -> None:
    """Put a panel's title on it, and its frame into the background."""
    axes.set_title(text, loc="left", fontsize=11.5, fontweight="bold", pad=8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("#888888")
    axes.tick_params(colors="#333333", labelsize=9)
    axes.set_axisbelow(True)


def key(axes: Axes, *rows: tuple[str, str], right: bool = False) -> None:
    """Name the colours in words of those colours, in place of a legend."""
    for number, (text, color) in enumerate(rows):
        axes.text(
            0.98 if right else 0.02,
            0.98 - 0.065 * number,
            text,
            transform=axes.transAxes,
            color=color,
            fontsize=10,
            fontweight="bold",
            ha="right" if right else "left",
            va="top",
        )
