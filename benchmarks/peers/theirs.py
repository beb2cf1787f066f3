"""The other libraries' clients, called as their documentation calls them, ε = 1.

They are imported by name, so that our own environment, where types are checked, needs none of them.
"""

from __future__ import annotations

from importlib import import_module
from math import exp
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.peers import naive
from benchmarks.peers.ours import AT_ONCE, EPSILON, HIGH, LOW, SIZE, VALUE_STEP
from benchmarks.peers.timing import Case, one_by_one

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

OPENDP = "OpenDP"
PURE_LDP = "pure-ldp"
OLH = "OLH, d = 1024"
BLOCK = 1 << 16
SQUARE_WAVE = "naive float square wave"


def scalar_cases() -> list[Case]:
    """Clients that are called once a report."""
    return [*_opendp(), *_pure_ldp(), *_multi_freq(), *_diffprivlib()]


def array_cases() -> list[Case]:
    """Float mechanisms on PCG64: no library has a vectorised client to measure."""
    wave = naive.square_wave(EPSILON, LOW, HIGH)
    response = naive.randomised_response(EPSILON, SIZE)
    blocked = naive.in_blocks(wave, BLOCK)
    return [
        Case("NumPy", SQUARE_WAVE, _watts, wave, AT_ONCE),
        Case("NumPy", f"{SQUARE_WAVE}, blocks of {BLOCK:,}", _watts, blocked, AT_ONCE),
        Case("NumPy", "naive float RR, d = 1024", _category_array, response, AT_ONCE),
    ]


def _opendp() -> list[Case]:
    prelude = import_module("opendp.prelude")
    prelude.enable_features("contrib")
    e = exp(EPSILON)
    of_bool = prelude.m.make_randomized_response_bool(e / (e + 1))
    of_many = prelude.m.make_randomized_response(list(range(SIZE)), e / (e + SIZE - 1))
    return [
        Case(OPENDP, "RR, bool", _bools, one_by_one(of_bool)),
        Case(OPENDP, "RR, d = 1024", _categories, one_by_one(of_many)),
    ]


def _pure_ldp() -> list[Case]:
    pure = import_module("pure_ldp.frequency_oracles")
    same = _same  # their default takes items 1..d
    clients = {
        "GRR, d = 1024": pure.DEClient(EPSILON, SIZE, index_mapper=same),
        OLH: pure.LHClient(EPSILON, SIZE, use_olh=True, index_mapper=same),
        "OUE, d = 1024": pure.UEClient(EPSILON, SIZE, use_oue=True, index_mapper=same),
        "HR, d = 1024": pure.HadamardResponseClient(EPSILON, SIZE, None, index_mapper=same),
    }
    return [
        Case(PURE_LDP, what, _categories, one_by_one(client.privatise))
        for what, client in clients.items()
    ]


def _multi_freq() -> list[Case]:
    oracles = "multi_freq_ldpy.pure_frequency_oracles"
    clients = {
        "GRR, d = 1024": import_module(f"{oracles}.GRR").GRR_Client,
        "OUE, d = 1024": import_module(f"{oracles}.UE").UE_Client,
    }
    return [
        Case("multi-freq-ldpy", what, _categories, _compiled(client))
        for what, client in clients.items()
    ]


def _diffprivlib() -> list[Case]:
    mechanisms = import_module("diffprivlib.mechanisms")
    binary = mechanisms.Binary(epsilon=EPSILON, value0="0", value1="1")
    geometric = mechanisms.Geometric(epsilon=EPSILON, sensitivity=HIGH - LOW)
    return [
        Case("diffprivlib", "Binary", _labels, one_by_one(binary.randomise)),
        Case("diffprivlib", "Geometric", _readings, one_by_one(geometric.randomise)),
    ]


def _compiled(client: Callable[[int, int, float], object]) -> Callable[[Any], object]:
    size, epsilon = SIZE, float(EPSILON)

    def run(values: list[int]) -> None:
        for value in values:
            client(value, size, epsilon)

    return run


def _same(item: int) -> int:
    return item


def _readings(count: int) -> list[int]:
    return [LOW + k * VALUE_STEP % (HIGH - LOW + 1) for k in range(count)]


def _categories(count: int) -> list[int]:
    return [k * VALUE_STEP % SIZE for k in range(count)]


def _bools(count: int) -> list[bool]:
    return [k % 2 == 0 for k in range(count)]


def _labels(count: int) -> list[str]:
    return ["01"[k % 2] for k in range(count)]


def _watts(count: int) -> NDArray[np.int64]:
    return np.array(_readings(count), np.int64)


def _category_array(count: int) -> NDArray[np.int64]:
    return np.array(_categories(count), np.int64)
