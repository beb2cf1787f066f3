"""Who may import whom (DESIGN §13), read from the sources: arrows point down, cores do no I/O."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

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
PURE = set(sys.stdlib_module_names) - set(IO_MODULES.split())
DEVICE = {"array", "collections", "hashlib", "math", "struct"}
GENERATORS = {"random", "secrets", "numpy.random"}


def imported(path: Path) -> Iterator[str]:
    """Yield the full name of whatever a file imports, but for typing; open() and print() too."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body.clear()  # walk() has not gone inside yet
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Attribute) and ast.unparse(node) in ("np.random", "numpy.random"):
            yield "numpy.random"
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("open", "input", "print"):
            yield f"builtins.{ast.unparse(node.func)}"


def is_wiring(file: str) -> bool:
    """Say whether a file outside of a shell may do I/O: it wires commands and holds no rule."""
    return file in ("main.py", "commissioning.py") or file.startswith("commands")


def allowed(path: Path) -> set[str]:
    """Return the prefixes of module names that a file may import."""
    package, *rooms, file = path.relative_to(ROOT).parts
    if package == "edge_ldp":
        if rooms[:1] == ["device"]:
            return DEVICE | {"edge_ldp.device"}
        numpy = {"numpy"} if rooms[:1] in (["vectorized"], ["continual"], ["sums"]) else set()
        paho = {"paho"} if rooms[:1] == ["shell"] else set()
        keys = (
            {"cryptography"} if rooms == ["shell"] and file in ("keys.py", "verify.py") else set()
        )
        return set(sys.stdlib_module_names) | {"edge_ldp"} | numpy | paho | keys
    if package == "firmware_stubs" or "shell" in rooms or is_wiring(file):
        return {""}  # anything; what nobody may is in `forbidden`
    config = {"pathlib"} if file == "config.py" or rooms[:1] == ["config"] else set()
    config |= {"msgspec"} if file == "row_forms.py" else set()  # MessagePack, a codec without I/O
    arrays = {"numpy", "scipy"} if package == "aggregator" else set()
    return PURE | {package, "edge_ldp"} | config | arrays


def forbidden(path: Path) -> set[str]:
    """Return the prefixes of module names that a file may not import, whatever `allowed` says."""
    package, *rooms, file = path.relative_to(ROOT).parts
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
        banned = banned | {f"{other}.shell" for other in PACKAGES} | {f"{package}.main"}
    return banned


def begins(name: str, prefixes: set[str]) -> bool:
    """Say whether a dotted name is or lies under one of the prefixes ("": everything)."""
    return any(not p or name == p or name.startswith(p + ".") for p in prefixes)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_imports_only_what_its_room_may(path: Path) -> None:
    wrong = [
        name
        for name in imported(path)
        if not begins(name, allowed(path)) or begins(name, forbidden(path))
    ]
    assert not wrong


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


def test_the_rules_find_what_they_forbid(tmp_path: Path) -> None:
    """The control: each line is refused in the room named, and its neighbour is not."""
    source = tmp_path / "some.py"
    for line, room, fits in [
        ("import struct", "edge_ldp/device/x.py", True),
        ("import json", "edge_ldp/device/x.py", False),
        ("from edge_ldp import ratio", "edge_ldp/device/x.py", False),
        ("import numpy as np", "edge_ldp/plan.py", False),
        ("import numpy as np", "edge_ldp/vectorized/x.py", True),
        ("import paho.mqtt.client", "edge_ldp/plan.py", False),
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
        ("if TYPE_CHECKING:\n    import socket", "agent/outbox.py", True),
        ("x = np.random.default_rng()", "edge_ldp/vectorized/x.py", False),
    ]:
        source.write_text(line)
        names = list(imported(source))
        place = ROOT / room
        found = all(begins(n, allowed(place)) and not begins(n, forbidden(place)) for n in names)
        assert found == fits, (line, room)
