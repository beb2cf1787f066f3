"""EMS in pure Python: the density of the values behind a square wave's counted codes.

The same iteration, stop and result as `edge_ldp.estimate.ems` (to 10⁻⁹, by test), without NumPy:
for a gateway that counts its homes' reports itself. Prefix sums make both halves of a step O(size +
codes): a window of inputs can give a code, a window of codes can come from an input. Sources: [SW]
§5.5 (EMS); docs/methods.md, Decided readings (stopping rule, smoothing at the ends);
docs/design.md, Estimation (windows).
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import inf, log

from edge_ldp.checks import MECHANISM, chance, each, finite, integer_in, taking
from edge_ldp.device.channel import Wave
from edge_ldp.device.errors import ParameterError
from edge_ldp.device.lattice import bucket_edge
from edge_ldp.device.randomizer import BUCKETS
from edge_ldp.mechanisms import Mechanism

TOLERANCE = 1e-3  # τ of EMS, absolute change of the log-likelihood; EM's is τ·e^ε
MAX_ITERATIONS = 10_000
MAX_REPORTS = 1 << 53  # beyond, floats no longer count
ONE_CODE = "all reports are of one code: the density says little more than where that is likely"
NARROW = 14  # cells, between the quartiles, at the papers' smoothing
BLURRED = (
    "half of the mass lies within so few cells that smoothing moves it to its neighbours: means of "
    "meter readings came out 10 to 140 % too high; take more buckets, or `auto`"
)
CAPPED = "stopped at the cap of iterations, before the stopping rule was met"


@dataclass(frozen=True, slots=True)
class Estimate:
    """Probabilities of buckets: bucket k holds the integers edges[k] ≤ v < edges[k + 1].

    `n`: reports; `log_likelihood`: at the estimate, natural log; `warnings`: what a reader should
    know before relying on it.
    """

    probabilities: tuple[float, ...]
    edges: tuple[int, ...]
    n: int
    iterations: int
    log_likelihood: float
    warnings: tuple[str, ...]

    def mean(self) -> float:
        """Mean, in the stream's unit: mass is even over a bucket's integers."""
        buckets = zip(self.probabilities, self.edges, self.edges[1:], strict=False)
        return sum(mass * (first + beyond - 1) / 2 for mass, first, beyond in buckets)

    @taking(p=chance)
    def quantile(self, p: float) -> float:
        """Value below which a share p of the mass lies, linear inside a bucket; p in [0, 1]."""
        below = list(accumulate(self.probabilities, initial=0.0))
        k = min(max(bisect_left(below, p) - 1, 0), len(self.probabilities) - 1)
        mass = below[k + 1] - below[k]
        inside = min((p - below[k]) / mass, 1.0) if mass > 0 else 0.0
        at = self.edges[k] - 0.5 + inside * (self.edges[k + 1] - self.edges[k])
        return min(max(at, float(self.edges[0])), float(self.edges[-1] - 1))


@taking(
    mechanism=MECHANISM,
    counts=each(integer_in(least=0)),
    tolerance=finite(least=0),
    max_iterations=integer_in(least=1),
)
def ems(
    mechanism: Mechanism,
    counts: Sequence[int],
    *,
    tolerance: float = TOLERANCE,
    max_iterations: int = MAX_ITERATIONS,
) -> Estimate:
    """Return the EMS estimate of the density behind `counts` (reports per code, integers).

    `mechanism`: a survey's, one wave over buckets (SquareWave); counts has code_count entries.
    Stops when an iteration changes the log-likelihood by less than `tolerance`, or at the cap, with
    a warning. One report is enough. Cost: 0.2 ms an iteration at size 256, some 600 of them.
    Raises ParameterError, for no reports too.
    """
    wave = _survey(mechanism)
    n = _checked(counts, wave.code_count)
    x = [n / wave.d] * wave.d
    law, likelihood = _law(wave, x), -inf
    iterations, done = 0, False
    while iterations < max_iterations and not done:
        x = _smoothed(_climbed(wave, x, counts, law), n)
        law = _law(wave, x)
        before, likelihood = likelihood, sum(c * log(p) for c, p in zip(counts, law, strict=True))
        iterations += 1
        done = abs(likelihood - before) < tolerance  # never the first time: before is −∞
    conditions = (
        (ONE_CODE, max(counts) == n),
        (CAPPED, not done),
        (BLURRED, max(counts) < n and _is_narrow(x)),
    )
    near = (wave.r_num - wave.r_den) / wave.total
    return Estimate(
        probabilities=tuple(mass / n for mass in x),
        edges=tuple(
            bucket_edge(k, mechanism.low, mechanism.high, wave.d) for k in range(wave.d + 1)
        ),
        n=n,
        iterations=iterations,
        log_likelihood=likelihood + n * log(near / n),
        warnings=tuple(warning for warning, is_so in conditions if is_so),
    )


def _survey(mechanism: Mechanism) -> Wave:
    channels = mechanism.randomizer.channels
    if mechanism.encoder != BUCKETS or len(channels) != 1 or not isinstance(channels[0], Wave):
        raise ParameterError("mechanism", "a square wave: one wave over buckets")
    return channels[0]


def _checked(counts: Sequence[int], codes: int) -> int:
    """Return how many reports were counted."""
    if len(counts) != codes:
        raise ParameterError("counts", f"{codes} integers, one a code")
    n = sum(counts)
    if not 1 <= n <= MAX_REPORTS:
        raise ParameterError("counts", "1 to 2**53 reports in all")
    return n


def _law(wave: Wave, x: list[float]) -> list[float]:
    """Return each code's probability over near = (r_num − r_den)/W, times Σx.

    That is far·Σx + Σ of x over the inputs j − 2c..j, far = r_den/(r_num − r_den).
    """
    width = 2 * wave.c + 1
    upto = list(accumulate(x))
    far = wave.r_den / (wave.r_num - wave.r_den) * upto[-1]
    first = upto + upto[-1:] * (width - 1)
    return [far + upper - lower for upper, lower in zip(first, [0.0] * width + upto, strict=False)]


def _climbed(wave: Wave, x: list[float], counts: Sequence[int], law: list[float]) -> list[float]:
    """Return the density after EM's step: x times what the codes in each window ask for."""
    upto = list(accumulate((c / p for c, p in zip(counts, law, strict=True)), initial=0.0))
    far = wave.r_den / (wave.r_num - wave.r_den) * upto[-1]
    windows = zip(x, upto[2 * wave.c + 1 :], upto, strict=False)
    return [mass * (far + upper - lower) for mass, upper, lower in windows]


def _is_narrow(x: list[float]) -> bool:
    """Say whether the kernel is wide beside the density, as `edge_ldp.estimate.ems` does."""
    upto = list(accumulate(x, initial=0.0))
    ends = []
    for share in (0.25, 0.75):
        at = share * upto[-1]
        k = bisect_left(upto, at)
        ends.append(k - (upto[k] - at) / (upto[k] - upto[k - 1]))
    return ends[1] - ends[0] < NARROW


def _smoothed(x: list[float], total: int) -> list[float]:
    """Return x under the kernel (¼, ½, ¼), at the ends (⅔, ⅓), scaled to add up to `total`."""
    inner = [(a + 2 * b + c) / 4 for a, b, c in zip(x, x[1:], x[2:], strict=False)]
    out = [(2 * x[0] + x[1]) / 3, *inner, (2 * x[-1] + x[-2]) / 3]
    scale = total / sum(out)
    return [mass * scale for mass in out]
