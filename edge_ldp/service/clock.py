"""The clock that everything is given, never reached for: system time, or accelerated time.

Accelerated time serves demos and tests: `rate` seconds pass in a real one, starting from `origin_s`
at the real time `started_s`, so several processes with the same three numbers agree. Whether the
machine's own clock may be trusted says the kernel.
"""

import errno
import struct
import time
from dataclasses import dataclass

STA_UNSYNC = 0x0040  # linux/timex.h
TIME_ERROR = 5
STATUS_OFFSET = 40 if struct.calcsize("l") == 8 else 20  # noqa: PLR2004 (struct timex)
_TIMEX_BYTES = 256


@dataclass(frozen=True, slots=True)
class Clock:
    """Seconds since 1970 UTC, monotonic seconds and sleep, all running at `rate`."""

    origin_s: float = 0.0
    started_s: float = 0.0
    rate: float = 1.0

    def now(self) -> float:
        """Return seconds since 1970, UTC."""
        return self.origin_s + (time.time() - self.started_s) * self.rate

    def monotonic(self) -> float:
        """Return seconds that never step, at the clock's rate."""
        return time.monotonic() * self.rate

    def since_boot(self) -> float:
        """Return seconds since the machine was started, suspended ones too, at `rate`.

        They do not step, and go on when this process is started again.
        """
        return time.clock_gettime(time.CLOCK_BOOTTIME) * self.rate

    def real(self, seconds: float) -> float:
        """Return how many real seconds so many of the clock's take."""
        return seconds / self.rate

    async def sleep(self, seconds: float) -> None:
        """Sleep for so many of the clock's seconds."""
        import asyncio  # noqa: PLC0415 (time: who only asks for the hour loads none of it)

        await asyncio.sleep(max(0.0, self.real(seconds)))


SYSTEM_CLOCK = Clock()


def kernel_synchronised() -> bool:
    """Say whether the kernel's clock is disciplined (NTP or the like); False when it cannot say.

    Reads adjtimex(2) with no mode set, which needs no privilege and changes nothing.
    """
    import ctypes  # noqa: PLC0415 (time: who only asks for the hour loads none of it)

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
