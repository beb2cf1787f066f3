"""Who may import whom (docs/ARCHITECTURE.md), read from the sources: one table, no circles."""

import ast
import builtins
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePath

import pytest

from tests.rooms import BASE, ROOMS, described, does_io, drawn, room_of, says_sql

ROOT = Path(__file__).parent.parent
PACKAGES = ("agent", "aggregator", "edge_ldp", "firmware_stubs", "studies")
FREE = {"firmware_stubs", "studies"}  # may import what they like that is not ours
FILES = sorted(path for name in PACKAGES for path in (ROOT / name).rglob("*.py"))
SHIPPED = [path for path in FILES if not path.is_relative_to(ROOT / "studies")]
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in FILES
}
# What a pure file may use, and nothing else: modules of the standard library, names that are
# always there (exceptions apart), and of NumPy what computes.
PURE, BUILTINS, NUMPY = (
    set(words.split())
    for words in (
        """
    __future__ _typeshed abc argparse array base64 binascii bisect collections contextlib csv
    dataclasses datetime decimal difflib enum fractions functools hashlib heapq ipaddress
    itertools json math numbers operator re shlex statistics struct textwrap types typing zlib
    zoneinfo
        """,
        """
    __name__ abs all any bool bytearray bytes classmethod dict divmod enumerate filter float
    frozenset getattr hasattr hash int isinstance iter len list map max memoryview min next
    NotImplemented object ord pow property range repr reversed round set slice sorted
    staticmethod str sum super tuple type zip
        """,
        """
    abs add allclose any append arange argmax argmin argsort array array_equal array_split
    asarray ascontiguousarray atleast_1d average bincount bool_ broadcast_arrays broadcast_to
    ceil clip column_stack complex128 concatenate convolve correlate cos count_nonzero cumsum
    diff divide divmod dot dtype einsum empty empty_like exp expm1 eye fft finfo flatnonzero
    float64 floating floor floor_divide frombuffer fromiter full full_like generic geomspace
    hstack inf int16 int64 integer interp intp isfinite isin isnan kron lexsort
    lib.stride_tricks linalg linspace log log1p log2 logical_and logical_or ma matmul max
    maximum mean median min minimum multiply nan ndarray nonzero ones ones_like outer pad pi ptp
    quantile random ravel repeat rint round searchsorted setdiff1d sign sin sinc sort split sqrt
    stack std subtract sum tile tri typing uint16 uint32 uint64 uint8 unique unravel_index var
    vstack where zeros zeros_like
        """,
    )
)
LIBRARY = {*sys.stdlib_module_names, "_typeshed"}  # and the types of the library
DYNAMIC = {"importlib.import_module", "pkgutil", "runpy", "imp", "code", "codeop", "zipimport"}
DEVICE = {"array", "collections", "hashlib", "math", "struct"}  # what MicroPython has
GENERATORS = {"random", "secrets", "numpy.random"}
WRITES = {"tofile", "dump", "open_memmap"}  # methods of what may be imported, for any object
CLOCK = {"now", "today", "utcnow"}  # of datetime, whatever it is called
SQL = re.compile(
    r"\b(SELECT\b.*\bFROM|INSERT (OR \w+ )?INTO|UPDATE \w+ SET|DELETE FROM|PRAGMA|BEGIN IMMEDIATE"
    r"|(CREATE|ALTER|DROP) (TEMP )?(TABLE|INDEX|VIEW))\b",
    re.DOTALL | re.IGNORECASE,
)


def imported(tree: ast.Module) -> Iterator[str]:
    """Yield the full name of whatever a file imports, wherever; and what else it reaches."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and dotted(node.test) == "TYPE_CHECKING":
            node.body = [one for one in node.body if not is_of_typing(one)]
    nodes = list(ast.walk(tree))
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{'.' * node.level}{node.module}.{alias.name}" for alias in node.names)
    yield from reached(nodes)


def reached(nodes: list[ast.AST]) -> Iterator[str]:
    """Yield what a file reaches without importing it: builtins, numpy's names, writing, clocks."""
    inner = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    clocks = names_of(nodes, "datetime")
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            if not is_harmless(node.id):
                yield f"builtins.{node.id}"
        elif isinstance(node, ast.Attribute):
            name, _, rest = dotted(node).partition(".")
            if name in ("np", "numpy") and id(node) not in inner:
                yield f"numpy.{rest}"
            if node.attr in WRITES or (node.attr in CLOCK and name in clocks):
                yield f"builtins.{node.attr}"


