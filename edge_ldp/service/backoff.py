"""How long to wait before the next attempt: exponential with full jitter."""

from collections.abc import Callable

from edge_ldp.device.errors import EntropyError
from edge_ldp.entropy import StuckEntropyError

JITTER_STEPS = 1 << 16


def backoff_s(
    attempt: int, draw: Callable[[int], int], *, base_s: float = 0.5, cap_s: float = 30.0
) -> float:
    """Return the wait: uniform in (0, min(cap, base·2^attempt)] seconds, for attempt 0, 1, 2 ….

    Full jitter keeps a fleet from coming back all at once. `draw(n)` gives a uniform 0..n-1.
    """
    longest = min(cap_s, base_s * 2.0 ** min(attempt, 32))
    return longest * (1 + draw(JITTER_STEPS)) / JITTER_STEPS


def unhurried(draw: Callable[[int], int]) -> Callable[[int], int]:
    """Return a draw for waits: the middle of the range while there is no randomness.

    Reports need randomness, pace does not. A source that repeats itself still raises.
    """

    def drawn(n: int) -> int:
        try:
            return draw(n)
        except StuckEntropyError:
            raise
        except EntropyError:
            return n // 2

    return drawn
