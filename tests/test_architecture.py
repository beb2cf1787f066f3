"""Who may import whom (DESIGN §13), read from the sources: arrows point down, cores do no I/O."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path, PurePath

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("agent", "aggregator", "edge_ldp", "firmware_stubs")
FILES = sorted(path for name in PACKAGES for path in (ROOT / name).rglob("*.py"))
IO_MODULES = """
asyncio builtins code concurrent ctypes curses dbm fcntl fileinput ftplib getpass glob http imaplib
importlib io logging mmap multiprocessing os pathlib pdb poplib pty queue random readline resource
runpy sched secrets select selectors shelve shutil signal site smtplib socket socketserver sqlite3
ssl subprocess sys syslog tempfile termios threading time tkinter tty urllib uuid webbrowser xmlrpc
zipfile
"""
PURE = {*sys.stdlib_module_names, "_typeshed"} - set(IO_MODULES.split())  # types of the library
DEVICE = {"array", "collections", "hashlib", "math", "struct"}
GENERATORS = {"random", "secrets", "numpy.random"}
# what does I/O, reads a clock or runs text, though its module may be imported
ACTS = re.compile(
    r"(open|input|print|eval|exec|compile|__import__)"
    r"|(np|numpy)\.(fromfile|genfromtxt|load|loadtxt|memmap|save|savetxt|savez|savez_compressed)"
    r"|(datetime\.)*(date|datetime)\.(now|today|utcnow)"
)
NUMPY_FILES = {
    f"numpy.{name}" for name in ("fromfile", "load", "loadtxt", "memmap", "save", "savez")
}
OF_LIBRARY = {  # outside of its shell: the operating system's randomness, and the ready tables
    "edge_ldp/entropy.py": {"os"},
    "edge_ldp/vectorized/oracles.py": {"os"},
    "edge_ldp/vectorized/perturb.py": {"os"},
    "edge_ldp/continual/noise.py": {"sys"},
    "edge_ldp/mechanisms/responses.py": {"pathlib"},
}
SQL = re.compile(
    r"\b(SELECT\b.*\bFROM|INSERT (OR \w+ )?INTO|UPDATE \w+ SET|DELETE FROM|PRAGMA|BEGIN IMMEDIATE"
    r"|(CREATE|ALTER|DROP) (TEMP )?(TABLE|INDEX|VIEW))\b",
    re.DOTALL,
)
SPEAK_SQL = """
agent/shell/curator_journal.py agent/shell/curator_tables.py agent/shell/journal*.py
aggregator/replay_query.py aggregator/shell/moving.py aggregator/shell/plain_reads.py
aggregator/shell/postgres_*.py aggregator/shell/registry.py aggregator/shell/released_schema.py
aggregator/shell/releasing.py aggregator/shell/sqlite_*.py aggregator/shell/tending.py
"""


def imported(tree: ast.Module) -> Iterator[str]:
    """Yield the full name of whatever a file imports, wherever; and what else it does I/O with."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = [one for one in node.body if not is_of_typing(one)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{'.' * node.level}{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Attribute) and ast.unparse(node) in ("np.random", "numpy.random"):
            yield "numpy.random"
        elif isinstance(node, ast.Call) and ACTS.fullmatch(ast.unparse(node.func)):
            yield f"builtins.{ast.unparse(node.func)}"


def is_of_typing(node: ast.stmt) -> bool:
    """Say whether a statement only names types; MicroPython has no such module."""
    return isinstance(node, ast.ImportFrom) and node.module in ("typing", "collections.abc")


def sentences(tree: ast.Module) -> Iterator[str]:
    """Yield the texts of a file that hold SQL, docstrings apart."""
    for node in ast.walk(tree):
        texts = [] if isinstance(node, ast.Expr) else ast.iter_child_nodes(node)
        for text in texts:
            if isinstance(text, ast.Constant) and SQL.search(str(text.value)):
                yield str(text.value)


def is_wiring(file: str) -> bool:
    """Say whether a file outside of a shell may do I/O: it wires commands and holds no rule."""
    return file in ("main.py", "cli.py", "commissioning.py") or file.startswith("commands")


def allowed(place: PurePath) -> set[str]:
    """Return the prefixes of module names that a file may import."""
    package, *rooms, file = place.parts
    does_io = "shell" in rooms or is_wiring(file)
    if package == "edge_ldp":
        if rooms[:1] == ["device"]:
            return DEVICE | {"edge_ldp.device"}
        numpy = {"numpy"} if rooms[:1] in (["vectorized"], ["continual"], ["sums"]) else set()
        paho = {"paho"} if rooms[:1] == ["shell"] else set()
        keys = (
            {"cryptography"} if rooms == ["shell"] and file in ("keys.py", "verify.py") else set()
        )
        library = {*sys.stdlib_module_names} if does_io else PURE
        plots = {"matplotlib"} if file == "picture.py" else set()
        own = OF_LIBRARY.get(str(place), set()) | plots  # PURE itself stays what it is
        return library | own | {"edge_ldp"} | numpy | paho | keys
    if package == "firmware_stubs" or does_io:
        return {""}  # anything; what nobody may is in `forbidden`
    config = {"pathlib"} if file == "config.py" or rooms[:1] == ["config"] else set()
    config |= {"msgspec"} if file == "row_forms.py" else set()  # MessagePack, a codec without I/O
    arrays = {"numpy", "scipy"} if package == "aggregator" else set()
    return PURE | {package, "edge_ldp"} | config | arrays


