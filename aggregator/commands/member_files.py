"""Files of devices: CSV for spreadsheets, JSON for programs; what one writes the other reads."""

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from aggregator.counting.members import Listed, Wish, checked_name
from aggregator.errors import MemberError

FORMATS = ("csv", "json")
COLUMNS = ("device", "group", "revoked")
_WORDS = {"": False, "no": False, "yes": True}


def read_members(text: str, form: str, file: str) -> list[Wish]:
    """Return the wishes in a file, each about another device; raises MemberError naming the line.

    CSV with a head of `device`, and `group` and `revoked` (yes, no) if wanted; or JSON: an object
    with `devices`, a list of objects with these keys.
    """
    rows = _csv_rows(text, file) if form == "csv" else _json_rows(text, file)
    wishes: dict[str, Wish] = {}
    for where, row in rows:
        wish = _wish(row, where)
        if wish.device in wishes:
            raise MemberError(where, "the device stands there before", "name each once")
        wishes[wish.device] = wish
    if not wishes:
        raise MemberError(file, "no device is in it", f"a head and lines of {', '.join(COLUMNS)}")
    return list(wishes.values())


def write_members(devices: Iterable[Listed], form: str) -> str:
    """Return what `read_members` reads."""
    rows = [(one.device, one.group, one.revoked_s is not None) for one in devices]
    if form == "json":
        made = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
        return json.dumps({"devices": made}, indent=1) + "\n"
    lines = [f"{device},{group},{'yes' if revoked else 'no'}" for device, group, revoked in rows]
    return "\n".join([",".join(COLUMNS), *lines, ""])


def _csv_rows(text: str, file: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    reader = csv.reader(text.removeprefix("\ufeff").splitlines(), strict=True)
    try:
        head = next(reader, [])
        _check_keys(head, f"{file} line 1")
        for row in reader:
            where = f"{file} line {reader.line_num}"
            if len(row) != len(head):
                raise MemberError(where, f"{len(row)} fields", f"{len(head)}, as in the head")
            yield where, dict(zip(head, row, strict=True))
    except csv.Error as exc:
        raise MemberError(f"{file} line {reader.line_num}", f"no CSV ({exc})", "CSV") from exc


def _json_rows(text: str, file: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise MemberError(file, "no JSON", 'expected {"devices": [...]}') from exc
    rows = given.get("devices") if isinstance(given, dict) else None
    if not isinstance(rows, list):
        raise MemberError(file, "no list of devices", 'expected {"devices": [...]}')
    for at, row in enumerate(rows):
        where = f"{file} devices[{at}]"
        if not isinstance(row, dict):
            raise MemberError(where, "no object", f"one with {', '.join(COLUMNS)}")
        _check_keys(list(row), where)
        yield where, row


def _check_keys(keys: Sequence[str], where: str) -> None:
    known = set(keys) <= set(COLUMNS) and len(set(keys)) == len(keys)
    if "device" not in keys or not known:
        found = ",".join(str(key)[:20] for key in keys[:9])
        expected = f"device, and of {', '.join(COLUMNS[1:])} what is wanted"
        apart = ", with commas between them" if len(keys) == 1 else ""  # a spreadsheet's semicolons
        raise MemberError(where, f"columns {found!r}", f"expected {expected}{apart}")


def _wish(row: Mapping[str, Any], where: str) -> Wish:
    device = checked_name("device", where, row["device"])
    group, revoked = row.get("group"), row.get("revoked")
    if group:
        checked_name("group", where, group)
    elif group is not None and group != "":
        raise MemberError(where, "group is no text", 'a name, or "" for none')
    if isinstance(revoked, str):
        revoked = _WORDS.get(revoked, revoked)
    if revoked is not None and not isinstance(revoked, bool):
        raise MemberError(where, "revoked is neither yes nor no", "expected yes or no")
    return Wish(device, where, enrols=True, group=group, revoked=revoked)