def is_harmless(name: str) -> bool:
    """Say whether a name that is always there only computes; ours do, and so do exceptions."""
    found = getattr(builtins, name, None)
    is_ours = not hasattr(builtins, name) and name not in ("__builtins__", "__spec__")
    is_error = isinstance(found, type) and issubclass(found, BaseException)
    return is_ours or is_error or name in BUILTINS


def names_of(nodes: list[ast.AST], module: str) -> set[str]:
    """Return what a file calls a module, what it takes from it, and what it binds these to."""
    found = {module}
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            of = getattr(node, "module", None)
            found |= {a.asname or a.name for a in node.names if module in (of, a.name)}
    for node in nodes:
        if isinstance(node, ast.Assign) and dotted(node.value).partition(".")[0] in found:
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return found


@cache
def read(text: str) -> tuple[list[str], list[str]]:
    """Return what a file of this text imports, and the SQL in it: read once for all who ask."""
    tree = ast.parse(text)
    return list(imported(tree)), list(sentences(tree))


def imported_by(path: Path) -> list[str]:
    """Return what a file imports."""
    return read(path.read_text())[0]


def dotted(node: ast.expr) -> str:
    """Return a name with what it stands in; "" for any other expression."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (front := dotted(node.value)):
        return f"{front}.{node.attr}"
    return ""


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


def file_of(name: str) -> str:
    """Return the file of ours that an imported name stands in; "" for what is not ours."""
    while name and name not in MODULES:
        name = name.rpartition(".")[0]
    return str(MODULES[name].relative_to(ROOT)) if name else ""


def is_wrong(name: str, place: PurePath) -> bool:
    """Say whether a file may not import a name."""
    room = ROOMS[room_of(place)]
    if file := file_of(name):
        other = room_of(PurePath(file))
        return other != room_of(place) and other not in room.imports.split()
    if name.partition(".")[0] in PACKAGES:
        return True  # a room that is not there
    return place.parts[0] not in FREE and is_foreign(name, place, {*room.packages.split()})


def is_foreign(name: str, place: PurePath, packages: set[str]) -> bool:
    """Say whether a file may not import what is not ours; `packages` are its room's."""
    top = name.partition(".")[0]
    if room_of(place) == "edge_ldp/device":
        return top not in DEVICE
    if begins(name, GENERATORS) and not begins(name, packages & GENERATORS):
        return True
    if does_io(place):
        is_dynamic = begins(name, DYNAMIC) and "importlib" not in packages
        return is_dynamic or top not in LIBRARY | packages
    computes = top != "numpy" or name == top or begins(name.removeprefix("numpy."), NUMPY)
    return not computes or top not in PURE | packages


def wrongs(root: Path, place: PurePath) -> list[str]:
    """Return what a file of the tree at `root` imports, does or says against the table."""
    names, sql = read((root / place).read_text())
    wrong = [name for name in names if is_wrong(name, place)]
    return wrong if says_sql(place) else wrong + sql


def begins(name: str, prefixes: set[str]) -> bool:
    """Say whether a dotted name is or lies under one of the prefixes."""
    return any(name == p or name.startswith(p + ".") for p in prefixes)


def circles(arrows: dict[str, set[str]]) -> list[list[str]]:
    """Return ways through a graph that come back to where they began, one for each found."""
    found, done = [], set[str]()

    def walk(way: list[str]) -> None:
        for other in sorted(arrows[way[-1]]):
            if other in way:
                found.append([*way[way.index(other) :], other])
            elif other not in done:
                walk([*way, other])
        done.add(way[-1])

    for name in sorted(arrows):
        if name not in done:
            walk([name])
    return found


@pytest.mark.parametrize("name", ROOMS)
def test_a_file_imports_only_what_its_room_may(name: str) -> None:
    """Every file of a room is read, and all that is wrong in it is named."""
    places = [path.relative_to(ROOT) for path in FILES]
    mine = [place for place in places if room_of(place) == name]
    assert mine
    found = {str(place): wrongs(ROOT, place) for place in mine}
    assert {place: wrong for place, wrong in found.items() if wrong} == {}


