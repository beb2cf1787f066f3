"""No core dump of this process, whoever asks: its memory holds the readings of the current slot.

The limit is what shells and service managers know; "not dumpable" also holds where the kernel pipes
dumps to a program, and keeps other processes of the same user out of this one's memory.
Source: prctl(2), core(5); docs/faults.md, PRV-04.
"""

import ctypes
import resource

_SET_DUMPABLE = 4  # PR_SET_DUMPABLE


def forbid_dumps() -> bool:
    """Turn core dumps off for good; return whether the kernel agreed."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        return bool(ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0) == 0)
    except (OSError, AttributeError):  # no such call here: the limit is what there is
        return False
