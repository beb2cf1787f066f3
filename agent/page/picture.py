"""The page's one picture: how many reports each of the last days made, and what became of them.

Inline SVG with classes alone: colours are the style sheet's, in light, dark and print. Pure.
"""

from collections.abc import Iterator, Sequence

from agent.page.facts import CAME, GONE, WAITS, Counts

WIDTH, HEIGHT = 640, 200
_LEFT, _TOP, _BOTTOM = 44, 12, 28
_LABELLED = 7  # every so many days has its date
_STEPS = (1, 2, 5)


def picture(days: Sequence[Counts]) -> str:
    """Return the SVG of the days, oldest first."""
    top = _top(max((one.made for one in days), default=0))
    made, gone = sum(one.made for one in days), sum(one.gone for one in days)
    said = (
        f"Reports of the last {len(days)} days: {made:,} made, {gone:,} given up. A table follows."
    )
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{said}">',
        *_scale(top),
        *(part for at, one in enumerate(days) for part in _bar(at, one, len(days), top)),
        "</svg>",
    ]
    return "".join(parts)


def _scale(top: int) -> Iterator[str]:
    for share in (0, 1, 2):
        y = _y(top * share // 2, top)
        yield f'<line class="grid" x1="{_LEFT}" x2="{WIDTH}" y1="{y}" y2="{y}"/>'
        yield f'<text class="axis end" x="{_LEFT - 6}" y="{y + 4}">{top * share // 2:,}</text>'


def _bar(at: int, one: Counts, days: int, top: int) -> Iterator[str]:
    """Yield a day: what arrived at the bottom, then what waits, then what was given up."""
    step = (WIDTH - _LEFT) // days
    x, below = _LEFT + at * step, 0
    for name, count in ((CAME, one.came), (WAITS, one.waits), (GONE, one.gone)):
        if count:
            high, low = _y(below + count, top), _y(below, top)
            kind = name.partition(" ")[0]
            size = f'width="{max(2, step - 4)}" height="{max(1, low - high)}"'
            yield f'<rect class="{kind}" x="{x + 2}" y="{high}" {size}>'
            yield f"<title>{one.name}: {count:,} {name}</title></rect>"
        below += count
    if (days - 1 - at) % _LABELLED == 0:
        middle, day = x + step // 2, one.name[5:]
        yield f'<text class="axis middle" x="{middle}" y="{HEIGHT - 8}">{day}</text>'


def _top(most: int) -> int:
    """Return the smallest round number that is not below it, even, so that its half is whole."""
    power = 1
    while True:
        for step in _STEPS:
            if 2 * step * power >= max(2, most):
                return 2 * step * power
        power *= 10


def _y(count: int, top: int) -> int:
    return HEIGHT - _BOTTOM - count * (HEIGHT - _TOP - _BOTTOM) // top
