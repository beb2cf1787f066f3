"""Aggregators that die on cue, forked from one process that has imported everything.

`LD_PRELOAD=… python -m tests.integration.aggregator_forks CONFIG` reads numbers from its input, one
a line; for each it runs an aggregator that is killed at that call of `faulty_disk.c` (0: at none),
and prints how it ended: -9 when killed, -14 when there was nothing to do for QUIET_S. With
`CONFIG COMMAND …` it runs that command in the place of `run`.
"""

import os
import signal
import sys

from aggregator.main import main as aggregator

QUIET_S = 30


def main() -> None:
    config, *told = sys.argv[1:]
    command, *options = told or ["run"]
    for line in sys.stdin:
        os.environ["FAULTY_KILL_AT"] = line.strip()
        pid = os.fork()
        if pid == 0:
            signal.alarm(QUIET_S)
            os._exit(aggregator([command, "-c", config, *options]))
        status = os.waitpid(pid, 0)[1]
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
