"""Noise comes from the operating system, and no two processes share it (PRV_06, PRV_07)."""

import json
import os
import random
import secrets
import subprocess
import sys
from typing import NoReturn

import numpy as np
import pytest

from edge_ldp import Hybrid
from edge_ldp.device.errors import EntropyError
from edge_ldp.entropy import system_draw
from edge_ldp.vectorized import perturb_many

FORK = """
import json, os, sys
from edge_ldp.device.draw import Draw
from edge_ldp.entropy import system_draw

draw = Draw(os.urandom) if sys.argv[1] == "naive" else system_draw()
draw(1 << 64)  # fills the buffer
read, write = os.pipe()
child = os.fork()
words = [draw(1 << 64) for _ in range(40)]
if not child:
    os.write(write, json.dumps(words).encode())
    os._exit(0)
os.waitpid(child, 0)
print(json.dumps([words, json.loads(os.read(read, 1 << 16))]))
"""


def shared_words(kind: str) -> set[int]:
    """Return the words that a parent and its forked child both used."""
    done = subprocess.run(
        [sys.executable, "-c", FORK, kind], capture_output=True, check=True, timeout=60
    )
    parent, child = json.loads(done.stdout)
    assert len(parent) == len(child) == 40
    return set(parent) & set(child)


def test_parent_and_forked_child_share_no_word() -> None:
    assert shared_words("system") == set()


def test_the_fork_test_finds_a_buffer_that_is_kept() -> None:
    assert len(shared_words("naive")) == 15


def test_each_draw_has_words_of_its_own() -> None:
    one, other = system_draw(), system_draw()
    assert {one(1 << 64) for _ in range(40)}.isdisjoint(other(1 << 64) for _ in range(40))


def test_no_seeded_generator_is_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    """PRV_07: every generator of the standard library and of NumPy is a trap."""

    def trap(*_args: object, **_options: object) -> NoReturn:
        pytest.fail("a generator was used")

    for name in ("random", "randrange", "randint", "getrandbits", "randbytes", "seed", "Random"):
        monkeypatch.setattr(random, name, trap)
    for name in ("random", "rand", "randint", "bytes", "seed", "default_rng", "RandomState"):
        monkeypatch.setattr(np.random, name, trap)
    monkeypatch.setattr(secrets, "randbelow", trap)
    read: list[int] = []
    genuine = os.urandom

    def counted(size: int) -> bytes:
        read.append(size)
        return genuine(size)

    monkeypatch.setattr(os, "urandom", counted)
    m = Hybrid(epsilon=1, low=0, high=100)
    m.perturb(5)
    assert sum(read) == 128
    perturb_many(m, [5] * 100)
    assert sum(read) >= 128 + 100 * 24


def test_a_failing_source_gives_no_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """AGT_11: nothing falls back to another generator."""

    def broken(_size: int) -> NoReturn:
        raise OSError("no entropy")

    monkeypatch.setattr(os, "urandom", broken)
    with pytest.raises(EntropyError, match="no randomness"):
        Hybrid(epsilon=1, low=0, high=100).perturb(5)
