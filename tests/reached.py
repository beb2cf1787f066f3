"""What memory a program still holds: every object that can be reached from some."""

import gc
import sys
from array import array
from collections.abc import Iterator
from types import BuiltinFunctionType, FunctionType, ModuleType

_STOP = (type, ModuleType, FunctionType, BuiltinFunctionType)


def reached(*roots: object) -> Iterator[object]:
    """Yield what is reachable, each once; not by way of classes, modules and functions."""
    seen: set[int] = set()
    todo = list(roots)
    globals_ = {id(vars(module)) for module in list(sys.modules.values())}
    while todo:
        one = todo.pop()
        if id(one) in seen or id(one) in globals_ or isinstance(one, _STOP):
            continue
        seen.add(id(one))
        yield one
        todo += gc.get_referents(one)


def blocks_of(draw: object) -> list["array[int]"]:
    """Return the blocks of random words that a draw holds."""
    return [one for one in reached(draw) if isinstance(one, array)]


def words_in(draw: object) -> list[int]:
    """Return the random words that a draw still holds."""
    return [word for block in blocks_of(draw) for word in block]
