"""Randomness from the operating system, and from nowhere else.

`system_draw()` is what every report of a real device is drawn with. A forked child drops the words
its parent had buffered (METHODS §6: two processes must never share noise).
"""

import os
import weakref

from edge_ldp.device.draw import Draw

_alive: "weakref.WeakSet[_SystemDraw]" = weakref.WeakSet()


class _SystemDraw(Draw):
    __slots__ = ("__weakref__",)


def system_draw() -> Draw:
    """Return a Draw on the operating system's CSPRNG that is safe across fork."""
    draw = _SystemDraw(os.urandom)
    _alive.add(draw)
    return draw


def _forget_all() -> None:
    for draw in tuple(_alive):
        draw.forget()


os.register_at_fork(after_in_child=_forget_all)