def forbidden(place: PurePath) -> set[str]:
    """Return the prefixes of module names that a file may not import, whatever `allowed` says."""
    package, *rooms, file = place.parts
    banned = {
        "agent": {
            "aggregator",
            "firmware_stubs",
            "msgspec",
            "numpy",
            "scipy",
            "edge_ldp.vectorized",
        }
        | ({"edge_ldp.continual"} if not file.startswith("curator") else set())
        | GENERATORS,
        "aggregator": {"agent", "firmware_stubs"},
        "edge_ldp": {"agent", "aggregator", "firmware_stubs"} | GENERATORS,
        "firmware_stubs": set(),
    }[package]
    is_core = "shell" not in rooms and not is_wiring(file)
    if is_core and package != "firmware_stubs":
        shells = {f"{other}.shell" for other in PACKAGES}
        banned = banned | shells | NUMPY_FILES | {f"{package}.main", "builtins"}
    return banned


def wrongs(root: Path, place: PurePath) -> list[str]:
    """Return what a file of the tree at `root` imports, does or says against the rules."""
    tree = ast.parse((root / place).read_text())
    may, never = allowed(place), forbidden(place)
    wrong = [name for name in imported(tree) if not begins(name, may) or begins(name, never)]
    if not any(place.match(pattern) for pattern in SPEAK_SQL.split()):
        wrong += sentences(tree)
    return wrong


def begins(name: str, prefixes: set[str]) -> bool:
    """Say whether a dotted name is or lies under one of the prefixes ("": everything)."""
    return any(not p or name == p or name.startswith(p + ".") for p in prefixes)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_imports_only_what_its_room_may(path: Path) -> None:
    assert wrongs(ROOT, path.relative_to(ROOT)) == []


def test_what_the_tables_name_is_there() -> None:
    assert all((ROOT / name).exists() for name in OF_LIBRARY)
    assert all(list(ROOT.glob(pattern)) for pattern in SPEAK_SQL.split())


