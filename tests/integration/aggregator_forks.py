"""Aggregators that die on cue, forked from one process that has imported everything.

`LD_PRELOAD=… python -m tests.integration.aggregator_forks CONFIG` reads numbers from its input, one
a line; for each it runs an aggregator that is killed at that call of `faulty_disk.c` (0: at none),
and prints how it ended: -9 when killed, -14 when there was nothing to do for QUIET_S. With
`CONFIG COMMAND …` it runs that command in the place of `run`.
"""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from aggregator.main import main as aggregator

QUIET_S = 30


class Forks:
    """This program, with a layer before it that `environment` made."""

    def __init__(self, config: Path, layer: dict[str, str], *command: str, log: Path) -> None:
        with log.open("ab") as err:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(config), *command],
                env=layer,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=err,
                text=True,
            )

    def run(self, call: int) -> int:
        """Run one that is killed at a call (0: at none); return how it ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(call, file=self._process.stdin, flush=True)
        while not re.fullmatch(r"-?\d+\n", line := self._process.stdout.readline()):
            assert line, "the program has ended"  # else it is what was printed by one
        return int(line)

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


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
