"""Freed memory goes back to the kernel."""

import sys

from tests.processes import run_told

SCRIPT = """
from agent.running.memory import give_back

def resident_kib():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))

kept = [bytearray(2000) for _ in range(20_000)]
last = kept[-1]  # keeps the heap's end, so that nothing goes back by itself
kept.clear()
before = resident_kib()
give_back()
give_back()
print(before - resident_kib())
"""


def test_what_was_freed_is_given_back_and_twice_does_no_harm() -> None:
    done = run_told([sys.executable, "-c", SCRIPT], check=True)
    assert int(done.stdout) > 20_000
