"""Randomness from the operating system, and from nowhere else.

`system_draw()` is what every report of a real device is drawn with. A forked child drops the words
its parent had buffered (METHODS §6: two processes must never share noise).
"""

import os
import weakref

from edge_ldp.device.draw import Draw
from edge_ldp.device.errors import EntropyError

_alive: "weakref.WeakSet[_SystemDraw]" = weakref.WeakSet()


class _SystemDraw(Draw):
    __slots__ = ("__weakref__",)


def system_draw() -> Draw:
    """Return a Draw on the operating system's CSPRNG that is safe across fork.

    Raises EntropyError, when used, if the system has no randomness to give.
    """
    draw = _SystemDraw(_system_bytes)
    _alive.add(draw)
    return draw


def _system_bytes(size: int) -> bytes:
    try:
        return os.urandom(size)
    except OSError as exc:
        raise EntropyError("the operating system gave no randomness; nothing is sent") from exc


def _forget_all() -> None:
    for draw in tuple(_alive):
        draw.forget()


os.register_at_fork(after_in_child=_forget_all)