def test_the_page_lists_the_rooms_as_they_are() -> None:
    assert described() in (ROOT / "docs" / "ARCHITECTURE.md").read_text()


def test_every_room_of_the_table_is_there_and_no_other() -> None:
    assert {room_of(path.relative_to(ROOT)) for path in FILES} == set(ROOMS)


@pytest.mark.parametrize("name", ROOMS)
def test_what_a_room_is_allowed_is_used(name: str) -> None:
    room = ROOMS[name]
    paths = [path for path in FILES if room_of(path.relative_to(ROOT)) == name]
    names = {one for path in paths for one in imported_by(path)}
    used = {room_of(PurePath(file)) for one in names if (file := file_of(one))}
    assert set(room.imports.split()) <= used
    tops = {".".join(one.split(".")[:parts]) for one in names for parts in (1, 2)}
    assert set(room.packages.split()) <= tops
    files = {path.name for path in paths}
    assert set(room.io.split()) | set(room.sql.split()) <= files | {"*"}


@pytest.mark.parametrize(
    ("package", "rooms", "arrows"), [("agent", 13, 51), ("aggregator", 15, 55)]
)
def test_a_service_is_drawn_with_few_arrows(package: str, rooms: int, arrows: int) -> None:
    """More than these is no longer one picture: a rule is in the wrong room (ADR 25)."""
    found, between = drawn(package)
    assert len(found) <= rooms
    assert len(between) <= arrows, sorted(between)


def test_no_circle_between_rooms() -> None:
    assert circles({name: set(room.imports.split()) for name, room in ROOMS.items()}) == []


def test_no_circle_between_files() -> None:
    arrows = {}
    for path in FILES:
        place = str(path.relative_to(ROOT))
        arrows[place] = {file for name in imported_by(path) if (file := file_of(name))} - {place}
    assert circles(arrows) == []


def test_a_circle_would_be_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == [["b", "c", "b"]]


def test_an_init_holds_a_docstring_imports_and_a_sorted_list_and_nothing_else() -> None:
    for path in (path for path in FILES if path.name == "__init__.py"):
        docstring, *body = ast.parse(path.read_text()).body
        assert isinstance(docstring, ast.Expr), path
        lists = [node for node in body if isinstance(node, ast.Assign)]
        imports = [node for node in body if isinstance(node, ast.ImportFrom)]
        assert len(lists) + len(imports) == len(body), path
        names = sorted((alias.name for node in imports for alias in node.names), key=listing_order)
        targets = [ast.unparse(node.targets[0]) for node in lists]
        assert targets == (["__all__"] if names else []), path
        assert [ast.literal_eval(node.value) for node in lists] == ([names] if names else []), path


def listing_order(name: str) -> tuple[bool, bool, str]:
    """CONSTANTS first, then Classes, then functions, as ruff sorts them."""
    return (not name.isupper(), name[0].islower(), name)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_folder_with_code_is_a_package(package: str) -> None:
    folders = {path.parent for path in FILES if path.is_relative_to(ROOT / package)}
    assert folders
    assert all((folder / "__init__.py").exists() for folder in folders)


CLEAN = (
    "agent/claims/batches.py",
    "aggregator/counting/settle.py",
    "edge_ldp/protocol/plan.py",
    "edge_ldp/device/frame.py",
)
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
    "a relative import": "from . import errors",
    "a file": "def f() -> str:\n    with open('/etc/passwd') as file:\n        return file.read()",
    "a file of numbers": "import numpy as np\nx = np.load('x.npy')",
    "the same by name": "from numpy import load",
    "the terminal": "print(1)",
    "the clock": "from datetime import datetime\nnow = datetime.now()",
    "the day": "import datetime\nnow = datetime.date.today()",
    "the log": "import logging",
    "a generator": "import random",
    "a codec's file": "import codecs\nfile = codecs.open('x')",
    "a name from its text": "from pkgutil import resolve_name",
    "a file under another name": "o = open",
    "the terminal under another name": "say = print",
    "the clock under another name": "from datetime import datetime as D\nnow = D.now",
    "the clock under a third name": "import datetime as dt\nC = dt.datetime\nnow = C.now()",
    "an array's file": "def f(x: object) -> None:\n    x.tofile('x')",
    "a mapped file": "from numpy.lib.format import open_memmap",
    "a mapped file by name": "import numpy as np\nx = np.lib.format.open_memmap('x')",
    "all that is always there": "o = __builtins__['open']",
    "SQL in small letters": "TEXT = 'select slot from waiting'",
    "a package that was never asked for": "import requests",
    "a room above": "from agent.link import outgoing",
    "a service's room": "from edge_ldp.service import clock",
    "a room above for typing": "if TYPE_CHECKING:\n    from agent.link.uplink import Uplink",
    "a whole room": "import agent.link",
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


