"""A confined process, in a process of its own: what it named it reads, all else is closed to it."""

import ctypes
import json
import sys
from pathlib import Path

import pytest

from tests import needs
from tests.processes import run_told

CODE = """
import encodings.idna, json, os, socket, sys, threading
from pathlib import Path
from aggregator.console.confinement import confine
place, is_alone = Path(sys.argv[1]), sys.argv[2] == "alone"
kept = open(place / "other/file")
if not is_alone:
    threading.Thread(target=threading.Event().wait, daemon=True).start()
listening = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
told, other = (one.getsockname()[1] for one in listening)
holds = confine([place / "may", place / "one", place / "none"], [told])
acts = {
    "may": lambda: (place / "may/below/file").read_text(),
    "one": lambda: (place / "one").read_text(),
    "kept": kept.read,
    "other": lambda: (place / "other/file").read_text(),
    "up": lambda: (place / "may/../other/file").read_text(),
    "link": lambda: (place / "may/link").read_text(),
    "list": lambda: os.listdir(place),
    "write": lambda: (place / "may/below/file").write_text("x"),
    "remove": lambda: (place / "may/below/file").unlink(),
    "run": lambda: os.execv(sys.executable, [sys.executable, "-c", "print('[]')"]),
    "told": lambda: socket.create_connection(("127.0.0.1", told)),
    "listen": lambda: socket.create_server(("127.0.0.1", 0)),
    "reach": lambda: socket.create_connection(("127.0.0.1", other)),
}
done = []
for name, act in acts.items() if holds else ():
    try:
        act()
        done.append(name)
    except PermissionError:
        pass
print(json.dumps([holds, done]))
"""
LANDLOCK, NETWORKS = 1, 4


def _tried(place: Path, how: str) -> list[object]:
    for name in ("may/below/file", "one", "other/file"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("text")
    (place / "may/link").symlink_to("../other/file")
    done = run_told([sys.executable, "-c", CODE, str(place), how], check=True)
    found: list[object] = json.loads(done.stdout)
    return found


@pytest.fixture
def version() -> int:
    found: int = ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), 1)
    return found if found >= LANDLOCK else needs.missing("Landlock of Linux 5.13")


def test_what_was_named_is_read_and_nothing_else_is_opened_run_or_begun(
    tmp_path: Path, version: int
) -> None:
    assert _tried(tmp_path, "alone") == [
        True, ["may", "one", "kept", "told", *([] if version >= NETWORKS else ["listen", "reach"])],
    ]  # fmt: skip


@pytest.mark.usefixtures("version")
def test_beside_another_thread_which_it_would_not_bind_it_does_not_hold(tmp_path: Path) -> None:
    assert _tried(tmp_path, "not alone") == [False, []]
