"""Commands as somebody without rights gives them: the answers are the kernel's own.

Where the interpreter stands in root's home nobody else can start it. So a process of root's gives a
command that is alike and may be given, which loads what there is to load, and becomes nobody for
good before the one that is asked about. Where the tests are not root's, the file is closed to us.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
NOBODY = 65_534
PROCESS_S = 120  # a machine that is busy
_PROCESS = """
import io, json, os, sys
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
part, first, then, user = json.load(sys.stdin)
main = import_module(f"{part}.main").main
with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
    main(first)
if user is not None:
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
sys.exit(main(then))
"""


def close_to_others(path: Path) -> None:
    """Let only root enter or read it; where we are not root, not even its owner, who we are."""
    if os.geteuid():
        path.chmod(0)
    else:
        path.chmod(0o700 if path.is_dir() else 0o600)


def told_to_nobody(part: str, first: Sequence[str], then: Sequence[str]) -> str:
    """Return what the second command prints to a user without any rights, on both outputs.

    It must fail. `part`: agent or aggregator; `first`: one alike, by whoever runs the tests.
    """
    user = None if os.geteuid() else NOBODY
    done = subprocess.run(
        [sys.executable, "-c", _PROCESS],
        input=json.dumps([part, first, then, user]),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PROCESS_S,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode not in (0, 1), done.stdout  # not 1, which is also a traceback's
    return done.stdout
