"""Compute what an attacker learns of a constant reading, print the tables, draw the picture.

    python -m studies.averaging.figures [docs/results/averaging.png]

The tables stand in docs/results/averaging.md; tests/studies/averaging/test_sequence.py computes
them again.
The attack is simulated on the real kernel from a seeded stream of bytes: every run is the same.
"""

from __future__ import annotations

import sys
from hashlib import shake_256
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from edge_ldp import Hybrid, Mechanism, SquareWave, StochasticRounding, Tuned
from edge_ldp.protocol.ledger import Window
from edge_ldp.vectorized import perturb_many
from studies.averaging.sequence import Attack, attack, days_until, reports_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

EPSILON = 1
THETA_W = 3000
VALUE_W = 300  # what the closed forms are computed at
SLOT_S = 900
HOMES = 200  # each with a constant of its own, anywhere in 0..θ
DEFAULT = Window(8, 97, 1)
EVERY = Window(1, 1, 1)
SETTINGS = {"8 in any 97 slots": DEFAULT, "every slot": EVERY}
TABLE_DAYS = (1, 30, 365, 3650)
PICTURE_DAYS = (1, 2, 4, 7, 14, 30, 60, 120, 240, 365)
YEAR = 365
GOALS = (10, 5, 2, 1)
_MOST_AT_ONCE = 1 << 22

DANGER, CALM, NOTE, FAINT = "#b3261e", "#0b6bcb", "#555555", "#d9d9d9"
DPI = 160
SOURCE = (
    f"Hybrid mechanism, ε = {EPSILON} a report, θ = {THETA_W:,} W, 256 points, quarter-hour slots; "
    f"likelihoods: {HOMES} simulated homes. studies/averaging/figures.py"
)


def main(path: Path) -> None:
    """Print the tables of docs/results/averaging.md and write the picture."""
    mechanism = Hybrid(epsilon=EPSILON, low=0, high=THETA_W)
    plain = attack(mechanism, VALUE_W)
    found = {name: simulate(mechanism, marks(window)) for name, window in SETTINGS.items()}
    for table in (over_time(plain, mechanism.epsilon, found), until(plain), by_mechanism()):
        sys.stdout.write("\n".join(table) + "\n\n")
    draw(plain, found, path)


def marks(window: Window, last: int = TABLE_DAYS[-1]) -> list[int]:
    """Return the numbers of reports at which an attack is looked at, rising, up to a last day."""
    days = sorted({*TABLE_DAYS, *PICTURE_DAYS})
    return [reports_in(window, day, SLOT_S) for day in days if day <= last]


def over_time(plain: Attack, epsilon: float, found: dict[str, dict[int, float]]) -> Iterator[str]:
    """Yield the table of errors against days."""
    yield "| setting | days | reports | ε in all | averaging | likelihoods | limit |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for name, window in SETTINGS.items():
        for days in TABLE_DAYS:
            n = reports_in(window, days, SLOT_S)
            errors = (plain.averaging(n), found[name][n], plain.limit(n))
            shown = " | ".join(_error(error) for error in errors)
            yield f"| {name} | {days} | {n:,} | {n * epsilon:,.0f} | {shown} |"


def until(plain: Attack) -> Iterator[str]:
    """Yield the table of days until the mean of the reports is near enough."""
    yield "| averaging errs by at most | " + " | ".join(SETTINGS) + " |"
    yield "| --- | --- | --- |"
    for goal in GOALS:
        days = [
            days_until(plain.averaging, goal / 100 * THETA_W, window, SLOT_S)
            for window in SETTINGS.values()
        ]
        yield f"| {goal} % of θ | " + " | ".join(f"{count:,} days" for count in days) + " |"


