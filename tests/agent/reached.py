"""What memory a program still holds: every object that can be reached from some."""

import gc
import sys
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
