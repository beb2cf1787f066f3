"""The small changes that tools/mutants.py tries: what may be changed in a module, and how."""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import accumulate, pairwise
from typing import TypeAlias

COMPARISONS = {
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "==": "!=",
    "!=": "==",
    "in": "not in",
    "not in": "in",
    "is": "is not",
    "is not": "is",
}
SIGNS = {"+": "-", "-": "+", "*": "+", "//": "*", "<<": ">>", ">>": "<<"}
_OPERATOR = re.compile(r"\b(?:not\s+in|is\s+not|in|is|and|or)\b|//|<<|>>|[<>]=?|[=!]=|[-+*]")
_SQL = re.compile(r"\b(SELECT|INSERT|UPDATE|DELETE)\b")
_CLAUSE = re.compile(
    r"""\ (?:AND|GROUP\ BY|ORDER\ BY|LIMIT|WHERE(?!.*\ AND\ ))\ [^"'()]*?
    (?=\ (?:AND|OR|GROUP\ BY|ORDER\ BY|LIMIT|ON|UNION)\b|[)"'])""",
    re.VERBOSE,
)
Change: TypeAlias = tuple[int, int, str]  # first byte, the byte after the last, what stands there


@dataclass(frozen=True)
class Mutant:
    """One change of one module: `before` stands at `start` of the text, `after` would."""

    module: str
    start: int
    before: str
    after: str
    line: int
    context: str  # the line without spaces around it, and how many like it stand before

    @cached_property
    def name(self) -> str:
        """A name that stays while the changed line does, wherever it moves to."""
        said = (self.module, self.context, self.before, self.after)
        return sha256("\0".join(said).encode()).hexdigest()[:10]

    def apply(self, text: str) -> str:
        """Return the module's text with the change."""
        return text[: self.start] + self.after + text[self.start + len(self.before) :]

    def is_real(self, text: str) -> bool:
        """Say whether the changed text can be compiled and says something else."""
        try:
            return ast.dump(ast.parse(text)) != ast.dump(ast.parse(self.apply(text)))
        except SyntaxError:
            return False

    def diff(self, text: str) -> str:
        """Return the lines that the change touches, before and after."""
        first = text.rfind("\n", 0, self.start) + 1
        end = text.find("\n", self.start + len(self.before))
        old = text[first:end]
        new = self.apply(text)[first : end + len(self.after) - len(self.before)]
        return "\n".join(
            [*(f"- {a}" for a in old.split("\n")), *(f"+ {b}" for b in new.split("\n"))]
        )


class Source:
    """A module's bytes, and where in them a node of its tree stands."""

    def __init__(self, text: str) -> None:
        self.raw = text.encode()
        self.tree = ast.parse(text)
        sizes = (len(line) + 1 for line in self.raw.split(b"\n"))
        self._begins = [0, *accumulate(sizes)]

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Return a node's first byte and the one after its last."""
        last, column = node.end_lineno or node.lineno, node.end_col_offset or 0
        return self._begins[node.lineno - 1] + node.col_offset, self._begins[last - 1] + column

    def line(self, at: int) -> tuple[int, str]:
        """Return the number of the line with this byte, and the line without spaces around it."""
        number = self.raw.count(b"\n", 0, at)
        return number + 1, self.raw.split(b"\n")[number].decode().strip()

    def between(
        self, pairs: Iterable[tuple[ast.expr, ast.expr]], table: dict[str, str]
    ) -> Iterator[Change]:
        """Yield the operator between each two nodes, changed as the table has it."""
        for left, right in pairs:
            start, end = self.span(left)[1], self.span(right)[0]
            found = _OPERATOR.search(self.raw[start:end].decode(errors="replace"))
            other = table.get(" ".join(found[0].split())) if found else None
            if found and other:
                yield start + found.start(), start + found.end(), other


def candidates_of(module: str, text: str) -> list[Mutant]:
    """Return a module's mutants, and few others: `is_real` tells them apart, and takes its time."""
    source = Source(text)
    seen: Counter[tuple[str, str, str]] = Counter()
    found = []
    for at, end, after in sorted({one for node in _code(source.tree) for one in _of(node, source)}):
        start, before = len(source.raw[:at].decode()), source.raw[at:end].decode()
        number, line = source.line(at)
        seen[line, before, after] += 1
        context = f"{line}\0{seen[line, before, after]}"
        found.append(Mutant(module, start, before, after, number, context))
    return found


def _of(node: ast.AST, source: Source) -> Iterator[Change]:
    """Yield the changes of one node, its children apart; some do not compile."""
    yield from _of_operators(node, source)
    match node:
        case ast.Constant(value=bool()):
            pass
        case ast.Subscript(slice=ast.Constant(value=0) as zero):
            yield *source.span(zero), "1"  # the last is often the first
        case ast.Constant(value=int() as number):
            for other in (number - 1, number + 1):
                yield *source.span(node), str(other) if other >= 0 else f"({other})"
        case ast.Name(id="min" | "max"):
            yield *source.span(node), "max" if node.id == "min" else "min"
        case ast.If() | ast.While() | ast.IfExp():
            first, end = source.span(node.test)
            yield first, end, f"not ({source.raw[first:end].decode()})"
        case ast.Constant(value=str()) | ast.JoinedStr():
            yield from _of_sql(source, *source.span(node))
        case ast.AugAssign() | ast.Raise() | ast.Delete() | ast.Expr(value=ast.Call()):
            yield *source.span(node), "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield *source.span(node), "pass"


def _of_operators(node: ast.AST, source: Source) -> Iterator[Change]:
    match node:
        case ast.Compare():
            yield from source.between(pairwise([node.left, *node.comparators]), COMPARISONS)
        case ast.BinOp():
            yield from source.between([(node.left, node.right)], SIGNS)
        case ast.BoolOp():
            yield from source.between(pairwise(node.values), {"and": "or", "or": "and"})
            for left, right in pairwise(node.values):
                yield source.span(left)[0], source.span(right)[0], ""
            yield source.span(node.values[-2])[1], source.span(node.values[-1])[1], ""


def _of_sql(source: Source, first: int, end: int) -> Iterator[Change]:
    said = source.raw[first:end].decode()
    if not said.isascii() or not _SQL.search(said):
        return
    for clause in _CLAUSE.finditer(said):
        yield first + clause.start(), first + clause.end(), ""
    for sign in re.finditer(r"(?<= )[<>]=?(?= )", said):
        yield first + sign.start(), first + sign.end(), COMPARISONS[sign[0]]


def _code(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what runs: no annotation, no dunder name, nothing that stands there for typing only."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            match child:
                case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                    continue
                case ast.Assign(targets=[ast.Name(id=target)]) if target.startswith("__"):
                    continue
                case ast.AST():
                    yield child
            match child:
                case ast.Subscript(slice=ast.Constant(value=0)):  # [0]: see _of
                    yield from _code(child.value)
                case ast.JoinedStr():  # its parts have no places of their own
                    pass
                case ast.AST():
                    yield from _code(child)
