"""What reports and curated values have in common while one flush is settled.

Who may be heard, where each numbered batch falls, what was refused and whose receipt is due. What
counting means is not in here: `settle` adds up codes, `curated` keeps values.
Source: docs/design.md, The aggregator.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from aggregator.counting.accounts import account, with_status
from aggregator.counting.record_rows import RecordRows, Row, follow
from aggregator.counting.records import Again, Changes, Key, Known, Record
from aggregator.counting.refusals import Reason, Rules
from aggregator.counting.seen_batches import ArrivedBatch, Outcome, Placed, is_settled, place
from edge_ldp.protocol.messages import StreamStatus

NO_STREAM = -1  # where a refusal has no stream that can be believed
_NEVER_HEARD = Record()


class Settlement:
    """Records, enrolments and refusals as they change within one flush.

    `before`: what was changed already in the same flush, which is then part of what is changed.
    """

    def __init__(self, known: Known, rules: Rules, before: Changes | None = None) -> None:
        self._rules = rules
        self._members = known.members
        self._known_devices = known.devices
        self._devices = set(known.devices)
        # those of which nothing was decided: whatever else, they may report
        heard = known.devices if rules.devices is None else known.devices & rules.devices
        self.heard = heard - known.members.keys()
        self._device_count = known.device_count
        self._known = RecordRows.of(known.records)
        self._rows: dict[Key, Record | Row] = {}  # those that changed
        self._messages: Counter[tuple[str, int]] = Counter()
        self._reports: Counter[tuple[str, int]] = Counter()
        self._settled: set[str] = set()
        self._gapped: set[str] = set()
        if before is not None:
            self._take_over(before)

    @property
    def records(self) -> RecordRows:
        """The records that changed, as they are now."""
        return RecordRows(self._rows)

    @property
    def refused(self) -> dict[tuple[str, int], tuple[int, int]]:
        """(reason, stream) → (messages, reports) that do not count."""
        return {key: (n, self._reports[key]) for key, n in self._messages.items()}

    @property
    def enrolled(self) -> frozenset[str]:
        """Devices that had no row before."""
        return frozenset(self._devices - self._known_devices)

    @property
    def settled(self) -> frozenset[str]:
        """Devices of which any batch came."""
        return frozenset(self._settled)

    @property
    def gapped(self) -> frozenset[str]:
        """Devices that should get a receipt soon."""
        return frozenset(self._gapped)

    def enrols(self, device: str) -> bool:
        """Say whether the device may be heard; gives it a row where enrolment is open."""
        if device in self._devices:
            return self._rules.hears(device, self._members.get(device))
        if not self._rules.enrols(device, self._device_count):
            return False
        self._devices.add(device)
        self._device_count += 1
        return True

    def refuse(self, reason: str, stream: int, reports: int, messages: int = 1) -> None:
        """Count messages that do not count."""
        self._messages[reason, stream] += messages
        self._reports[reason, stream] += reports

    def apply_status(self, device: str, status: StreamStatus) -> None:
        """Take over what a device says of one stream."""
        key = (device, status.stream)
        self._rows[key] = with_status(self._of(key), status)

    def follow(self, key: Key, reports: int, first: int, *batch: Any) -> int | None:
        """Put a batch that counts in its place, if it is the next one and nothing is open.

        `batch`: what `record_rows.follow` takes after the first slot. Returns the slot counted
        last, None where `place` has to look.
        """
        old = self._rows.get(key) or self._known.rows.get(key)
        if old is None or isinstance(old, Record):
            return None
        row = follow(old, reports, first, *batch)
        if row is None:
            return None
        self._rows[key] = row
        self._settled.add(key[0])
        last: int = old[3]
        return last

    def place(
        self, key: Key, batch: ArrivedBatch, reports: int, reason: Reason | None
    ) -> Placed | None:
        """Put one batch where it belongs; return where if it counts, else refuse it.

        `reason`: why a batch that is settled may not count.
        """
        device, stream = key
        old = self._of(key)
        state, placed = place(old.state, batch)
        outcome = placed.outcome
        self._rows[key] = account(old, state, outcome, batch, reports)
        self._settled.add(device)
        if outcome is Outcome.GAP_LIMIT or len(state.gaps) > len(old.state.gaps):
            self._gapped.add(device)
        if reason is None and (outcome is Outcome.NEW or outcome is Outcome.LATE):
            return placed
        why = reason if reason is not None and outcome.settles else outcome
        self.refuse(why, stream, reports)
        return None

    def place_again(self, key: Key, again: Again) -> None:
        """Count what came again as duplicates; nothing where the record knows none of it."""
        device, stream = key
        old = self._of(key)
        if not all(is_settled(old.state, *one) for one in again.batches):
            return
        self.refuse(Outcome.DUPLICATE, stream, again.reports, again.messages)
        self._rows[key] = old._replace(duplicates=old.duplicates + again.reports)
        self._settled.add(device)

    def _of(self, key: Key) -> Record:
        return self.records.get(key) or self._known.get(key, _NEVER_HEARD)

    def _take_over(self, before: Changes) -> None:
        self._devices |= before.enrolled
        self._device_count += len(before.enrolled)
        self._rows.update(RecordRows.of(before.records).rows)
        self._settled |= before.settled
        self._gapped |= before.gapped
        refused: Mapping[tuple[str, int], tuple[int, int]] = before.refused
        for (reason, stream), (messages, reports) in refused.items():
            self.refuse(reason, stream, reports, messages)
