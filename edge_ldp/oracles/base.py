"""A frequency oracle: a portable client, its exact law, and unbiased estimates from its reports.

Categories are 0..size-1; anything else is refused, never clamped. Source: docs/design.md,
Mechanisms.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from math import log
from typing import ClassVar, Self, SupportsIndex, TypeAlias

from edge_ldp.checks import exact_integer, iterable, taking
from edge_ldp.device.channel import Wave
from edge_ldp.device.errors import ParameterError
from edge_ldp.device.oracle import Grr, HaarHrr, Hierarchy, Hrr, Olh, Oue, outside
from edge_ldp.entropy import ReportDraw
from edge_ldp.mechanisms.base import integer
from edge_ldp.mechanisms.waved import wave_rows, waves
from edge_ldp.ratio import Epsilon, Ratio, floor_ratio

WaveClient: TypeAlias = Grr | Olh | Hrr | HaarHrr
Client: TypeAlias = WaveClient | Oue | Hierarchy


class Oracle(ABC):
    """One client and what can be said about it exactly.

    A report (a tuple of integers; of OUE bytes) is a public part, drawn without looking at the
    value, and a code. An estimate's entry for an item is exactly unbiased: its mean is 1 for the
    reporter's own item and 0 for the others.
    """

    name: ClassVar[str]
    client: Client

    @taking(size=exact_integer)
    def __init__(self, *, epsilon: Epsilon, size: int) -> None:
        self._use(self._client(size, floor_ratio(epsilon)))

    @classmethod
    def of(cls, client: Client) -> Self:
        """Return the oracle of a client that `edge_ldp.device.oracle` made."""
        made = cls.__new__(cls)
        Oracle._use(made, client)
        return made

    @staticmethod
    @abstractmethod
    def _client(size: int, ratio: Ratio) -> Client:
        """Return the client for so many categories whose largest ratio is this one."""

    def _use(self, client: Client) -> None:
        self.client = client
        self._perturb = client.perturb

    @classmethod
    @abstractmethod
    def from_plan(cls, table: Mapping[str, object]) -> Self:
        """Return the oracle that `to_plan` described; raises ParameterError for the field."""

    def to_plan(self) -> dict[str, object]:
        """Return the integers that define this oracle, ready for JSON."""
        return {"mechanism": self.name, "size": self.size, **self._shape()}

    @abstractmethod
    def _shape(self) -> dict[str, object]:
        """Return what a plan says of it beside its name and size."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} size {self.size} ε {self.epsilon:.6g}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Oracle) and other.name == self.name and other.client == self.client

    def __hash__(self) -> int:
        return hash((self.name, self.client))

    @property
    def size(self) -> int:
        """Categories."""
        return self.client.size

    @property
    @abstractmethod
    def max_ratio(self) -> Fraction:
        """Largest factor between two values' probabilities of one report, exactly."""

    @property
    def epsilon(self) -> float:
        """ln(max_ratio), for people to read."""
        ratio = self.max_ratio
        return log(ratio.numerator) - log(ratio.denominator)

    @property
    @abstractmethod
    def report_length(self) -> int:
        """Integers in a report; of OUE, bytes; where levels of a tree differ, the most."""

    @property
    @abstractmethod
    def report_bits(self) -> int:
        """Bits of a report whose fields each have a fixed width, public part included."""

    def perturb(
        self, value: SupportsIndex, *, draw: Callable[[int], int] | None = None
    ) -> Sequence[int]:
        """Return one report; an integer of NumPy is a category, too. Raises ParameterError.

        Unless `draw` is given, the operating system is asked for this report alone;
        `system_draw()` reads in blocks, for many reports in one thread.
        """
        if type(value) is not int:
            try:
                value = exact_integer("value", value)
            except ParameterError:
                raise outside(self.size) from None
        return self._perturb(value, draw or ReportDraw().below)

    @abstractmethod
    def split(self, report: Sequence[int]) -> tuple[tuple[int, ...], int]:
        """Return (public part, code) of a report; raises ParameterError for what is none."""

    @abstractmethod
    def probabilities(self, value: int, public: Sequence[int]) -> list[Fraction]:
        """Return the exact probability of every code under `value`, given the public part."""

    @abstractmethod
    def decode(self, report: Sequence[int]) -> list[Fraction]:
        """Return the unbiased estimate of each item, 1 or 0, that one report stands for."""

    @abstractmethod
    def estimate(self, reports: Iterable[Sequence[int]]) -> list[float]:
        """Return each item's unbiased count among the reporters: the sum of `decode`.

        Unit: reporters; may be negative. Counted in integers. Privacy: post-processing, spends
        nothing. Raises ParameterError for what is no report.
        """

    @abstractmethod
    def variance(self, value: int, item: int) -> Fraction:
        """Return the exact variance of one item's entry in `decode(perturb(value))`."""

    @property
    @abstractmethod
    def worst_variance(self) -> float:
        """The largest variance over all values and items."""

    @property
    @abstractmethod
    def influence(self) -> float:
        """Largest entry of any decoded report: what one liar can add to an item's count."""

    def check_value(self, value: int) -> None:
        """Raise ParameterError for what is no category."""
        if not 0 <= exact_integer("value", value) < self.size:
            raise outside(self.size)


