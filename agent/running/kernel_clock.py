"""Whether this machine's clock may be trusted: the kernel says if it is synchronised."""

import ctypes
import errno

STA_UNSYNC = 0x0040  # linux/timex.h
TIME_ERROR = 5
STATUS_OFFSET = 40 if ctypes.sizeof(ctypes.c_long) == 8 else 20  # noqa: PLR2004 (struct timex)
_TIMEX_BYTES = 256


def kernel_synchronised() -> bool:
    """Say whether the kernel's clock is disciplined (NTP or the like); False when it cannot say.

    Reads adjtimex(2) with no mode set, which needs no privilege and changes nothing.
    """
    buffer = ctypes.create_string_buffer(_TIMEX_BYTES)
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        state = libc.adjtimex(buffer)
    except AttributeError:
        return False
    if state < 0 or ctypes.get_errno() == errno.EPERM:
        return False
    status = ctypes.c_int.from_buffer(buffer, STATUS_OFFSET).value
    return state != TIME_ERROR and not status & STA_UNSYNC
