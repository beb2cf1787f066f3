"""How fast something may go: so many at once, then so many a second, each told how long to wait."""


class Bucket:
    """A token bucket that lends: `take` always takes, and says how long to wait before using it.

    Takers wait one after the other, so a flood is slowed down and nothing is refused. Times are
    seconds of a clock that only goes forward.
    """

    def __init__(self, per_s: float, burst: int) -> None:
        self._per_s = per_s
        self._burst = burst
        self._level = float(burst)
        self._last_s: float | None = None

    def take(self, now_s: float) -> float:
        """Take one; return the seconds to wait, 0 while there are some left."""
        wait_s = self.wait_s(now_s)
        self._level -= 1
        return wait_s

    def wait_s(self, now_s: float) -> float:
        """Return how long the next one would have to wait."""
        since_s = 0.0 if self._last_s is None else max(0.0, now_s - self._last_s)
        self._last_s = now_s
        self._level = min(self._burst, self._level + since_s * self._per_s)
        return max(0.0, (1 - self._level) / self._per_s)