def checked(name: str, numbers: Sequence[int], *limits: int) -> tuple[int, ...]:
    """Return the numbers, each of which must be an integer from 0 to below its limit."""
    given = tuple(iterable(name, numbers))
    if len(given) == len(limits):
        for number, limit in zip(given, limits, strict=True):
            if type(number) is not int or not 0 <= number < limit:
                break
        else:
            return given
    raise ParameterError(name, "integers, each from 0 to below " + ", ".join(map(str, limits)))


class OfWave(Oracle):
    """An oracle whose code, given the public part, is drawn from one wave."""

    client: WaveClient

    @staticmethod
    @abstractmethod
    def _client(size: int, ratio: Ratio) -> WaveClient: ...

    @classmethod
    def from_plan(cls, table: Mapping[str, object]) -> Self:
        """Return the oracle that `to_plan` described; raises ParameterError for the field."""
        size, wave = integer(table, "size"), one_wave(table)
        client = cls._client(size, Ratio(wave.r_num, wave.r_den))
        if client.channel.d != wave.d:
            raise ParameterError("waves", f"[[{client.channel.d}, 0, r_num, r_den]]")
        return cls.of(client)

    def _shape(self) -> dict[str, object]:
        return {"waves": wave_rows((self.client.channel,))}

    @property
    def max_ratio(self) -> Fraction:
        """Largest factor between two values' probabilities of one report, exactly."""
        return Fraction(*self.client.channel.ratio())

    @property
    @abstractmethod
    def limits(self) -> tuple[int, ...]:
        """Each integer of a report, code last, is from 0 to below its own of these."""

    @property
    def report_length(self) -> int:
        """Integers in a report."""
        return len(self.limits)

    @property
    def report_bits(self) -> int:
        """Bits of a report whose integers each have a fixed width, public part included."""
        return sum((limit - 1).bit_length() for limit in self.limits)

    def split(self, report: Sequence[int]) -> tuple[tuple[int, ...], int]:
        """Return (public part, code) of a report; raises ParameterError for what is none."""
        *public, code = checked("report", report, *self.limits)
        return tuple(public), code

    def law_of(self, index: int) -> list[Fraction]:
        """Return the exact probability of every code under one input of the wave."""
        wave = self.client.channel
        return [Fraction(wave.weight(index, j), wave.total) for j in range(wave.code_count)]


def one_wave(table: Mapping[str, object]) -> Wave:
    """Return a plan's one wave, of half-width 0; raises ParameterError."""
    (wave,) = waves(table, 1)
    if wave.c:
        raise ParameterError("waves", "[[d, 0, r_num, r_den]]")
    return wave


class Tree(Oracle):
    """An oracle over a tree: each device reports on one random level of it ([SW] §4.2).

    Estimates are of the nodes of every level; level 0 as the client numbers it.
    """

    @abstractmethod
    def decode_levels(self, report: Sequence[int]) -> list[list[Fraction]]:
        """Return [level][node]: the unbiased estimate of each node that one report stands for.

        All 0 but on the report's own level, which counts as many times as there are levels.
        """

    @abstractmethod
    def estimate_levels(self, reports: Iterable[Sequence[int]]) -> list[list[float]]:
        """Return [level][node]: the sum of `decode_levels`, unbiased for all reporters.

        Times count/(levels · count of the level's own reports) it varies less: level by level the
        estimate from those who were asked.
        """

    @abstractmethod
    def node_variance(self, value: int, level: int, node: int) -> Fraction:
        """Return the exact variance of one node's entry in `decode_levels(perturb(value))`."""
