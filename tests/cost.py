"""What work costs, whoever else is at work on this machine."""

import time
from collections.abc import Callable

TRIES = 500


def costs_at_most(cpu_s: float, work: Callable[[], object]) -> bool:
    """Say whether it was ever done in so little CPU time: what goes on besides only adds to it."""
    for _ in range(TRIES):
        begun_s = time.thread_time()
        work()
        if time.thread_time() - begun_s <= cpu_s:
            return True
    return False
