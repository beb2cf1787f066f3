"""What a store knows of its devices: how they are, in which order, and how many."""

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, Protocol

from aggregator.store.forms import unpack_refusals
from aggregator.store.rows import DeviceRow, DeviceSums, ReportSum
from edge_ldp.service.health import OK

_DEVICES = """SELECT device, state, software, seen_s, coalesce(name, ''), enrolled_s, revoked_s,
    held_s, refusals, health, ages, heard FROM devices LEFT JOIN groups ON grp = id"""
_STATES = {
    "all": "1 = 1",
    "online": "state = 'online'",
    "silent": "(state = 'unknown' OR seen_s < {old_s})",
    "revoked": "revoked_s IS NOT NULL",
    "held": "held_s IS NOT NULL",
    "refusing": "refusals <> ''",
    "marked": "device IN (SELECT device FROM marks)",
}
_ORDERS = {  # by reports: `_reports_of`
    "device": "device",
    "group": "coalesce(name, '')",
    "state": "state",
    "software": "software",
    "seen": "seen_s",
}


class DeviceReader(Protocol):
    """The part of a Reader that is about devices; `_rows` raises StoreError."""

    VALUE: str = "?"  # in the place of a value

    @abstractmethod
    def _rows(self, query: str, values: tuple[Any, ...] = ()) -> list[Any]:
        """Return all rows of a query."""

    @abstractmethod
    def _reports_of(self, name: str) -> dict[str, int]:
        """Return the counted or the pending reports of each device that has any."""

    def devices(self) -> list[DeviceRow]:
        """Return every device that has a row, by name."""
        return _devices(self._rows(f"{_DEVICES} ORDER BY 1"))

    @abstractmethod
    def report_sums(self) -> list[ReportSum]:
        """Return all records added up, of devices alike: few rows, however many devices."""

    def devices_in_trouble(self) -> list[DeviceRow]:
        """Return those of the devices that are revoked, held, refusing or degraded, by name."""
        trouble = f"""revoked_s IS NOT NULL OR held_s IS NOT NULL OR refusals <> ''
            OR health NOT IN ('', '{OK}')"""
        return _devices(self._rows(f"{_DEVICES} WHERE {trouble} ORDER BY device"))

    def longest_silent(self) -> DeviceRow | None:
        """Return whose last status is the oldest, of those that may report and ever sent one."""
        heard = "revoked_s IS NULL AND state <> 'unknown'"
        rows = self._rows(f"{_DEVICES} WHERE {heard} ORDER BY seen_s, device LIMIT 1")
        return next(iter(_devices(rows)), None)

    def device_states(self) -> dict[str, int]:
        """Return how many devices are of each state."""
        return dict(self._rows("SELECT state, count(*) FROM devices GROUP BY 1"))

    def device_sums(self, old_s: int) -> DeviceSums:
        """Return how many devices are how; silent: not heard of since old_s (seconds UTC)."""
        heard = "state <> 'unknown' AND revoked_s IS NULL"
        (row,) = self._rows(
            f"""SELECT count(*), count(*) FILTER (WHERE state = 'online'),
            count(*) FILTER (WHERE seen_s < {int(old_s)} OR state = 'unknown'),
            count(revoked_s), count(held_s), count(*) FILTER (WHERE refusals <> ''),
            count(*) FILTER (WHERE held_s IS NULL AND device IN (SELECT device FROM marks)),
            count(*) FILTER (WHERE {heard}),
            count(*) FILTER (WHERE {heard} AND seen_s < {int(old_s)})
            FROM devices"""  # noqa: S608 (a number)
        )
        return DeviceSums._make(row)

    def may_report(self, group: int | None = None) -> int:
        """Return how many devices of a group (None: of all) are neither revoked nor held."""
        mine = "" if group is None else f" AND grp = {int(group)}"
        ((many,),) = self._rows(
            f"SELECT count(*) FROM devices WHERE revoked_s IS NULL AND held_s IS NULL{mine}"  # noqa: S608 (a number)
        )
        return int(many)

    def device_names(
        self, state: str, order: str, old_s: int, group: int | None = None, *, down: bool = False
    ) -> list[str]:
        """Return the devices of a state and group, in an order (`rows.STATES`, `rows.ORDERS`)."""
        where = _STATES[state].format(old_s=int(old_s))
        where += "" if group is None else f" AND grp = {int(group)}"
        by = f"{_ORDERS[order]} {'DESC' if down else 'ASC'}, " if order in _ORDERS else ""
        rows = self._rows(
            f"""SELECT device FROM devices LEFT JOIN groups ON grp = id
            WHERE {where} ORDER BY {by}device"""  # noqa: S608 (our own words, and numbers)
        )
        names = [name for (name,) in rows]
        if order not in _ORDERS:
            sums = self._reports_of(order)
            names.sort(key=lambda name: sums.get(name, 0), reverse=down)
        return names

    def some_devices(self, names: Iterable[str]) -> list[DeviceRow]:
        """Return those of the devices that have a row, as they are named."""
        query = f"{_DEVICES} WHERE device = {self.VALUE}"
        return _devices(row for name in names for row in self._rows(query, (name,)))


def _devices(rows: Iterable[Any]) -> list[DeviceRow]:
    return [DeviceRow(*(*row[:8], unpack_refusals(row[8]), *row[9:])) for row in rows]