@pytest.mark.parametrize(
    "path",
    [path for path in FILES if path.name == "__init__.py"],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_an_init_holds_a_docstring_imports_and_a_sorted_list_and_nothing_else(path: Path) -> None:
    docstring, *body = ast.parse(path.read_text()).body
    assert isinstance(docstring, ast.Expr)
    lists = [node for node in body if isinstance(node, ast.Assign)]
    imports = [node for node in body if isinstance(node, ast.ImportFrom)]
    assert len(lists) + len(imports) == len(body)
    names = sorted((alias.name for node in imports for alias in node.names), key=listing_order)
    assert [ast.unparse(node.targets[0]) for node in lists] == (["__all__"] if names else [])
    assert [ast.literal_eval(node.value) for node in lists] == ([names] if names else [])


def listing_order(name: str) -> tuple[bool, bool, str]:
    """CONSTANTS first, then Classes, then functions, as ruff sorts them."""
    return (not name.isupper(), name[0].islower(), name)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_folder_with_code_is_a_package(package: str) -> None:
    folders = {path.parent for path in FILES if path.is_relative_to(ROOT / package)}
    assert folders
    assert all((folder / "__init__.py").exists() for folder in folders)


CLEAN = "agent/outbox.py", "aggregator/settle.py", "edge_ldp/plan.py", "edge_ldp/device/frame.py"
PLANTED = {
    "a socket": "import socket",
    "a part of a module": "from os import path",
    "in a function": "def f() -> None:\n    import socket",
    "in a method": "class A:\n    class B:\n        def f(self) -> None:\n            import time",
    "for typing": "if TYPE_CHECKING:\n    import sqlite3",
    "else than for typing": "if TYPE_CHECKING:\n    pass\nelse:\n    import sqlite3",
    "where it may fail": "try:\n    import asyncio\nexcept ImportError:\n    pass",
    "by name": "made = __import__('socket')",
    "by its name as text": "from importlib import import_module",
    "a relative import": "from . import shell",
    "a file": "def f() -> str:\n    with open('/etc/passwd') as file:\n        return file.read()",
    "a file of numbers": "import numpy as np\nx = np.load('x.npy')",
    "the same by name": "from numpy import load",
    "the terminal": "print(1)",
    "the clock": "from datetime import datetime\nnow = datetime.now()",
    "the day": "import datetime\nnow = datetime.date.today()",
    "the log": "import logging",
    "a generator": "import random",
    "a package that was never asked for": "import requests",
    "a shell": "from edge_ldp.shell import clock",
    "a shell for typing": "if TYPE_CHECKING:\n    from agent.shell.journal import Journal",
    "SQL": "TEXT = 'SELECT slot FROM waiting'",
    "SQL of several lines": 'TEXT = """\n  SELECT slot\n  FROM waiting"""',
    "SQL in a call": "def f(db: object) -> None:\n    db.execute('DELETE FROM waiting')",
    "SQL with a name in it": "TEXT = f'DELETE FROM {__name__} WHERE slot < 1'",
}


@pytest.mark.parametrize("place", CLEAN)
@pytest.mark.parametrize("what", PLANTED)
def test_a_violation_planted_in_a_copy_of_a_pure_file_is_found(
    tmp_path: Path, place: str, what: str
) -> None:
    copy = tmp_path / place
    copy.parent.mkdir(parents=True)
    text = (ROOT / place).read_text()
    copy.write_text(text)
    assert wrongs(tmp_path, PurePath(place)) == []
    copy.write_text(f"{text}\n\n{PLANTED[what]}\n")
    assert wrongs(tmp_path, PurePath(place))


@pytest.mark.parametrize("name", ["socket", "sqlite3", "ssl", "selectors", "time", "threading"])
def test_the_librarys_rules_touch_nothing_but_what_the_table_names(name: str) -> None:
    cores = [path.relative_to(ROOT) for path in FILES if path.is_relative_to(ROOT / "edge_ldp")]
    may = [place for place in cores if begins(name, allowed(place))]
    assert all("shell" in place.parts or is_wiring(place.name) for place in may)
    assert may


def test_the_rules_find_what_they_forbid(tmp_path: Path) -> None:
    """The control: each line is refused in the room named, and its neighbour is not."""
    for line, room, fits in [
        ("import struct", "edge_ldp/device/x.py", True),
        ("import json", "edge_ldp/device/x.py", False),
        ("from edge_ldp import ratio", "edge_ldp/device/x.py", False),
        ("import numpy as np", "edge_ldp/plan.py", False),
        ("import numpy as np", "edge_ldp/vectorized/x.py", True),
        ("import paho.mqtt.client", "edge_ldp/plan.py", False),
        ("import matplotlib", "edge_ldp/sums/text.py", False),
        ("import matplotlib", "edge_ldp/sums/picture.py", True),
        ("import secrets", "edge_ldp/entropy.py", False),
        ("import time", "agent/slots.py", False),
        ("from edge_ldp.shell import clock", "agent/slots.py", False),
        ("from agent.shell import clock", "agent/slots.py", False),
        ("from edge_ldp.shell import clock", "agent/shell/x.py", True),
        ("import numpy", "agent/shell/x.py", False),
        ("from edge_ldp import vectorized", "agent/shell/x.py", False),
        ("from aggregator import tally", "agent/shell/x.py", False),
        ("from edge_ldp.continual import Tops", "agent/pipeline.py", False),
        ("from edge_ldp.continual import Tops", "agent/shell/device.py", False),
        ("from edge_ldp.continual import Tops", "agent/curator.py", True),
        ("import scipy.optimize", "aggregator/estimate/x.py", True),
        ("import sqlite3", "aggregator/estimate/x.py", False),
        ("import msgspec", "aggregator/tally.py", False),
        ("import msgspec", "aggregator/config.py", False),
        ("import msgspec", "aggregator/row_forms.py", True),
        ("import msgspec", "agent/shell/x.py", False),
        ("import random", "agent/main.py", False),
        ("def f():\n    import socket", "agent/outbox.py", False),
        ("open('/etc/passwd')", "agent/outbox.py", False),
        ("print(1)", "edge_ldp/device/x.py", False),
        ("if TYPE_CHECKING:\n    import socket", "agent/outbox.py", False),
        ("if TYPE_CHECKING:\n    from typing import Protocol", "edge_ldp/device/x.py", True),
        ("from typing import Protocol", "edge_ldp/device/x.py", False),
        ("x = 'SELECT a FROM b'", "agent/shell/uplink.py", False),
        ("x = 'SELECT a FROM b'", "agent/shell/journal_x.py", True),
        ('def f():\n    """As SELECT a FROM b."""', "agent/outbox.py", True),
        ("import socket", "edge_ldp/plan.py", False),
        ("import socket", "edge_ldp/shell/x.py", True),
        ("import os", "edge_ldp/entropy.py", True),
        ("import socket", "edge_ldp/entropy.py", False),
        ("x = np.random.default_rng()", "edge_ldp/vectorized/x.py", False),
    ]:
        source = tmp_path / room
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(line)
        assert (wrongs(tmp_path, PurePath(room)) == []) == fits, (line, room)
