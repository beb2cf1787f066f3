"""After the run: the console on what it left, until somebody has looked enough."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from firmware_stubs.demo.children import Crew
from firmware_stubs.demo.files import command, console_files
from firmware_stubs.demo.run import TooSlowError

if TYPE_CHECKING:
    from pathlib import Path

    from firmware_stubs.demo.scenario import Scenario

START_S = 60.0
LOOK_S = 0.1


def look_around(config: Path, scenario: Scenario) -> None:
    """Serve the console on the run's store until Ctrl-C; say where on standard error.

    Raises ChildDiedError, TooSlowError.
    """
    own = console_files(config, scenario, time.time())
    with Crew() as crew, suppress(KeyboardInterrupt):
        child = crew.start("console", command("console", "-c", str(own), "--port", "0"), own.parent)
        deadline = time.monotonic() + START_S
        while not (address := child.stdout.read_text().strip()):
            crew.check()
            if time.monotonic() > deadline:
                raise TooSlowError("console: did not answer in time")
            time.sleep(LOOK_S)
        sys.stderr.write(f"look around: {address}  (Ctrl-C ends it)\n")
        while True:
            crew.check()
            time.sleep(1)
