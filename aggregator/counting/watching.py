"""What one flush shows of watched devices: each one's codes, and whether it exceeds a bound.

Source: docs/design.md, The aggregator; docs/poisoning.md.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np

from aggregator.counting.records import Marked
from aggregator.counting.refusals import MARK_RATE
from edge_ldp.poisoning.flush import observe_flush

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from aggregator.counting.records import Arrival, Key, WatchKey
    from edge_ldp.poisoning.code_sets import Watch

    Ints = NDArray[np.int64]


class WatchedFrames:
    """Frames that count, gathered by stream and law and then looked at together."""

    def __init__(self) -> None:
        self._laws: dict[tuple[int, str], _Law] = {}

    def add(self, arrival: Arrival, watch: Watch) -> None:
        """Take a frame's codes."""
        key = (arrival.head.stream, watch.law)
        if key not in self._laws:
            self._laws[key] = _Law(watch)
        law = self._laws[key]
        law.owners.append(law.devices.setdefault(arrival.device, len(law.devices)))
        law.codes.append(arrival.codes)

    def look(
        self, kept: Mapping[WatchKey, bytes], triples: int
    ) -> tuple[dict[WatchKey, bytes], dict[Key, Marked]]:
        """Return what is kept of the devices from now on, and the marks of those beyond bounds.

        `kept`: until now; `triples`: device, stream and law triples that are ever watched, at most.
        """
        after: dict[WatchKey, bytes] = {}
        marked: dict[Key, Marked] = {}
        for (stream, name), law in self._laws.items():
            keys = [(device, stream, name) for device in law.devices]
            found, marks = observe_flush(
                law.watch,
                [kept.get(key) for key in keys],
                np.repeat(law.owners, [len(codes) for codes in law.codes]),
                np.concatenate(law.codes),
                rate=MARK_RATE,
                devices=triples,
            )
            after.update(zip(keys, found, strict=True))
            for at, of_device in marks.items():
                worst = min(of_device, key=lambda mark: mark.chance)
                marked[keys[at][:2]] = Marked(**asdict(worst))
        return after, marked


class _Law:
    """Codes under one law, and whose they are: an index of `devices`."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.devices: dict[str, int] = {}
        self.owners: list[int] = []
        self.codes: list[Ints] = []