def test_the_rules_find_what_they_forbid(tmp_path: Path) -> None:
    """The control: each line is refused in the room named, and its neighbour is not."""
    for line, place, fits in [
        ("import struct", "edge_ldp/device/x.py", True),
        ("import json", "edge_ldp/device/x.py", False),
        ("from edge_ldp import ratio", "edge_ldp/device/x.py", False),
        ("import numpy as np", "edge_ldp/protocol/plan.py", False),
        ("import numpy as np", "edge_ldp/vectorized/x.py", True),
        ("import paho.mqtt.client", "edge_ldp/protocol/plan.py", False),
        ("import paho.mqtt.client", "edge_ldp/service/mqtt.py", True),
        ("import socket", "edge_ldp/service/x.py", False),
        ("import socket", "edge_ldp/service/tls.py", True),
        ("import secrets", "edge_ldp/entropy.py", False),
        ("import os", "edge_ldp/entropy.py", True),
        ("import os", "edge_ldp/ratio.py", False),
        ("from edge_ldp.protocol import plan", "edge_ldp/mechanisms/x.py", False),
        ("from edge_ldp import Mechanism", "edge_ldp/device/x.py", False),
        ("from edge_ldp import Mechanism", "edge_ldp/estimate/x.py", True),
        ("import time", "agent/claims/slots.py", False),
        ("from edge_ldp.service import clock", "agent/claims/slots.py", False),
        ("from agent.running import clock", "agent/claims/slots.py", False),
        ("from edge_ldp.service import clock", "agent/state/x.py", True),
        ("import numpy", "agent/state/device.py", False),
        ("from edge_ldp import vectorized", "agent/state/x.py", False),
        ("from aggregator.counting import tally", "agent/state/x.py", False),
        ("from edge_ldp.continual import Tops", "agent/claims/x.py", False),
        ("from edge_ldp.continual import Tops", "agent/curator/x.py", True),
        ("import scipy.optimize", "edge_ldp/estimate/x.py", True),
        ("import sqlite3", "aggregator/counting/x.py", False),
        ("import msgspec", "aggregator/counting/tally.py", False),
        ("import msgspec", "aggregator/store/forms.py", True),
        ("import msgspec", "agent/state/x.py", False),
        ("import random", "agent/main.py", False),
        ("def f():\n    import socket", "agent/claims/batches.py", False),
        ("open('/etc/passwd')", "agent/claims/batches.py", False),
        ("print(1)", "edge_ldp/device/x.py", False),
        ("if TYPE_CHECKING:\n    import socket", "agent/claims/batches.py", False),
        ("if TYPE_CHECKING:\n    from typing import Protocol", "edge_ldp/device/x.py", True),
        ("from typing import Protocol", "edge_ldp/device/x.py", False),
        ("x = 'SELECT a FROM b'", "agent/link/uplink.py", False),
        ("x = 'SELECT a FROM b'", "agent/state/journal.py", True),
        ("x = 'SELECT a FROM b'", "aggregator/store/x.py", True),
        ("x = 'SELECT a FROM b'", "aggregator/answers/x.py", False),
        ('def f():\n    """As SELECT a FROM b."""', "agent/claims/batches.py", True),
        ("x = np.random.default_rng()", "edge_ldp/vectorized/x.py", False),
    ]:
        source = tmp_path / place
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(line)
        assert (wrongs(tmp_path, PurePath(place)) == []) == fits, (line, place)


@pytest.mark.parametrize("name", ["socket", "sqlite3", "ssl", "selectors", "time", "threading"])
def test_the_library_does_io_only_where_the_table_says(name: str) -> None:
    places = [path.relative_to(ROOT) for path in FILES if path.is_relative_to(ROOT / "edge_ldp")]
    may = {place for place in places if not is_wrong(name, place)}
    assert may == {place for place in places if does_io(place)}
    assert PurePath(BASE.replace("*", "ratio")) not in may
