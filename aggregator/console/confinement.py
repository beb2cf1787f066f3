"""A process that gives up, for good, what it will not need: files, new connections, its own end.

By Linux's Landlock, which any process may ask for and none may take back. It holds for the thread
that asks and those that it starts, so it is asked for while there is one.
Source: Documentation/userspace-api/landlock.rst of the kernel, its ABI 1 to 6.
"""

import ctypes
import os
import signal
import struct
import sysconfig
import zoneinfo
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # system calls, of the same number on every machine
_VERSION = 1  # LANDLOCK_CREATE_RULESET_VERSION
_BENEATH, _PORT = 1, 2  # LANDLOCK_RULE_PATH_BENEATH, _NET_PORT
_PARENT_ENDS, _NO_NEW_PRIVS = 1, 38  # PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS
_READ = 0b1100  # LANDLOCK_ACCESS_FS_READ_FILE, _READ_DIR
_FILES = {1: 13, 2: 14, 3: 15, 4: 15}  # rights on files that an ABI knows; from 5 on 16
_TCP, _CONNECT = 0b11, 0b10  # LANDLOCK_ACCESS_NET_BIND_TCP, _CONNECT_TCP
_SIGNAL = 0b10  # LANDLOCK_SCOPE_SIGNAL


def confine(readable: Iterable[Path], ports: Iterable[int] = ()) -> bool:
    """Let this process open nothing any more but to read below these; return whether that holds.

    It then neither begins TCP but to these ports, nor accepts any (kernel 6.7), and signals none
    that is not confined with it (6.12). What is open stays open; others' memory is out of its reach
    at any ABI.
    """
    call = ctypes.CDLL(None, use_errno=True).syscall
    version = call(_CREATE, None, ctypes.c_size_t(0), _VERSION)
    if version < 1 or len([*Path("/proc/self/task").iterdir()]) > 1:
        return False
    words = (1 << _FILES.get(version, 16)) - 1, _TCP, _SIGNAL
    asked = struct.pack("=3Q", *words)[: 8 if version < 4 else 16 if version < 6 else 24]  # noqa: PLR2004 (ABIs)
    ruleset = call(_CREATE, asked, ctypes.c_size_t(len(asked)), 0)
    try:
        for path in readable:
            with suppress(FileNotFoundError):
                _allow(call, ruleset, path)
        for port in ports if version >= 4 else ():  # noqa: PLR2004 (an ABI)
            call(_ADD, ruleset, _PORT, struct.pack("=2Q", _CONNECT, port), 0)
        no_more = ctypes.CDLL(None).prctl(_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
        return bool(no_more and call(_RESTRICT, ruleset, 0) == 0)
    finally:
        os.close(ruleset)


def code_paths() -> list[Path]:
    """Return where a process finds what it is made of, and nothing of anybody's."""
    paths = sysconfig.get_paths()
    code = [paths[kind] for kind in ("stdlib", "platstdlib", "purelib", "platlib")]
    packages = [str(files(package)) for package in ("aggregator", "edge_ldp")]
    return [Path(one) for one in (*code, *packages, *zoneinfo.TZPATH, "/usr/lib", "/lib")]


def end_with_parent() -> None:
    """Let this process be killed once the thread that started it ends, whatever it does then."""
    ctypes.CDLL(None).prctl(_PARENT_ENDS, signal.SIGKILL, 0, 0, 0)


def _allow(call: Callable[..., Any], ruleset: int, path: Path) -> None:
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = struct.pack("=Qi", _READ if path.is_dir() else _READ & 0b100, place)
        call(_ADD, ruleset, _BENEATH, rule, 0)
    finally:
        os.close(place)
