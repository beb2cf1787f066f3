"""The clock that everything is given, never reached for: system time, or accelerated time.

Accelerated time serves demos and tests: `rate` seconds pass in a real one, starting from `origin_s`
at the real time `started_s`, so several processes with the same three numbers agree.
"""

import time
from dataclasses import dataclass


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
