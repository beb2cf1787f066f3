"""Whether state can be stored; a full or read-only disk is waited for, anything worse ends us.

What could not be stored has not happened: the slot is given up and its code dropped. A sync that
failed is never tried again (what it was to make durable is unknown): the process ends, and reads
what is on the disk when it is started again. Source: docs/faults.md, AGT-05, AGT-06, AGT-09.
"""

import logging
from collections.abc import Callable

from agent.errors import StorageError

OK = "ok"
NO_STORAGE = "degraded: storage"
log = logging.getLogger("edge-ldp.agent")


class Storage:
    """Does what stores something, and says once when that no longer works, and when it does."""

    def __init__(self) -> None:
        self.is_held = False

    @property
    def health(self) -> str:
        """Return "ok" or why not."""
        return NO_STORAGE if self.is_held else OK

    def done(self, work: Callable[[], object]) -> bool:
        """Do it and return True, or False when waiting may mend what was wrong.

        Raises StorageError when waiting mends nothing.
        """
        try:
            work()
        except StorageError as exc:
            if not exc.passes:
                raise
            if not self.is_held:
                log.warning("%s; nothing is randomised until state can be stored", exc)
            self.is_held = True
            return False
        if self.is_held:
            log.info("state can be stored again")
        self.is_held = False
        return True