def by_mechanism() -> Iterator[str]:
    """Yield the table of what the choice of a mechanism changes, after a year of the default."""
    n = reports_in(DEFAULT, YEAR, SLOT_S)
    yield "| mechanism | noise of a report | averaging | likelihoods | limit |"
    yield "| --- | --- | --- | --- | --- |"
    for name, mechanism in mechanisms().items():
        plain = attack(mechanism, VALUE_W)
        noise = 50 * mechanism.unit_variance**0.5
        errors = (plain.averaging(n), simulate(mechanism, marks(DEFAULT, YEAR))[n], plain.limit(n))
        yield f"| {name} | {noise:.1f} % | " + " | ".join(_percent(e) for e in errors) + " |"


def mechanisms() -> dict[str, Mechanism]:
    """Return the mechanisms compared, all at ε = 1 over [0, θ]."""
    sizes = {
        f"hybrid, {size} points": Hybrid(epsilon=EPSILON, low=0, high=THETA_W, size=size)
        for size in (256, 32, 16, 8)
    }
    return {
        **sizes,
        "tuned, 16 codes": Tuned(epsilon=EPSILON, low=0, high=THETA_W),
        "tuned, 8 codes": Tuned(epsilon=EPSILON, low=0, high=THETA_W, bits=3),
        "stochastic rounding": StochasticRounding(epsilon=EPSILON, low=0, high=THETA_W),
        "square wave, 1024 buckets": SquareWave(epsilon=EPSILON, low=0, high=THETA_W),
    }


def simulate(mechanism: Mechanism, reports: list[int]) -> dict[int, float]:
    """Return the root mean square error (W) of the best guess from so many reports, rising.

    The attacker knows that each home's reading is one whole number of watts for ever, and the law
    of the codes; he takes the mean of what is then likely, all values alike before.
    """
    entropy = tape(repr(mechanism))
    values = np.arange(THETA_W + 1)
    log_law = np.log(np.maximum(laws(mechanism), 1e-300))
    truths = np.linspace(0, THETA_W, HOMES).astype(np.int64)
    counts = np.zeros((HOMES, mechanism.code_count))
    errors: dict[int, float] = {}
    for before, n in zip([0, *reports], reports, strict=False):
        counts += _counts(mechanism, truths, n - before, entropy)
        likely = counts @ log_law.T
        likely = np.exp(likely - likely.max(axis=1, keepdims=True))
        guesses = likely @ values / likely.sum(axis=1)
        errors[n] = float(np.sqrt(np.mean((guesses - truths) ** 2)))
    return errors


def laws(mechanism: Mechanism) -> Floats:
    """Return the probability of each code (columns) under each whole value of [0, θ] (rows)."""
    parts = []
    for coin, _, channel in mechanism.branches:
        weights = np.array(
            [[channel.weight(i, j) for j in range(channel.code_count)] for i in range(channel.d)],
            np.float64,
        )
        mixed = np.zeros((THETA_W + 1, channel.d))
        for value in range(THETA_W + 1):
            for i, share in mechanism.inputs(value, channel):
                mixed[value, i] = share
        parts.append(float(coin) * (mixed @ weights) / channel.total)
    return np.concatenate(parts, axis=1)


def tape(label: str) -> Callable[[int], bytes]:
    """Return a seeded stream of bytes, the same on every run."""
    block = 0

    def entropy(size: int) -> bytes:
        nonlocal block
        block += 1
        return shake_256(f"{label} {block}".encode()).digest(size)

    return entropy


def draw(plain: Attack, found: dict[str, dict[int, float]], path: Path) -> None:
    """Write the picture: error against days, for both settings and both attacks."""
    figure = Figure(figsize=(10, 6.4), dpi=DPI, facecolor="white", layout="constrained")
    figure.get_layout_engine().set(rect=(0.01, 0.035, 0.98, 0.84), w_pad=0.1, h_pad=0.1)  # type: ignore[union-attr,call-arg] # constrained is set above
    axes = figure.subplots()
    for (name, window), color in zip(SETTINGS.items(), (CALM, DANGER), strict=True):
        _setting(axes, plain, found[name], window, color)
        at = axes.transAxes
        row = 0 if window is DEFAULT else 1
        text = f"{name}: ε {'8' if row == 0 else '96'} a day"
        axes.text(0.025, 0.14 - 0.055 * row, text, transform=at, color=color, fontweight="bold")
    _frame(axes)
    figure.text(
        *(0.02, 0.955, "How well reports of a load that never changes give it away"),
        fontsize=17,
        fontweight="bold",
        va="center",
    )
    figure.text(
        *(0.02, 0.905, _words(plain, found)),
        fontsize=10.5,
        color=NOTE,
        va="center",
        linespacing=1.4,
    )
    figure.text(0.02, 0.015, SOURCE, fontsize=8, color=NOTE)
    figure.savefig(path)


def _setting(
    axes: Axes, plain: Attack, found: dict[int, float], window: Window, color: str
) -> None:
    days = np.array(PICTURE_DAYS)
    reports = [reports_in(window, int(d), SLOT_S) for d in days]
    mean = [100 * plain.averaging(n) / THETA_W for n in reports]
    best = [100 * found[n] / THETA_W for n in reports]
    axes.plot(days, mean, color=color, linewidth=2.4)
    axes.plot(days, best, color=color, linewidth=1.6, linestyle=(0, (5, 2)), marker="o", ms=4.5)
    for values, word in ((mean, "averaging"), (best, "likelihoods")):
        axes.annotate(
            f" {word}\n {values[-1]:.2g} %",
            (days[-1], values[-1]),
            color=color,
            fontsize=9.5,
            va="center",
            xytext=(4, 0),
            textcoords="offset points",
        )


def _frame(axes: Axes) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(0.9, 640)
    axes.set_xticks([1, 7, 30, 120, 365], ["1 day", "a week", "30 days", "120 days", "a year"])
    axes.set_xticks([], minor=True)
    axes.set_ylim(0.02, 60)
    ticks = [0.03, 0.1, 0.3, 1, 3, 10, 30]
    axes.set_yticks(ticks, [f"{tick:g} %" for tick in ticks])
    axes.set_yticks([], minor=True)
    axes.grid(color=FAINT, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("#888888")
    axes.tick_params(colors="#333333", labelsize=9.5)
    axes.set_title(
        "Error of the attacker, % of θ", loc="left", fontsize=11.5, fontweight="bold", pad=8
    )


def _words(plain: Attack, found: dict[str, dict[int, float]]) -> str:
    n = reports_in(DEFAULT, YEAR, SLOT_S)
    mean, best = plain.averaging(n), found["8 in any 97 slots"][n]
    return (
        f"After a year of the shipped default, averaging all {n:,} reports errs by {mean:.0f} W; "
        "someone who compares\nlikelihoods, and knows that the load is constant, errs by "
        f"{best:.0f} W. Each single slot keeps its ε."
    )


def _counts(
    mechanism: Mechanism, truths: NDArray[np.int64], reports: int, entropy: Callable[[int], bytes]
) -> Floats:
    """Return how often each code (columns) came in so many reports of each home (rows)."""
    total = np.zeros((len(truths), mechanism.code_count))
    step = max(1, _MOST_AT_ONCE // len(truths))
    for at in range(0, reports, step):
        values = np.repeat(truths, min(step, reports - at))
        codes = perturb_many(mechanism, values, entropy=entropy)
        rows = np.repeat(np.arange(len(truths)), min(step, reports - at))
        flat = np.bincount(rows * mechanism.code_count + codes, minlength=total.size)
        total += flat.reshape(total.shape)
    return total


def _error(error_w: float) -> str:
    return f"{error_w:,.1f} W, {_percent(error_w)}"


def _percent(error_w: float) -> str:
    return f"{100 * error_w / THETA_W:.2g} %"


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("docs/results/averaging.png"))
